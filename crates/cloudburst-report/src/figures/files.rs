//! Drawings as SVG and PNG.

use super::shape::Drawing;
use core::convert::Infallible;
use plotters_backend::{BackendColor, BackendCoord, DrawingBackend, DrawingErrorKind};
use plotters_svg::SVGBackend;

/// The resolution of a PNG: its pixels per pixel of the SVG, in each direction.
const SHARPNESS: f64 = 2.0;

impl Drawing {
    /// The drawing as SVG.
    ///
    /// # Errors
    ///
    /// Why it cannot be drawn.
    pub fn svg(&self) -> Result<String, String> {
        let mut svg = String::new();
        let mut backend = SVGBackend::with_string(&mut svg, self.pixels(1.0));
        self.paint(&mut backend, 1.0).map_err(|error| error.to_string())?;
        drop(backend);
        Ok(svg)
    }

    /// The drawing as PNG, with twice the resolution of the SVG.
    ///
    /// # Errors
    ///
    /// Why it cannot be drawn.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        let (width, height) = self.pixels(SHARPNESS);
        let rgb = vec![255; (width * height * 3) as usize];
        let mut picture = Picture { width, height, rgb };
        self.paint(&mut picture, SHARPNESS).map_err(|error| error.to_string())?;
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
        writer.write_image_data(&picture.rgb).map_err(|error| error.to_string())?;
        writer.finish().map_err(|error| error.to_string())?;
        Ok(file)
    }

    fn pixels(&self, scale: f64) -> (u32, u32) {
        ((self.width * scale).round() as u32, (self.height * scale).round() as u32)
    }
}

/// Pixels in memory, in which plotters draws lines, areas and text.
struct Picture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl DrawingBackend for Picture {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn draw_pixel(
        &mut self,
        (x, y): BackendCoord,
        colour: BackendColor,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        let inside = u32::try_from(x).ok().zip(u32::try_from(y).ok());
        let inside = inside.filter(|&(x, y)| x < self.width && y < self.height);
        if let Some((x, y)) = inside {
            let at = ((y * self.width + x) * 3) as usize;
            let (r, g, b) = colour.rgb;
            for (byte, over) in self.rgb[at..at + 3].iter_mut().zip([r, g, b]) {
                let under = f64::from(*byte);
                *byte = (under + (f64::from(over) - under) * colour.alpha).round() as u8;
            }
        }
        Ok(())
    }
}
