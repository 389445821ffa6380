//! Figures: charts of dots and lines, charts of bars, and their drawing as SVG and PNG.

mod axis;
mod bars;
mod chart;
mod files;
mod legend;
mod shape;
mod text;

pub use axis::Axis;
pub use bars::{Bar, Bars};
pub use chart::{Across, Chart, Panel, Series};
pub use legend::{Entry, Form};
pub use shape::{Colour, Drawing};

/// A figure and what is said below it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its file, without the ending.
    pub stem: String,
    /// In whole sentences.
    pub caption: String,
    /// What is shown.
    pub drawing: Drawing,
}
