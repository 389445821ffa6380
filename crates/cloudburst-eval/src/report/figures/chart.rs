//! Charts of dots with error bars, in panels that share the vertical axis.

use super::axis::Scale;
use super::legend::{self, Entry, dot};
use super::shape::{Drawing, GREY, GRID, Place, Shape};
use super::text::{Side, Words, width};
use crate::report::statistics::Estimate;

pub(super) const WIDTH: f64 = 1000.0;
pub(super) const SMALL: f64 = 13.0;
pub(super) const LARGE: f64 = 15.0;
/// Room left of a panel's plot, for the numbers; above, for its title; below, for its axis.
const LEFT: f64 = 72.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 54.0;
const RIGHT: f64 = 16.0;

/// Panels in rows, one legend.
pub(super) struct Chart {
    /// Of the vertical axis, with its unit.
    pub(super) y: &'static str,
    pub(super) columns: usize,
    /// Pixels of a panel's plot, from its top to its axis.
    pub(super) height: f64,
    pub(super) panels: Vec<Panel>,
}

pub(super) struct Panel {
    pub(super) title: String,
    /// Of the horizontal axis, with its unit.
    pub(super) x: &'static str,
    pub(super) across: Across,
    /// Whether the dots of a series are.
    pub(super) joined: bool,
    pub(super) series: Vec<Series>,
}

/// What the horizontal axis is of.
pub(super) enum Across {
    /// Groups side by side; a dot's x is the number of its group, from 0.
    Groups(Vec<String>),
    /// Values; these are written at the axis.
    Values(Vec<f64>),
}

/// The dots of a scheme.
pub(super) struct Series {
    pub(super) entry: Entry,
    /// Infinite where past the deadline: an arrow at the top.
    pub(super) dots: Vec<(f64, Estimate)>,
}

impl Chart {
    pub(super) fn draw(&self) -> Drawing {
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
        let scale = Scale::around(estimates().flat_map(ends));
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
            plot.frame(&mut shapes, &scale, self.y, &panel.title);
            panel.draw(&mut shapes, &plot, &scale);
        }
        let rows = self.panels.len().div_ceil(self.columns);
        Drawing { width: WIDTH, height: top + high * rows as f64 + 4.0, shapes }
    }
}

/// Where a plot is.
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
        let label = Words::new(self.x, (middle, plot.bottom + 40.0), Side::Centre, SMALL);
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
            for (x, estimate) in &series.dots {
                self.dot(shapes, &series.entry, *estimate, |y| place(*x, y));
            }
        }
    }

    /// A dot with its error bar, or an arrow for what is past the deadline.
    fn dot(
        &self,
        shapes: &mut Vec<Shape>,
        entry: &Entry,
        estimate: Estimate,
        place: impl Fn(f64) -> Place,
    ) {
        let at = place(estimate.value);
        let colour = entry.colour;
        if estimate.low < estimate.high {
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

    /// Draws the horizontal axis; gives where an x is, and how far apart the dots at one x are.
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
                // Dots of the first and the last value stand aside of it and have a size.
                let inset = 26.0;
                let x = move |value| left + inset + scale.share(value) * (long - 2.0 * inset);
                for value in values {
                    label(&super::axis_label(*value), x(*value), 5.0);
                }
                (Box::new(x), (32.0 / count).min(6.0))
            }
        }
    }
}
