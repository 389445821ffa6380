//! The scales and ticks of axes.

use crate::numbers;

/// The kind of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Logarithmic if the largest value is at least 8 times the smallest, otherwise linear from 0.
    #[default]
    Fitting,
    /// Linear from 0.
    Linear,
    /// Logarithmic from below the smallest positive value. Other values are drawn at the low end.
    Logarithmic,
}

/// A range of values along an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// A scale for these values, of which only positive and finite ones count.
    pub(super) fn around(axis: Axis, values: impl Iterator<Item = f64>) -> Self {
        let shown: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
        let highest = shown.iter().copied().reduce(f64::max).unwrap_or(1.0);
        let lowest = shown.iter().copied().reduce(f64::min).unwrap_or(1.0);
        match axis {
            Axis::Fitting if highest >= 8.0 * lowest => Self::logarithmic(lowest, highest),
            Axis::Fitting | Axis::Linear => Self::from_zero(highest),
            Axis::Logarithmic => Self::logarithmic(lowest, highest),
        }
    }

    /// A logarithmic scale between round numbers around two positive values.
    fn logarithmic(lowest: f64, highest: f64) -> Self {
        let grid = |value: f64| value.log10().floor() as i32;
        let marks = || (grid(lowest) - 1..=grid(highest) + 1).flat_map(one_two_five);
        let low = marks().filter(|mark| *mark <= lowest).last().unwrap_or(lowest);
        let high = marks().find(|mark| *mark >= highest && *mark > low).unwrap_or(10.0 * highest);
        Self { low, high, logarithmic: true }
    }

    /// A linear scale from 0 to a round number that is not below `highest`.
    pub(super) fn from_zero(highest: f64) -> Self {
        let step = step(highest);
        let high = (highest / step - 1e-9).ceil().max(1.0) * step;
        Self { low: 0.0, high, logarithmic: false }
    }

    /// A linear scale between two values.
    pub(super) fn between(low: f64, high: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 }, logarithmic: false }
    }

    /// The position of `value`, from 0.0 to 1.0. Values outside the range are at the nearer end.
    pub(super) fn share(&self, value: f64) -> f64 {
        // The logarithm of a value of 0 or less is not a number.
        let value = value.max(self.low);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// The values at which there are ticks.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.high);
            let count = (self.high / step).round() as u32;
            return (0..=count).map(|k| f64::from(k) * step).collect();
        }
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let all = decades.clone().flat_map(one_two_five);
        let inside = |mark: &f64| (self.low * 0.999..=self.high * 1.001).contains(mark);
        let few = self.high / self.low > 5e3;
        if few {
            return decades.map(|decade| 10_f64.powi(decade)).filter(inside).collect();
        }
        all.filter(inside).collect()
    }

    /// The label of a tick, without trailing zeros.
    pub(super) fn label(&self, tick: f64) -> String {
        let text = numbers::figure(tick);
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    }
}

fn one_two_five(decade: i32) -> impl Iterator<Item = f64> {
    [1.0, 2.0, 5.0].into_iter().map(move |digit| digit * 10_f64.powi(decade))
}

/// The distance between ticks, such that at most six are above 0 and up to `highest`.
fn step(highest: f64) -> f64 {
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let decade = highest.log10().floor() as i32 - 1;
    let steps = (decade..=decade + 2).flat_map(one_two_five);
    steps.into_iter().find(|step| highest / step <= 6.0).unwrap_or(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_ranges_are_logarithmic_and_narrow_ones_begin_at_0() {
        let wide = Scale::around(Axis::Fitting, [0.3, 5.0, 450.0, f64::INFINITY, 0.0].into_iter());
        assert_eq!(wide, Scale { low: 0.2, high: 500.0, logarithmic: true });
        assert_eq!((wide.share(-1.0), wide.share(0.2), wide.share(500.0)), (0.0, 0.0, 1.0));
        let narrow = Scale::around(Axis::Fitting, [3.0, 5.1].into_iter());
        assert_eq!(narrow, Scale { low: 0.0, high: 6.0, logarithmic: false });
        assert_eq!((narrow.share(f64::INFINITY), narrow.share(3.0)), (1.0, 0.5));
    }

    #[test]
    fn ticks_are_few_round_and_inside() {
        for highest in [0.007, 0.5, 1.0, 5.9, 73.0, 2000.0] {
            let ticks = Scale::from_zero(highest).ticks();
            assert!((3..=7).contains(&ticks.len()), "{highest}: {ticks:?}");
            assert!(*ticks.last().unwrap() >= highest);
        }
        let scale = Scale::around(Axis::Fitting, [0.3, 450.0].into_iter());
        let labels: Vec<_> = scale.ticks().iter().map(|tick| scale.label(*tick)).collect();
        assert_eq!(labels.join(" "), "0.2 0.5 1 2 5 10 20 50 100 200 500");
        let decades = Scale::around(Axis::Fitting, [0.001, 4000.0].into_iter());
        assert_eq!(decades.ticks().len(), 7);
    }

    #[test]
    fn an_axis_may_be_said_to_be_logarithmic_or_linear() {
        let narrow = Scale::around(Axis::Logarithmic, [3.0, 5.1].into_iter());
        assert_eq!(narrow, Scale { low: 2.0, high: 10.0, logarithmic: true });
        let wide = Scale::around(Axis::Linear, [0.3, 450.0].into_iter());
        assert_eq!(wide, Scale { low: 0.0, high: 500.0, logarithmic: false });
    }

    #[test]
    fn an_axis_of_nothing_or_of_one_value_has_a_length() {
        for scale in [
            Scale::around(Axis::Fitting, [].into_iter()),
            Scale::around(Axis::Logarithmic, [].into_iter()),
            Scale::from_zero(0.0),
            Scale::between(3.0, 3.0),
        ] {
            assert!(scale.low < scale.high, "{scale:?}");
        }
    }
}
