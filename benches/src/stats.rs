//! Percentiles, medians with intervals, and how figures are printed.

use crate::ends::cpus;
use std::fmt;
use std::time::Duration;

/// Returns a percentile of sorted values, which is one of them.
///
/// # Panics
///
/// If there are no values.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> T {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy, Debug)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// The lower bound of the interval.
    pub low: f64,
    /// The upper bound of the interval.
    pub high: f64,
}

impl Median {
    /// Returns the median of these values; with too few values for an interval, the interval is their range.
    ///
    /// # Panics
    ///
    /// If there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        // The number of n values below the median has a standard deviation of sqrt(n) / 2.
        let margin = (1.96 / 2.0 * (values.len() as f64).sqrt()).ceil() as usize;
        Self {
            value: values[middle],
            low: values[middle.saturating_sub(margin)],
            high: values[(middle + margin).min(values.len() - 1)],
        }
    }
}

impl fmt::Display for Median {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, low, high } = self;
        write!(f, "{value:.3}")?;
        // A single value has no interval.
        if low < high { write!(f, " ({low:.3} to {high:.3})") } else { Ok(()) }
    }
}

/// Returns the order in which `count` rivals take part in a round: each round begins with another one, and
/// every other round is in reverse order, so that other load on this machine affects all of them alike.
pub fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |offset| {
        let at = (round + offset) % count;
        if round.is_multiple_of(2) { at } else { count - 1 - at }
    })
}

/// Formats a figure with at least two digits, and at most three decimals.
pub fn digits(figure: f64) -> String {
    let behind = match figure {
        ..0.1 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{figure:.behind$}")
}

/// Returns a duration in microseconds.
pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Says on which machine this runs, because ratios differ from one kind of processor to another.
pub fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, value)| value)
    };
    // Virtual machines often hide the model: what the codes and ciphers can use says more.
    let flags: Vec<&str> = field("flags").split(' ').collect();
    let has = ["avx2", "avx512bw", "gfni", "vaes"].into_iter().filter(|flag| flags.contains(flag));
    let cpus = cpus().len();
    format!(
        "{} (family {}, model {}; {}), {cpus} CPUs; Linux {}",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        has.collect::<Vec<_>>().join(", "),
        read("/proc/sys/kernel/osrelease").trim(),
    )
}
