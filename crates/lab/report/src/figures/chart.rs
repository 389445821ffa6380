//! Charts of dots with error bars, in panels that share the vertical axis.

use super::Figure;
use super::axis::{Axis, Scale};
use super::frame::{self, ABOVE, Area, BELOW, DOWN, Painted, RIGHT, SMALL, WIDTH, small, width};
use super::legend::{self, Entry, Form, Placed};
use crate::statistics::Estimate;
use plotters::prelude::*;

/// The margin on the left of a plot, for the numbers of its axis.
const LEFT: i32 = 144;
/// The margin at both ends of an axis of values, because dots are drawn beside the first and last values and have a
/// size.
const INSET: f64 = 52.0;
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
    /// The chart as a figure, whose caption explains the intervals and arrows in it.
    pub fn figure(&self, stem: impl Into<String>, caption: impl Into<String>) -> Figure {
        let mut caption = caption.into();
        if self.dots().any(|dot| dot.has_interval()) {
            caption.push_str(" Bars: 95 % confidence intervals.");
        }
        if self.dots().any(|dot| dot.value.is_infinite()) {
            caption.push_str(" An arrow at the top: past the deadline.");
        }
        let panel = ABOVE + 2 * self.height as i32 + BELOW;
        let height = self.legend().1 + self.rows() as i32 * panel + 8;
        Figure { stem: stem.into(), caption, height, plot: super::Plot::Chart(self.clone()) }
    }

    fn series(&self) -> impl Iterator<Item = &Series> {
        self.panels.iter().flat_map(|panel| &panel.series)
    }

    fn dots(&self) -> impl Iterator<Item = Estimate> {
        self.series().flat_map(|series| &series.dots).map(|dot| dot.1)
    }

    /// The entries of the legend with the places of their dots, and its height.
    fn legend(&self) -> (Vec<Placed<'_>>, i32) {
        legend::layout(self.series().map(|series| &series.entry), LEFT..WIDTH - RIGHT)
    }

    fn rows(&self) -> usize {
        self.panels.len().div_ceil(self.columns).max(1)
    }

    pub(super) fn paint<DB: DrawingBackend>(&self, area: &Area<DB>) -> Painted<DB> {
        let (entries, top) = self.legend();
        for (entry, (x, y)) in entries {
            entry.dot(area, (x, y))?;
            area.draw(&Text::new(&*entry.name, (x + 26, y + DOWN), small()))?;
        }
        let (_, area) = area.split_vertically(top);
        let ends = self.dots().flat_map(|dot| [dot.value, dot.low, dot.high]);
        let y = Scale::around(self.up, ends).on(2.0 * self.height, 0.0, |_| SMALL);
        let wide = WIDTH / self.columns as i32 - LEFT - RIGHT;
        let areas = area.split_evenly((self.rows(), self.columns));
        for (panel, area) in self.panels.iter().zip(areas) {
            let (x, apart) = panel.across(f64::from(wide));
            let x = (x, &*panel.x);
            let y = (y.clone(), &*self.y);
            let plot = frame::paint(&area, &panel.title, x, y, (LEFT, RIGHT))?;
            panel.paint(&area.use_screen_coord(), |at| plot.backend_coord(&at), apart)?;
        }
        Ok(())
    }
}

impl Panel {
    /// The horizontal scale, and the distance between dots at the same x.
    fn across(&self, wide: f64) -> (Scale, f64) {
        let count = self.series.len().max(1) as f64;
        let (scale, inset, apart) = match &self.across {
            Across::Groups(groups) => {
                let each = wide / groups.len().max(1) as f64;
                (Scale::groups(groups.clone()), 0.0, (each * 0.82 / count).min(52.0))
            }
            Across::Values(values) => (Scale::at(values), INSET, (64.0 / count).min(12.0)),
            Across::Measured(axis) => {
                let xs = self.series.iter().flat_map(|series| &series.dots).map(|dot| dot.0);
                (Scale::around(*axis, xs), INSET, 0.0)
            }
        };
        (scale.on(wide, inset, |label| width(label) + 8), apart)
    }

    /// Draws the series, of which those at the same x are `apart`.
    fn paint<DB: DrawingBackend>(
        &self,
        area: &Area<DB>,
        place: impl Fn((f64, f64)) -> (i32, i32),
        apart: f64,
    ) -> Painted<DB> {
        let middle = (self.series.len() as f64 - 1.0) / 2.0;
        for (k, Series { entry, dots }) in self.series.iter().enumerate() {
            let aside = ((k as f64 - middle) * apart).round() as i32;
            let place = |x: f64, y: f64| {
                let (x, y) = place((x, y));
                (x + aside, y)
            };
            if self.joined {
                let finite = dots.iter().filter(|(_, dot)| dot.value.is_finite());
                let line: Vec<_> = finite.map(|(x, dot)| place(*x, dot.value)).collect();
                if line.len() > 1 {
                    area.draw(&PathElement::new(line, entry.rgb().stroke_width(3)))?;
                }
            }
            let crowded = self.joined && dots.len() > MOST_DOTS;
            let step = if crowded { dots.len() / SOME_DOTS } else { 1 };
            for (x, dot) in dots.iter().step_by(step) {
                let mut entry = entry.clone();
                let mut at = place(*x, dot.value);
                if dot.value.is_infinite() {
                    entry.form = Form::Triangle;
                    entry.hollow = false;
                    at.1 += 12;
                }
                if dot.has_interval() {
                    let low = place(*x, dot.low).1;
                    let high = place(*x, dot.high).1;
                    let style = entry.rgb().stroke_width(2);
                    let wide = 10;
                    area.draw(&ErrorBar::new_vertical(at.0, low, at.1, high, style, wide))?;
                }
                entry.dot(area, at)?;
            }
        }
        Ok(())
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

    /// The x of all discs.
    fn discs(chart: &Chart) -> Vec<i32> {
        let svg = chart.figure("stem", "").svg().unwrap();
        let xs = svg.split("<circle cx=\"").skip(1);
        xs.map(|circle| circle.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn distributions_over_decades_are_lines_with_few_dots() {
        let series = vec![distribution(0, 1.05), distribution(1, 1.06)];
        for axis in [Axis::Fitting, Axis::Linear, Axis::Logarithmic] {
            let chart = chart(Across::Measured(axis), series.clone());
            assert_eq!(chart.figure("stem", "").flaws(), [""; 0], "{axis:?}");
            // Those of the first series in two panels, and one in the legend.
            assert_eq!(discs(&chart).len(), 2 * SOME_DOTS + 1);
        }
    }

    #[test]
    fn dots_of_measured_values_are_placed_to_scale() {
        let at = |index| Series {
            entry: Entry::nth(index, format!("scheme {index}")),
            dots: [1.0, 10.0, 100.0].map(|x| (x, Estimate::exact(0.5))).to_vec(),
        };
        let circles = |series| {
            let chart = chart(Across::Measured(Axis::Logarithmic), series);
            let discs = discs(&chart);
            discs[discs.len() - 3..].to_vec()
        };
        let alone = circles(vec![at(0)]);
        assert!((alone[2] - alone[1]).abs_diff(alone[1] - alone[0]) <= 1, "{alone:?}");
        assert_eq!(alone, circles(vec![at(0), at(1), at(2)]));
    }

    #[test]
    fn captions_explain_bars_and_arrows() {
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
