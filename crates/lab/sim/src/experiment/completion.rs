//! Flow completion times by message size.

use super::Outcome;
use crate::engine::{Time, US};
use cloudburst_report::statistics::quantile;
use std::collections::BTreeMap;

/// Flow completion times, by message size in bytes.
#[derive(Clone, Debug, Default)]
pub struct Completion(BTreeMap<u64, Vec<Time>>);

/// Undelivered messages sort after all delivered ones.
const NEVER: Time = Time::MAX;

impl Completion {
    /// An empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the flow completion time of a message of `bytes`, or `None` if it was not delivered.
    pub fn record(&mut self, bytes: u64, took: Option<Time>) {
        self.0.entry(bytes).or_default().push(took.unwrap_or(NEVER));
    }

    /// Returns the CDF of the completion times of messages of `bytes`, at `points` evenly spaced shares by nearest
    /// rank: pairs of microseconds and share. It ends before the first undelivered message.
    pub fn distribution(&mut self, bytes: u64, points: usize) -> Vec<(f64, f64)> {
        let Some(times) = self.0.get_mut(&bytes) else { return Vec::new() };
        times.sort_unstable();
        let share = |k: usize| k as f64 / points as f64;
        let point = |k| Some((quantile(times, share(k)).filter(|&time| time < NEVER)?, share(k)));
        let all = (1..=points).map_while(point);
        all.map(|(time, share)| (time as f64 / US as f64, share)).collect()
    }

    /// Adds the values `count`, `undelivered`, `mean_us`, `p50_us`, `p90_us`, `p99_us`, `p99.9_us` and
    /// `max_us` of each size to `outcome`. Names are prefixed with `prefix` and end in the size, such as
    /// `p99_us/93000`. Quantiles are by nearest rank. An undelivered message makes the mean infinite.
    pub fn put(&mut self, prefix: &str, outcome: &mut Outcome) {
        for (bytes, times) in &mut self.0 {
            times.sort_unstable();
            let mut put = |name: &str, value| outcome.put(format!("{prefix}{name}/{bytes}"), value);
            let delivered = times.partition_point(|&time| time < NEVER);
            put("count", times.len() as f64);
            put("undelivered", (times.len() - delivered) as f64);
            // A sum of integers, so that the order of additions does not matter.
            let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
            let mean = sum as f64 / times.len() as f64 / US as f64;
            put("mean_us", if delivered == times.len() { mean } else { f64::INFINITY });
            let quantiles =
                [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
            for (name, q) in quantiles {
                let time = quantile(times, q).unwrap_or(NEVER);
                put(
                    &format!("{name}_us"),
                    if time < NEVER { time as f64 / US as f64 } else { f64::INFINITY },
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank_and_undelivered_messages_are_infinite() {
        let mut times = Completion::new();
        for time in (1..=1_000).rev() {
            times.record(5_000, Some(time * US));
        }
        times.record(93_000, Some(3 * US));
        times.record(93_000, None);
        let mut outcome = Outcome::default();
        times.put("", &mut outcome);
        let value = |name: &str| outcome.values[name];
        let names =
            ["count", "undelivered", "mean_us", "p50_us", "p90_us", "p99_us", "p99.9_us", "max_us"];
        let all = names.map(|name| value(&format!("{name}/5000")));
        assert_eq!(all, [1_000.0, 0.0, 500.5, 500.0, 900.0, 990.0, 999.0, 1_000.0]);
        assert_eq!(times.distribution(5_000, 2), [(500.0, 0.5), (1_000.0, 1.0)]);
        assert_eq!(times.distribution(93_000, 4), [(3.0, 0.25), (3.0, 0.5)]);
        let all = names.map(|name| value(&format!("{name}/93000")));
        let never = f64::INFINITY;
        assert_eq!(all, [2.0, 1.0, never, 3.0, never, never, never, never]);
    }
}
