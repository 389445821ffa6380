//! Means and quantiles with confidence intervals.

use cloudburst_core::rng::SplitMix64;

/// Resamples of a bootstrap.
const DRAWS: usize = 1000;

/// An estimate with its 95 % confidence interval. A completion time past the deadline is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate itself.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// A value without an interval.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// The estimate multiplied by `factor`, such as to change its unit.
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// Whether it has an interval: not if too few values were measured for one, or all were the same.
    pub fn has_interval(&self) -> bool {
        self.low < self.high
    }

    /// The mean of `values`, one for each repetition, with Student's t interval. `None` without values.
    ///
    /// A single value has no interval.
    pub fn mean_of(values: &[f64]) -> Option<Self> {
        let value = mean(values)?;
        let freedom = values.len() - 1;
        if freedom == 0 {
            return Some(Self::exact(value));
        }
        let squares: f64 = values.iter().map(|each| (each - value).powi(2)).sum();
        let deviation = (squares / freedom as f64).sqrt();
        let reach = student(freedom) * deviation / (values.len() as f64).sqrt();
        Some(Self { value, low: value - reach, high: value + reach })
    }
}

/// A summary of completion times of messages, in the unit in which they are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of messages.
    pub messages: usize,
    /// The number of messages that were not delivered within the deadline.
    pub late: usize,
    /// The mean; infinite if a message is late.
    pub mean: Estimate,
    /// The median.
    pub p50: Estimate,
    /// The 90 % quantile.
    pub p90: f64,
    /// The 99 % quantile; without an interval if there are too few messages for one.
    pub p99: Estimate,
    /// The 99.9 % quantile.
    pub p999: f64,
}

impl Summary {
    /// A summary of the times of each repetition, where late messages have infinite times. `None` without messages.
    ///
    /// The intervals are a percentile bootstrap in two stages: repetitions are drawn with
    /// replacement, then messages within each, because messages of one repetition met the same
    /// background flows and are not independent. A quantile that all messages may well be below has
    /// no interval: no resample exceeds the longest of them.
    pub fn of(repetitions: &[Vec<f64>], seed: u64) -> Option<Self> {
        let repetitions = repetitions.iter().filter(|times| !times.is_empty());
        let mut all: Vec<f64> = repetitions.clone().flatten().copied().collect();
        if all.is_empty() {
            return None;
        }
        all.sort_unstable_by(f64::total_cmp);
        // Counts how often each value of `all` is drawn, which is cheaper than sorting each resample.
        let place = |time: &f64| all.partition_point(|other| other.total_cmp(time).is_lt());
        let places: Vec<Vec<usize>> =
            repetitions.map(|times| times.iter().map(place).collect()).collect();
        let mut rng = SplitMix64::new(seed);
        let mut pick = |count: usize| rng.below(count as u64) as usize;
        let mut drawn: [Vec<f64>; 3] = Default::default();
        let mut counts = vec![0; all.len()];
        for _ in 0..DRAWS {
            counts.fill(0);
            let mut count = 0;
            let mut sum = 0.0;
            for _ in &places {
                let repetition = &places[pick(places.len())];
                for _ in repetition {
                    let place = repetition[pick(repetition.len())];
                    counts[place] += 1;
                    sum += all[place];
                }
                count += repetition.len();
            }
            drawn[0].push(sum / count as f64);
            drawn[1].push(all[nth_counted(&counts, rank(count, 0.5))]);
            drawn[2].push(all[nth_counted(&counts, rank(count, 0.99))]);
        }
        for figures in &mut drawn {
            figures.sort_unstable_by(f64::total_cmp);
        }
        let nth = |sorted: &[f64], q| sorted[rank(sorted.len(), q)];
        let within = |value, figures: &[f64]| Estimate {
            value,
            low: nth(figures, 0.025),
            high: nth(figures, 0.975),
        };
        let quantile_within = |q, figures: &[f64]| {
            let value = nth(&all, q);
            if is_bounded(all.len(), q) { within(value, figures) } else { Estimate::exact(value) }
        };
        Some(Self {
            messages: all.len(),
            late: all.iter().filter(|time| time.is_infinite()).count(),
            mean: within(mean(&all).unwrap_or(f64::INFINITY), &drawn[0]),
            p50: quantile_within(0.5, &drawn[1]),
            p90: nth(&all, 0.9),
            p99: quantile_within(0.99, &drawn[2]),
            p999: nth(&all, 0.999),
        })
    }

    /// Whether the quantile `q` is the longest of all: see [`is_longest`].
    pub fn is_longest(&self, q: f64) -> bool {
        is_longest(self.messages, q)
    }
}

/// Whether there are so few values that their quantile `q` is the largest of them: fewer than 100 for 0.99.
///
/// # Panics
///
/// Without values.
pub fn is_longest(count: usize, q: f64) -> bool {
    rank(count, q) + 1 == count
}

/// Whether the largest of `count` independent values exceeds the true quantile `q` with a probability
/// of 97.5 %, which the upper end of a 95 % interval must: from 368 values on for 0.99.
fn is_bounded(count: usize, q: f64) -> bool {
    q.powf(count as f64) <= 0.025
}

/// The mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A least-squares line through points: its slope, and R², the share of the variance that it
/// explains. `None` with fewer than three points, or if all have the same x or y.
pub fn linear_fit(dots: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = dots.iter().copied().unzip();
    let x = mean(&xs)?;
    let y = mean(&ys)?;
    let sum = |of: &dyn Fn(f64, f64) -> f64| dots.iter().map(|dot| of(dot.0 - x, dot.1 - y)).sum();
    let (xx, yy, xy): (f64, f64, f64) =
        (sum(&|dx, _| dx * dx), sum(&|_, dy| dy * dy), sum(&|dx, dy| dx * dy));
    (dots.len() >= 3 && xx > 0.0 && yy > 0.0).then(|| (xy / xx, xy * xy / (xx * yy)))
}

/// The share by which `value` is below `other`; negative if it is above. An infinite time is longer than any other, and
/// of two infinite times neither is shorter.
pub fn reduction(value: f64, other: f64) -> f64 {
    match (value.is_finite(), other.is_finite()) {
        (true, true) => 1.0 - value / other,
        (true, false) => 1.0,
        (false, true) => f64::NEG_INFINITY,
        (false, false) => 0.0,
    }
}

/// The smallest value that at least a share `q` of all does not exceed (nearest rank). The values
/// are in ascending order. `None` without values.
pub fn quantile<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    (!sorted.is_empty()).then(|| sorted[rank(sorted.len(), q)])
}

/// The index of value number `rank`, from 0, if index `i` stands for `counts[i]` equal values.
fn nth_counted(counts: &[usize], rank: usize) -> usize {
    let mut values = 0;
    let has_it = |count: &usize| {
        values += count;
        values > rank
    };
    counts.iter().position(has_it).expect("there are more values than the rank")
}

fn rank(count: usize, q: f64) -> usize {
    // Rounding may put count * q slightly above a whole number.
    ((count as f64 * q - 1e-9).ceil() as usize).clamp(1, count) - 1
}

/// The 97.5 % quantile of Student's t. Beyond ten degrees of freedom it is that of ten, which makes intervals a
/// little too wide.
///
/// # Panics
///
/// With no degree of freedom.
pub fn student(freedom: usize) -> f64 {
    const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    T[freedom.min(T.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hundred() -> Vec<f64> {
        (1..=100).rev().map(f64::from).collect()
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let summary = Summary::of(&[hundred()], 1).unwrap();
        let quantiles = [summary.p50.value, summary.p90, summary.p99.value, summary.p999];
        assert_eq!(quantiles, [50.0, 90.0, 99.0, 100.0]);
        assert_eq!((summary.messages, summary.late, summary.mean.value), (100, 0, 50.5));
    }

    #[test]
    fn undelivered_messages_are_later_than_all_delivered_ones() {
        let mut times = hundred();
        times[0] = f64::INFINITY;
        times[1] = f64::INFINITY;
        let summary = Summary::of(&[times], 1).unwrap();
        assert_eq!((summary.late, summary.p90), (2, 90.0));
        assert!(summary.p99.value.is_infinite() && summary.p99.high.is_infinite());
        assert_eq!(summary.mean.value, f64::INFINITY);
    }

    #[test]
    fn equal_values_have_an_interval_of_zero_width() {
        let summary = Summary::of(&[vec![7.0; 40], vec![7.0; 3]], 9).unwrap();
        assert_eq!((summary.p50, summary.p99, summary.mean), {
            let seven = Estimate::exact(7.0);
            (seven, seven, seven)
        });
        assert_eq!(Estimate::mean_of(&[3.0; 5]), Some(Estimate::exact(3.0)));
        assert_eq!(Estimate::mean_of(&[3.0]), Some(Estimate::exact(3.0)));
    }

    #[test]
    fn an_interval_contains_its_estimate_and_widens_if_repetitions_differ() {
        let same = Summary::of(&vec![hundred(); 5], 3).unwrap();
        let apart: Vec<Vec<f64>> = (0..5)
            .map(|k| hundred().iter().map(|time| time + 40.0 * f64::from(k)).collect())
            .collect();
        let apart = Summary::of(&apart, 3).unwrap();
        for estimate in [same.p50, same.p99, apart.p50, apart.p99, apart.mean] {
            assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        }
        assert!(apart.p50.high - apart.p50.low > 2.0 * (same.p50.high - same.p50.low));
    }

    #[test]
    fn too_few_messages_have_no_interval_and_fewer_have_no_p99() {
        let summary = |count: u32| Summary::of(&[(1..=count).map(f64::from).collect()], 7).unwrap();
        let few = summary(48);
        assert_eq!((few.p99, few.is_longest(0.99)), (Estimate::exact(48.0), true));
        assert!(few.p50.has_interval() && !few.is_longest(0.5) && few.is_longest(0.999));
        assert!(summary(99).is_longest(0.99) && !summary(100).is_longest(0.99));
        assert!(!summary(367).p99.has_interval());
        let enough = summary(368).p99;
        assert!(enough.has_interval() && enough.high <= 368.0, "{enough:?}");
    }

    #[test]
    fn ranks_of_counted_values_equal_those_of_sorted_values() {
        let mut rng = SplitMix64::new(1);
        for _ in 0..100 {
            let counts: Vec<usize> = (0..20).map(|_| rng.below(4) as usize).collect();
            let sorted = (0..).zip(&counts).flat_map(|(index, &count)| vec![index; count]);
            for (rank, index) in sorted.enumerate() {
                assert_eq!(nth_counted(&counts, rank), index);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let times = [hundred(), vec![3.0, 500.0, 20.0]];
        assert_eq!(Summary::of(&times, 5), Summary::of(&times, 5));
        assert_eq!(Summary::of(&[vec![], vec![]], 5), None);
    }

    #[test]
    fn the_mean_of_repetitions_lies_within_students_interval() {
        let estimate = Estimate::mean_of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(estimate.value, 2.0);
        assert!((estimate.high - 2.0 - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_line_is_fitted_with_its_r_squared() {
        let (slope, fit) = linear_fit(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).unwrap();
        assert!((slope - 2.0).abs() < 1e-9 && (fit - 1.0).abs() < 1e-9);
        let (_, fit) = linear_fit(&[(1.0, 3.0), (2.0, 9.0), (4.0, 3.5)]).unwrap();
        assert!(fit < 0.5);
        assert_eq!(linear_fit(&[(1.0, 3.0), (2.0, 5.0)]), None);
    }
}
