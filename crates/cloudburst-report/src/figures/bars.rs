//! Bar charts with a note at the end of each bar.

use super::Figure;
use super::axis::Scale;
use super::chart::{LARGE, SMALL, WIDTH};
use super::legend::Entry;
use super::shape::{BLACK, Drawing, GREY, GRID, Shape, WHITE};
use super::text::{Side, Words, width};
use crate::statistics::Estimate;

/// A chart of horizontal bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The title.
    pub title: String,
    /// The label of the axis, with its unit.
    pub x: String,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
}

/// A bar with its interval.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The scheme that it belongs to.
    pub entry: Entry,
    /// The value, which is infinite past the deadline.
    pub value: Estimate,
    /// The text at its end.
    pub note: String,
}

impl Bars {
    /// Draws the chart as a figure, whose caption explains the intervals in it.
    pub fn figure(&self, stem: impl Into<String>, caption: impl Into<String>) -> Figure {
        let mut caption = caption.into();
        if self.bars.iter().any(|bar| bar.value.has_interval()) {
            caption.push_str(" Grey: 95 % confidence intervals.");
        }
        Figure { stem: stem.into(), caption, drawing: self.draw() }
    }

    /// Draws the chart.
    pub fn draw(&self) -> Drawing {
        let mut shapes = Vec::new();
        let name = |bar: &Bar| width(&bar.entry.name, SMALL);
        let note = |bar: &Bar| width(&bar.note, SMALL);
        let left = 24.0 + self.bars.iter().map(name).fold(0.0, f64::max);
        let right = WIDTH - 24.0 - self.bars.iter().map(note).fold(0.0, f64::max);
        let (top, each) = (40.0, 30.0);
        let bottom = top + each * self.bars.len() as f64 + 4.0;
        let title = Words::new(self.title.as_str(), (WIDTH / 2.0, 18.0), Side::Centre, LARGE);
        shapes.push(Shape::Words(title));
        let ends = self.bars.iter().flat_map(|bar| [bar.value.value, bar.value.high]);
        let highest = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        let scale = Scale::from_zero(highest);
        let x = |value: f64| left + scale.share(value) * (right - left);
        for tick in scale.ticks() {
            shapes.push(Shape::line((x(tick), top), (x(tick), bottom), 1.0, GRID));
            let at = (x(tick), bottom + 15.0);
            shapes.push(Shape::Words(Words::new(scale.label(tick), at, Side::Centre, SMALL)));
        }
        for (k, bar) in self.bars.iter().enumerate() {
            let y = top + each * (k as f64 + 0.5) + 2.0;
            let name = Words::new(bar.entry.name.as_str(), (left - 8.0, y), Side::Right, SMALL);
            shapes.push(Shape::Words(name));
            let Estimate { value, low, high } = bar.value;
            let end = (x(value), y + 9.0);
            shapes.push(Shape::rectangle((left, y - 9.0), end, bar.entry.colour));
            if bar.entry.hollow {
                let inner = ((left + 3.0).min(end.0), y - 6.0);
                let end = ((end.0 - 3.0).max(inner.0), y + 6.0);
                shapes.push(Shape::rectangle(inner, end, WHITE));
            }
            if bar.value.has_interval() {
                // Grey with a white rim, which is visible on dark bars and on the background.
                for (thick, colour) in [(4.0, WHITE), (2.0, GREY)] {
                    shapes.push(Shape::line((x(low), y), (x(high), y), thick, colour));
                }
                for end in [x(low), x(high)] {
                    shapes.push(Shape::line((end, y - 4.0), (end, y + 4.0), 2.0, GREY));
                }
            }
            let at = (x(value.max(high)) + 10.0, y);
            shapes.push(Shape::Words(Words::new(bar.note.as_str(), at, Side::Left, SMALL)));
        }
        shapes.push(Shape::line((left, top), (left, bottom), 1.0, BLACK));
        let label =
            Words::new(self.x.as_str(), ((left + right) / 2.0, bottom + 38.0), Side::Centre, SMALL);
        shapes.push(Shape::Words(label));
        Drawing { width: WIDTH, height: bottom + 54.0, shapes }
    }
}
