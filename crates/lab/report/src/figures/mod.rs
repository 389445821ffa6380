//! Figures: charts of dots and lines, and charts of bars, drawn by plotters as SVG and PNG.

mod axis;
mod bars;
mod chart;
mod flaws;
mod frame;
mod legend;

pub use axis::Axis;
pub use bars::{Bar, Bars};
pub use chart::{Across, Chart, Panel, Series};
pub use legend::{Colour, Entry, Form};

use frame::Painted;
use plotters::prelude::*;
use std::error::Error;

/// A figure with its caption.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The name of its files, without the extension.
    pub stem: String,
    /// The caption, in whole sentences.
    pub caption: String,
    /// The height of the PNG in pixels.
    height: i32,
    plot: Plot,
}

#[derive(Clone, Debug)]
enum Plot {
    Bars(Bars),
    Chart(Chart),
}

impl Figure {
    /// The figure as SVG.
    ///
    /// # Errors
    ///
    /// Why it cannot be drawn.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut svg = String::new();
        let (width, height) = self.size();
        self.paint(SVGBackend::with_string(&mut svg, (width, height)))?;
        let shown = |width, height| format!("<svg width=\"{width}\" height=\"{height}\"");
        Ok(svg.replacen(&shown(width, height), &shown(width / 2, height / 2), 1))
    }

    /// The figure as PNG, with twice the resolution of the SVG.
    ///
    /// # Errors
    ///
    /// Why it cannot be drawn.
    pub fn png(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        let (width, height) = self.size();
        let mut rgb = vec![255; (width * height * 3) as usize];
        self.paint(BitMapBackend::with_buffer(&mut rgb, (width, height)))?;
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&rgb)?;
        Ok(file)
    }

    /// The width and height of the PNG.
    fn size(&self) -> (u32, u32) {
        (frame::WIDTH as u32, self.height as u32)
    }

    fn paint<DB: DrawingBackend>(&self, backend: DB) -> Painted<DB> {
        let area = backend.into_drawing_area();
        area.fill(&WHITE)?;
        match &self.plot {
            Plot::Bars(bars) => bars.paint(&area)?,
            Plot::Chart(chart) => chart.paint(&area)?,
        }
        area.present()
    }
}
