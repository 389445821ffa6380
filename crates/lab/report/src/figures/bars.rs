//! Bar charts with a note at the end of each bar.

use super::axis::Scale;
use super::frame::{self, ABOVE, Area, BELOW, DOWN, GREY, Painted, SMALL, WIDTH, small, width};
use super::{Entry, Figure, Plot};
use crate::statistics::Estimate;
use plotters::prelude::*;

/// The distance between bars, the half of their height, and the rim of hollow ones.
const EACH: i32 = 60;
const HALF: i32 = 18;
const RIM: i32 = 6;

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
    /// The chart as a figure, whose caption explains the intervals in it.
    pub fn figure(&self, stem: impl Into<String>, caption: impl Into<String>) -> Figure {
        let mut caption = caption.into();
        if self.bars.iter().any(|bar| bar.value.has_interval()) {
            caption.push_str(" Grey: 95 % confidence intervals.");
        }
        let height = ABOVE + EACH * self.bars.len() as i32 + BELOW + 8;
        Figure { stem: stem.into(), caption, height, plot: Plot::Bars(self.clone()) }
    }

    pub(super) fn paint<DB: DrawingBackend>(&self, area: &Area<DB>) -> Painted<DB> {
        let widest = |text: fn(&Bar) -> &str| {
            self.bars.iter().map(|bar| width(text(bar))).max().unwrap_or(0)
        };
        let left = 48 + widest(|bar| &bar.entry.name);
        let right = 48 + widest(|bar| &bar.note);
        let ends = self.bars.iter().flat_map(|bar| [bar.value.value, bar.value.high]);
        let highest = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        let long = f64::from(WIDTH - left - right);
        let x = Scale::from_zero(highest).on(long, 0.0, |label| width(label) + SMALL);
        let names = self.bars.iter().rev().map(|bar| bar.entry.name.clone());
        let mut y = Scale::groups(names.collect());
        y.lines.clear();
        let sides = (left, right);
        let plot = frame::paint(area, &self.title, (x, &self.x), (y, ""), sides)?;
        let pixels = area.use_screen_coord();
        for (k, Bar { entry, value, note }) in self.bars.iter().rev().enumerate() {
            let x = |value| plot.backend_coord(&(value, k as f64)).0;
            let y = plot.backend_coord(&(0.0, k as f64)).1;
            let start = x(0.0);
            let end = x(value.value);
            let bar = [(start, y - HALF), (end, y + HALF)];
            pixels.draw(&Rectangle::new(bar, entry.rgb().filled()))?;
            if entry.hollow {
                let inner = (start + RIM).min(end);
                let inside = [(inner, y - HALF + RIM), ((end - RIM).max(inner), y + HALF - RIM)];
                pixels.draw(&Rectangle::new(inside, WHITE.filled()))?;
            }
            if value.has_interval() {
                // Grey with a white rim, which is visible on dark bars and on the background.
                let low = x(value.low);
                let high = x(value.high);
                let end = |x| [(x, y - 8), (x, y + 8)];
                for (thick, colour) in [(8, WHITE), (4, GREY)] {
                    for line in [[(low, y), (high, y)], end(low), end(high)] {
                        pixels.draw(&PathElement::new(line, colour.stroke_width(thick)))?;
                    }
                }
            }
            let at = (x(value.value.max(value.high)) + 20, y + DOWN);
            pixels.draw(&Text::new(&**note, at, small()))?;
        }
        Ok(())
    }
}
