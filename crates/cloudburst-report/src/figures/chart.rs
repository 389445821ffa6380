//! Charts of dots with error bars, in panels that share the vertical axis.

use super::Figure;
use super::axis::{Axis, Scale};
use super::legend::{self, Entry, dot};
use super::shape::{Drawing, GREY, GRID, Place, Shape};
use super::text::{Side, Words, width};
use crate::numbers;
use crate::statistics::Estimate;

pub(super) const WIDTH: f64 = 1000.0;
pub(super) const SMALL: f64 = 13.0;
pub(super) const LARGE: f64 = 15.0;
/// The margins of a panel's plot: left for the numbers, above for its title, and below for its axis.
const LEFT: f64 = 72.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 54.0;
const RIGHT: f64 = 16.0;
/// The margin at both ends of an axis of values, because dots are drawn beside the first and last values and have a
/// size.
const INSET: f64 = 26.0;
/// A joined series with more dots than this shows only some, which identify its line.
const MOST_DOTS: usize = 40;
const SOME_DOTS: usize = 8;

/// A chart of panels in rows, with one legend.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The label of the vertical axis, with its unit.
    pub y: String,
    /// The kind of the vertical axis.
    pub up: Axis,
    /// The number of panels in a row; at least 1.
    pub columns: usize,
    /// The height of a panel's plot in pixels.
    pub height: f64,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
}

/// A plot with a horizontal axis of its own.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The title above it.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x: String,
    /// The kind of the horizontal axis.
    pub across: Across,
    /// Whether the dots of a series are joined by a line. If there are many, as in a distribution, only
    /// some of the dots are drawn.
    pub joined: bool,
    /// The series. Later ones are drawn over earlier ones.
    pub series: Vec<Series>,
}

/// The kind of a horizontal axis.
#[derive(Clone, Debug)]
pub enum Across {
    /// Groups side by side. The x of a dot is the number of its group, from 0.
    Groups(Vec<String>),
    /// Given values in ascending order, which are the ticks. Dots of several series at a value are drawn
    /// side by side.
    Values(Vec<f64>),
    /// Any values. Dots are drawn exactly at their x.
    Measured(Axis),
}

/// The dots of a scheme.
#[derive(Clone, Debug)]
pub struct Series {
    /// The scheme that they belong to.
    pub entry: Entry,
    /// The dots: x and value. A value past the deadline is infinite, and drawn as an arrow at the top.
    pub dots: Vec<(f64, Estimate)>,
}

impl Chart {
    /// Draws the chart as a figure, whose caption explains the intervals and arrows in it.
    pub fn figure(&self, stem: impl Into<String>, caption: impl Into<String>) -> Figure {
        let dots = || self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.dots);
        let mut caption = caption.into();
        if dots().any(|(_, dot)| dot.has_interval()) {
            caption.push_str(" Bars: 95 % confidence intervals.");
        }
        if dots().any(|(_, dot)| dot.value.is_infinite()) {
            caption.push_str(" An arrow at the top: past the deadline.");
        }
        Figure { stem: stem.into(), caption, drawing: self.draw() }
    }

    /// Draws all panels and the legend.
    pub fn draw(&self) -> Drawing {
        let mut shapes = Vec::new();
        let mut entries: Vec<&Entry> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !entries.iter().any(|entry| entry.name == series.entry.name) {
                entries.push(&series.entry);
            }
        }
        let top = legend::draw(&mut shapes, &entries, LEFT, WIDTH - RIGHT, 12.0);
        let estimates = || self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.dots);
        let ends = |(_, dot): &(f64, Estimate)| [dot.value, dot.low, dot.high];
        let scale = Scale::around(self.up, estimates().flat_map(ends));
        let (wide, high) = (WIDTH / self.columns as f64, ABOVE + self.height + BELOW);
        for (k, panel) in self.panels.iter().enumerate() {
            let (row, column) = (k / self.columns, k % self.columns);
            let left = wide * column as f64 + LEFT;
            let above = top + high * row as f64 + ABOVE;
            let plot = Plot {
                left,
                right: wide * (column as f64 + 1.0) - RIGHT,
                top: above,
                bottom: above + self.height,
            };
            plot.frame(&mut shapes, &scale, &self.y, &panel.title);
            panel.draw(&mut shapes, &plot, &scale);
        }
        let rows = self.panels.len().div_ceil(self.columns);
        Drawing { width: WIDTH, height: top + high * rows as f64 + 4.0, shapes }
    }
}

/// The edges of a plot.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plot {
    fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom - scale.share(value) * (self.bottom - self.top)
    }

    fn frame(&self, shapes: &mut Vec<Shape>, scale: &Scale, y_label: &str, title: &str) {
        let middle = (self.left + self.right) / 2.0;
        let title = Words::new(title, (middle, self.top - 16.0), Side::Centre, LARGE);
        shapes.push(Shape::Words(title));
        let across = f64::midpoint(self.top, self.bottom);
        let label = Words::new(y_label, (self.left - 58.0, across), Side::Centre, SMALL);
        shapes.push(Shape::Words(Words { up: true, ..label }));
        let mut last = f64::INFINITY;
        for tick in scale.ticks() {
            let y = self.y(scale, tick);
            shapes.push(Shape::line((self.left, y), (self.right, y), 1.0, GRID));
            // Where ticks are closer than their numbers are high, some stay without.
            if last - y >= SMALL * 1.25 {
                let at = (self.left - 8.0, y);
                let number = Words::new(scale.label(tick), at, Side::Right, SMALL);
                shapes.push(Shape::Words(number));
                last = y;
            }
        }
        let corner = (self.left, self.bottom);
        shapes.push(Shape::line((self.left, self.top), corner, 1.0, GREY));
        shapes.push(Shape::line(corner, (self.right, self.bottom), 1.0, GREY));
    }
}

impl Panel {
    fn draw(&self, shapes: &mut Vec<Shape>, plot: &Plot, scale: &Scale) {
        let middle = (plot.left + plot.right) / 2.0;
        let label = Words::new(self.x.as_str(), (middle, plot.bottom + 40.0), Side::Centre, SMALL);
        shapes.push(Shape::Words(label));
        let (places, apart) = self.across(shapes, plot);
        let count = self.series.len() as f64;
        for (k, series) in self.series.iter().enumerate() {
            let aside = (k as f64 - (count - 1.0) / 2.0) * apart;
            let place = |x: f64, y: f64| (places(x) + aside, plot.y(scale, y));
            if self.joined {
                let finite = series.dots.iter().filter(|(_, dot)| dot.value.is_finite());
                let places: Vec<Place> = finite.map(|(x, dot)| place(*x, dot.value)).collect();
                if places.len() > 1 {
                    shapes.push(Shape::Line { places, width: 1.5, colour: series.entry.colour });
                }
            }
            let crowded = self.joined && series.dots.len() > MOST_DOTS;
            let step = if crowded { series.dots.len() / SOME_DOTS } else { 1 };
            for (x, estimate) in series.dots.iter().step_by(step) {
                self.dot(shapes, &series.entry, *estimate, |y| place(*x, y));
            }
        }
    }

    /// Draws a dot with its error bar, or an arrow for a value past the deadline.
    fn dot(
        &self,
        shapes: &mut Vec<Shape>,
        entry: &Entry,
        estimate: Estimate,
        place: impl Fn(f64) -> Place,
    ) {
        let at = place(estimate.value);
        let colour = entry.colour;
        if estimate.has_interval() {
            let (low, high) = (place(estimate.low), place(estimate.high));
            shapes.push(Shape::line(low, high, 1.0, colour));
            for end in [low, high] {
                shapes.push(Shape::line((end.0 - 3.0, end.1), (end.0 + 3.0, end.1), 1.0, colour));
            }
        }
        if estimate.value.is_finite() {
            dot(shapes, entry, at);
        } else {
            let corners = vec![at, (at.0 - 5.0, at.1 + 10.0), (at.0 + 5.0, at.1 + 10.0)];
            shapes.push(Shape::Area { corners, colour });
        }
    }

    /// Draws the horizontal axis. Returns the place of an x, and the distance between dots at the same x.
    fn across(&self, shapes: &mut Vec<Shape>, plot: &Plot) -> (Box<dyn Fn(f64) -> f64>, f64) {
        let (left, long) = (plot.left, plot.right - plot.left);
        let count = self.series.len().max(1) as f64;
        let mut end = f64::NEG_INFINITY;
        let mut label = |text: &str, x: f64, side: f64| {
            shapes.push(Shape::line((x, plot.bottom), (x, plot.bottom + side), 1.0, GREY));
            let half = width(text, SMALL) / 2.0;
            if x - half > end + 4.0 {
                let at = (x, plot.bottom + 17.0);
                shapes.push(Shape::Words(Words::new(text, at, Side::Centre, SMALL)));
                end = x + half;
            }
        };
        match &self.across {
            Across::Groups(groups) => {
                let wide = long / groups.len().max(1) as f64;
                for (k, group) in groups.iter().enumerate() {
                    label(group, left + (k as f64 + 0.5) * wide, 4.0);
                }
                for k in 1..groups.len() {
                    let x = left + k as f64 * wide;
                    shapes.push(Shape::line((x, plot.top), (x, plot.bottom), 1.0, GRID));
                }
                let apart = (wide * 0.82 / count).min(26.0);
                (Box::new(move |x| left + (x + 0.5) * wide), apart)
            }
            Across::Values(values) => {
                let ends = (values.first().copied(), values.last().copied());
                let scale = Scale::between(ends.0.unwrap_or(0.0), ends.1.unwrap_or(1.0));
                let x = move |value| left + INSET + scale.share(value) * (long - 2.0 * INSET);
                for value in values {
                    label(&numbers::value(*value), x(*value), 5.0);
                }
                (Box::new(x), (32.0 / count).min(6.0))
            }
            Across::Measured(axis) => {
                let values = self.series.iter().flat_map(|series| &series.dots).map(|dot| dot.0);
                let scale = Scale::around(*axis, values);
                let ticks: Vec<_> =
                    scale.ticks().into_iter().map(|tick| (tick, scale.label(tick))).collect();
                let x = move |value| left + INSET + scale.share(value) * (long - 2.0 * INSET);
                for (tick, words) in &ticks {
                    label(words, x(*tick), 5.0);
                }
                for (tick, _) in &ticks {
                    let x = x(*tick);
                    shapes.push(Shape::line((x, plot.top), (x, plot.bottom), 1.0, GRID));
                }
                (Box::new(x), 0.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of values that are not above each, as joined dots.
    fn distribution(index: usize, spread: f64) -> Series {
        let dot = |k: u32| (spread.powi(k as i32), Estimate::exact(f64::from(k) / 200.0));
        Series {
            entry: Entry::nth(index, format!("scheme {index}")),
            dots: (1..=200).map(dot).collect(),
        }
    }

    fn chart(across: Across, series: Vec<Series>) -> Chart {
        let x = "completion time (ms)".to_owned();
        let panel = Panel { title: "A panel".to_owned(), x, across, joined: true, series };
        let panels = vec![panel.clone(), panel];
        Chart {
            y: "share of messages".to_owned(),
            up: Axis::Linear,
            columns: 2,
            height: 300.0,
            panels,
        }
    }

    fn discs(chart: &Chart) -> Vec<Place> {
        let disc = |shape: &Shape| match shape {
            Shape::Disc { centre, .. } => Some(*centre),
            _ => None,
        };
        chart.draw().shapes.iter().filter_map(disc).collect()
    }

    #[test]
    fn distributions_over_decades_are_lines_with_few_dots() {
        let series = vec![distribution(0, 1.05), distribution(1, 1.06)];
        for axis in [Axis::Fitting, Axis::Linear, Axis::Logarithmic] {
            let chart = chart(Across::Measured(axis), series.clone());
            assert_eq!(chart.draw().flaws(), [""; 0], "{axis:?}");
            // Those of the first series in two panels, and one in the legend.
            assert_eq!(discs(&chart).len(), 2 * SOME_DOTS + 1);
        }
    }

    #[test]
    fn dots_of_measured_values_stand_where_they_are() {
        let at = |index| Series {
            entry: Entry::nth(index, format!("scheme {index}")),
            dots: [1.0, 10.0, 100.0].map(|x| (x, Estimate::exact(0.5))).to_vec(),
        };
        let circles = |series| {
            let chart = chart(Across::Measured(Axis::Logarithmic), series);
            let discs = discs(&chart);
            discs[discs.len() - 3..].iter().map(|place| place.0).collect::<Vec<_>>()
        };
        let alone = circles(vec![at(0)]);
        assert!((alone[2] - alone[1] - (alone[1] - alone[0])).abs() < 1e-6);
        assert_eq!(alone, circles(vec![at(0), at(1), at(2)]));
    }

    #[test]
    fn captions_explain_what_is_drawn() {
        let late = (3.0, Estimate::exact(f64::INFINITY));
        let near = (2.0, Estimate { value: 2.0, low: 1.0, high: 3.0 });
        let series = |dots| vec![Series { entry: Entry::nth(0, "one"), dots }];
        let caption = |dots| {
            chart(Across::Values(vec![2.0, 3.0]), series(dots)).figure("stem", "It is.").caption
        };
        assert_eq!(caption(vec![(2.0, Estimate::exact(1.0))]), "It is.");
        assert_eq!(
            caption(vec![late, near]),
            "It is. Bars: 95 % confidence intervals. An arrow at the top: past the deadline."
        );
    }
}
