//! Drawings and their shapes, painted on any of plotters' backends.

use super::text::Words;
use plotters_backend::{BackendColor, BackendStyle, DrawingBackend, DrawingErrorKind};

/// A colour: red, green and blue.
pub type Colour = (u8, u8, u8);

/// A place: pixels from the left and from the top.
pub(super) type Place = (f64, f64);

pub(super) const BLACK: Colour = (20, 20, 25);
pub(super) const GREY: Colour = (95, 95, 105);
pub(super) const GRID: Colour = (222, 222, 228);
pub(super) const WHITE: Colour = (255, 255, 255);

/// Shapes on a white background. Later ones are drawn over earlier ones.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The width and height in pixels.
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) shapes: Vec<Shape>,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Line { places: Vec<Place>, width: f64, colour: Colour },
    Area { corners: Vec<Place>, colour: Colour },
    Disc { centre: Place, radius: f64, colour: Colour },
    Words(Words),
}

impl Shape {
    pub(super) fn line(from: Place, to: Place, width: f64, colour: Colour) -> Self {
        Self::Line { places: vec![from, to], width, colour }
    }

    pub(super) fn rectangle((left, top): Place, (right, bottom): Place, colour: Colour) -> Self {
        let corners = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
        Self::Area { corners, colour }
    }
}

impl Drawing {
    /// Paints the drawing, enlarged by `scale`.
    pub(super) fn paint<B: DrawingBackend>(
        &self,
        backend: &mut B,
        scale: f64,
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        let pixel = |&(x, y): &Place| ((x * scale).round() as i32, (y * scale).round() as i32);
        backend.ensure_prepared()?;
        backend.draw_rect((0, 0), pixel(&(self.width, self.height)), &paint(WHITE), true)?;
        for shape in &self.shapes {
            match shape {
                Shape::Line { places, width, colour } => {
                    let width = (width * scale).round().max(1.0) as u32;
                    let stroke = Stroke { colour: paint(*colour), width };
                    backend.draw_path(places.iter().map(pixel), &stroke)?;
                }
                Shape::Area { corners, colour } => {
                    backend.fill_polygon(corners.iter().map(pixel), &paint(*colour))?;
                }
                Shape::Disc { centre, radius, colour } => {
                    let radius = (radius * scale).round() as u32;
                    backend.draw_circle(pixel(centre), radius, &paint(*colour), true)?;
                }
                Shape::Words(words) => {
                    backend.draw_text(&words.text, &words.scaled(scale), pixel(&words.at))?;
                }
            }
        }
        backend.present()
    }

    /// The flaws of the layout, a sentence each: shapes outside the drawing, and text that covers other
    /// text. Both depend on the data, so tests of figures check them.
    pub fn flaws(&self) -> Vec<String> {
        let mut flaws = Vec::new();
        let places = self.shapes.iter().flat_map(|shape| match shape {
            Shape::Line { places, .. } => places.clone(),
            Shape::Area { corners, .. } => corners.clone(),
            Shape::Disc { centre, .. } => vec![*centre],
            Shape::Words(_) => Vec::new(),
        });
        for (x, y) in places {
            if !((0.0..=self.width).contains(&x) && (0.0..=self.height).contains(&y)) {
                flaws.push(format!("something is drawn at {x}, {y}"));
            }
        }
        let words: Vec<_> = (self.shapes.iter())
            .filter_map(|shape| match shape {
                Shape::Words(words) => Some((words.covers(), &words.text)),
                _ => None,
            })
            .collect();
        for (k, (a, text)) in words.iter().enumerate() {
            let [left, top, right, bottom] = *a;
            let inside = left >= 0.0 && top >= 0.0;
            if !(inside && right <= self.width && bottom <= self.height) {
                flaws.push(format!("{text:?} is cut: {a:?}"));
            }
            for (b, other) in &words[k + 1..] {
                let apart = left >= b[2] || b[0] >= right || top >= b[3] || b[1] >= bottom;
                if !apart {
                    flaws.push(format!("{text:?} {a:?} covers {other:?} {b:?}"));
                }
            }
        }
        flaws
    }
}

pub(super) fn paint(rgb: Colour) -> BackendColor {
    BackendColor { alpha: 1.0, rgb }
}

struct Stroke {
    colour: BackendColor,
    width: u32,
}

impl BackendStyle for Stroke {
    fn color(&self) -> BackendColor {
        self.colour
    }

    fn stroke_width(&self) -> u32 {
        self.width
    }
}
