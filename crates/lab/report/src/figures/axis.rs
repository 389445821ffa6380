//! The scales, ticks and labels of axes.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::data::float::pretty_print_float;
use std::ops::Range;

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

/// A range of values along an axis, with ticks.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// The share of the axis that is left free at each end.
    margin: f64,
    /// The values at which there are lines across the plot.
    pub(super) lines: Vec<f64>,
    /// The values that have a label.
    labels: Vec<(f64, String)>,
}

impl Scale {
    /// A scale with labelled ticks.
    fn new(low: f64, high: f64, ticks: Vec<f64>) -> Self {
        let labels = ticks.iter().map(|tick| (*tick, pretty_print_float(*tick, false))).collect();
        Self { low, high, logarithmic: false, margin: 0.0, lines: ticks, labels }
    }

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
        let decades = grid(lowest) - 1..=grid(highest) + 1;
        let marks: Vec<f64> = decades.flat_map(one_two_five).collect();
        let low = marks.iter().copied().rfind(|mark| *mark <= lowest).unwrap_or(lowest);
        let high = marks.iter().copied().find(|mark| *mark >= highest && *mark > low);
        let high = high.unwrap_or(10.0 * highest);
        let few = if high / low > 5e3 { 3 } else { 1 };
        let ticks = marks.into_iter().step_by(few).filter(|tick| (low..=high).contains(tick));
        Self { logarithmic: true, ..Self::new(low, high, ticks.collect()) }
    }

    /// A linear scale from 0 to a round number that is not below `highest`.
    pub(super) fn from_zero(highest: f64) -> Self {
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let step = RangedCoordf64::from(0.0..highest).key_points(6)[1];
        let count = (highest / step - 1e-9).ceil();
        let ticks = (0..=count as u32).map(|k| f64::from(k) * step);
        Self::new(0.0, count * step, ticks.collect())
    }

    /// A linear scale between the first and the last of these values, which are the ticks.
    pub(super) fn at(values: &[f64]) -> Self {
        let low = values.first().copied().unwrap_or(0.0);
        let high = values.last().copied().filter(|high| *high > low).unwrap_or(low + 1.0);
        Self::new(low, high, values.to_vec())
    }

    /// A scale of groups side by side, whose values are their numbers from 0.
    pub(super) fn groups(names: Vec<String>) -> Self {
        let lines = (1..names.len()).map(|k| k as f64 - 0.5).collect();
        let scale = Self::new(-0.5, names.len().max(1) as f64 - 0.5, lines);
        let labels = names.into_iter().enumerate().map(|(k, name)| (k as f64, name)).collect();
        Self { labels, ..scale }
    }

    /// The scale on an axis of this length, with a margin at each end, and without the labels that would
    /// overlap others.
    pub(super) fn on(self, length: f64, margin: f64, size: impl Fn(&str) -> i32) -> Self {
        let mut scale = Self { margin: margin / length, ..self };
        let mut end = f64::NEG_INFINITY;
        for (value, label) in std::mem::take(&mut scale.labels) {
            let at = scale.share(value) * length;
            let half = f64::from(size(&label)) / 2.0;
            if at - half >= end {
                end = at + half;
                scale.labels.push((value, label));
            }
        }
        scale
    }

    /// The position of `value`, from 0.0 to 1.0. Values outside the range are at the nearer end.
    fn share(&self, value: f64) -> f64 {
        // The logarithm of a value of 0 or less is not a number.
        let value = value.max(self.low);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.margin + share.clamp(0.0, 1.0) * (1.0 - 2.0 * self.margin)
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (self.share(*value) * f64::from(to - from)).round() as i32
    }

    /// Light points are the lines, bold ones the labels.
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return self.lines.clone();
        }
        self.labels.iter().map(|label| label.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let label = self.labels.iter().find(|label| label.0 == *value);
        label.map_or_else(String::new, |label| label.1.clone())
    }
}

fn one_two_five(decade: i32) -> impl Iterator<Item = f64> {
    [1.0, 2.0, 5.0].into_iter().map(move |digit| digit * 10_f64.powi(decade))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(axis: Axis, values: &[f64]) -> Scale {
        Scale::around(axis, values.iter().copied())
    }

    fn limits(scale: &Scale) -> (f64, f64, bool) {
        (scale.low, scale.high, scale.logarithmic)
    }

    fn labels(scale: &Scale) -> String {
        scale.labels.iter().map(|label| &*label.1).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn wide_ranges_are_logarithmic_and_narrow_ones_begin_at_0() {
        let wide = around(Axis::Fitting, &[0.3, 5.0, 450.0, f64::INFINITY, 0.0]);
        assert_eq!(limits(&wide), (0.2, 500.0, true));
        assert_eq!([-1.0, 0.2, 500.0].map(|value| wide.share(value)), [0.0, 0.0, 1.0]);
        let narrow = around(Axis::Fitting, &[3.0, 5.1]);
        assert_eq!(limits(&narrow), (0.0, 6.0, false));
        assert_eq!([f64::INFINITY, 3.0].map(|value| narrow.share(value)), [1.0, 0.5]);
    }

    #[test]
    fn the_caller_may_choose_a_logarithmic_or_linear_axis() {
        assert_eq!(limits(&around(Axis::Logarithmic, &[3.0, 5.1])), (2.0, 10.0, true));
        assert_eq!(limits(&around(Axis::Linear, &[0.3, 450.0])), (0.0, 500.0, false));
    }

    #[test]
    fn an_axis_of_no_value_or_one_value_has_a_length() {
        for scale in [
            around(Axis::Fitting, &[]),
            around(Axis::Logarithmic, &[]),
            Scale::from_zero(0.0),
            Scale::at(&[3.0]),
            Scale::groups(Vec::new()),
        ] {
            assert!(scale.low < scale.high, "{scale:?}");
        }
    }

    #[test]
    fn ticks_are_few_round_and_inside() {
        for highest in [0.007, 0.5, 1.0, 5.9, 73.0, 2000.0] {
            let ticks = Scale::from_zero(highest).lines;
            assert!((3..=7).contains(&ticks.len()), "{highest}: {ticks:?}");
            assert!(*ticks.last().unwrap() >= highest);
        }
        let ticks = labels(&around(Axis::Fitting, &[0.3, 450.0]));
        assert_eq!(ticks, "0.2 0.5 1 2 5 10 20 50 100 200 500");
        assert_eq!(around(Axis::Fitting, &[0.001, 4000.0]).lines.len(), 7);
    }

    #[test]
    fn labels_that_would_overlap_are_left_out() {
        let on = |length| labels(&Scale::at(&[1.0, 2.0, 3.0, 8.0]).on(length, 10.0, |_| 20));
        assert_eq!(on(300.0), "1 2 3 8");
        assert_eq!(on(120.0), "1 3 8");
    }
}
