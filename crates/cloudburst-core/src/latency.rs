//! Latency histograms of bounded size.

use core::time::Duration;
use hdrhistogram::Histogram;

/// The shortest time that can be distinguished from shorter ones, in nanoseconds.
const SHORTEST: u64 = 1_000;
/// The longest that can be distinguished from longer ones: an hour.
const LONGEST: u64 = 3_600_000_000_000;
/// Two decimal digits: times that differ by less than 1 % count as the same.
// Measurements of the same load differ by more than 1 %, and three digits would take eight times
// the memory.
const DIGITS: u8 = 2;

/// A histogram of times from 1 us to 1 h, to within 1 %.
///
/// It is an HDR histogram of about 27 KB, however many times are recorded. Times above an hour
/// count as an hour. Recording increments an array element and allocates nothing.
///
/// # Example
///
/// ```
/// # use cloudburst_core::latency::LatencyHistogram;
/// # use core::time::Duration;
/// fn log(sent: &LatencyHistogram, a_minute_ago: &LatencyHistogram) {
///     println!("median {:?}, p99 {:?}", sent.quantile(0.5), sent.quantile(0.99));
///     let (fast, all) = (sent.at_most(Duration::from_millis(1)), sent.count());
///     println!("{fast} of {all} within 1 ms, {:?} together", sent.sum());
///     let slowest = sent.since(a_minute_ago).map(|(took, _)| took).max();
///     println!("slowest of the last minute: {slowest:?}");
/// }
/// # log(&LatencyHistogram::default(), &LatencyHistogram::default());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyHistogram {
    buckets: Histogram<u64>,
    sum: Duration,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        let buckets = Histogram::new_with_bounds(SHORTEST, LONGEST, DIGITS)
            .expect("1 <= SHORTEST, 2 SHORTEST <= LONGEST, DIGITS <= 5");
        Self { buckets, sum: Duration::ZERO }
    }
}

impl LatencyHistogram {
    pub(crate) fn record(&mut self, took: Duration) {
        // Every message is recorded, not a sample of them: it costs 2 ns, under a lock that is held
        // anyway.
        self.buckets.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        self.sum = self.sum.saturating_add(took);
    }

    /// Returns the number of times recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Returns the exact sum of all times recorded.
    pub const fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns how many times were at most `limit`, to within 1 % of it.
    pub fn at_most(&self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.buckets.count_between(0, limit.min(LONGEST))
    }

    /// Returns the times recorded since `earlier`, a copy of this histogram: each time, to within 1 %,
    /// and how often it was recorded.
    pub fn since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (Duration, u64)> + 'a {
        self.buckets.iter_recorded().filter_map(|bucket| {
            let took = bucket.value_iterated_to();
            let before = earlier.buckets.count_at(took);
            let more = bucket.count_at_value().saturating_sub(before);
            (more > 0).then(|| (Duration::from_nanos(took), more))
        })
    }

    /// Returns the time that the share `quantile` of all times does not exceed, at most 1 % too long:
    /// 0.5 gives the median, 0.999 the 99.9th percentile, 1.0 the longest. `None` if no time was
    /// recorded.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.buckets.value_at_quantile(quantile)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn quantiles_are_right_to_one_percent_and_sums_exact() {
        let mut latencies = LatencyHistogram::default();
        assert_eq!((latencies.count(), latencies.quantile(0.5)), (0, None));
        (1..=10_000).for_each(|took| latencies.record(micros(took)));
        for (quantile, exact) in [(0.5, 5_000), (0.99, 9_900), (0.999, 9_990), (1.0, 10_000)] {
            let found = latencies.quantile(quantile).unwrap();
            assert!((micros(exact)..micros(exact + exact / 100)).contains(&found), "{found:?}");
        }
        assert_eq!(latencies.sum(), micros(10_000 * 10_001 / 2));
        let half = latencies.at_most(micros(5_000));
        assert!((5_000..=5_050).contains(&half), "{half}");
        assert_eq!(latencies.at_most(Duration::MAX), 10_000);
    }

    #[test]
    fn samples_recorded_since_a_snapshot_are_reported_once() {
        let mut latencies = LatencyHistogram::default();
        (0..3).for_each(|_| latencies.record(micros(50)));
        let earlier = latencies.clone();
        assert_eq!(latencies.since(&earlier).count(), 0);
        latencies.record(micros(50));
        (0..2).for_each(|_| latencies.record(micros(900)));
        let since: Vec<_> = latencies.since(&earlier).collect();
        let [(short, 1), (long, 2)] = since[..] else { panic!("{since:?}") };
        assert!((micros(50)..micros(51)).contains(&short), "{short:?}");
        assert!((micros(900)..micros(909)).contains(&long), "{long:?}");
    }

    #[test]
    fn samples_beyond_the_bounds_count_at_the_bounds() {
        let mut latencies = LatencyHistogram::default();
        latencies.record(Duration::ZERO);
        latencies.record(Duration::MAX);
        assert_eq!((latencies.count(), latencies.sum()), (2, Duration::MAX));
        assert!(latencies.quantile(0.5).unwrap() <= micros(1));
        let hour = Duration::from_secs(3_600);
        let longest = latencies.quantile(1.0).unwrap();
        assert!((hour..hour + hour / 100).contains(&longest), "{longest:?}");
    }

    #[test]
    fn it_takes_as_much_memory_as_its_documentation_says() {
        let buckets = LatencyHistogram::default().buckets.distinct_values();
        assert!((26_000..28_000).contains(&(buckets * size_of::<u64>())), "{buckets}");
    }
}
