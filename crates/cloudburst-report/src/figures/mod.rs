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

/// A figure with its caption.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name of its files, without the extension.
    pub stem: String,
    /// The caption, in whole sentences.
    pub caption: String,
    /// The drawing.
    pub drawing: Drawing,
}
