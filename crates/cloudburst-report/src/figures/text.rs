//! Text in drawings. It is measured, and drawn in PNGs, with DejaVu Sans, the widest of the fonts that
//! a browser may use for the same SVG: text that fits here fits there.

use super::shape::{BLACK, Colour, Place, paint};
use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use core::convert::Infallible;
use plotters_backend::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, FontFamily, FontTransform};
use std::sync::LazyLock;

static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(dejavu::sans::regular()).expect("the embedded font is valid")
});

/// The ratio of plotters' font sizes to the em.
const SIZE_OVER_EM: f64 = 1.24;
/// The distance from the middle of a line down to its baseline in em, as in an SVG: half an x-height.
const BASELINE: f64 = 0.27;

/// The alignment of text: which end of it is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Centre,
    Right,
}

/// A line of text, vertically centred at its place.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) at: Place,
    pub(super) side: Side,
    /// The em, in pixels.
    pub(super) em: f64,
    /// Whether the text runs upwards.
    pub(super) up: bool,
    pub(super) colour: Colour,
}

impl Words {
    /// Black text.
    pub(super) fn new(text: impl Into<String>, at: Place, side: Side, em: f64) -> Self {
        Self { text: text.into(), at, side, em, up: false, colour: BLACK }
    }

    pub(super) fn scaled(&self, scale: f64) -> Self {
        Self { em: self.em * scale, ..self.clone() }
    }

    /// The bounding box: left, top, right and bottom.
    pub(super) fn covers(&self) -> [f64; 4] {
        let (x, y) = self.at;
        let (long, half) = (width(&self.text, self.em), self.em * 0.5);
        let before = match self.side {
            Side::Left => 0.0,
            Side::Centre => long / 2.0,
            Side::Right => long,
        };
        if self.up {
            [x - half, y + before - long, x + half, y + before]
        } else {
            [x - before, y - half, x - before + long, y + half]
        }
    }
}

/// The width of `text` in pixels.
pub(super) fn width(text: &str, em: f64) -> f64 {
    let font = FONT.as_scaled(pixels(em));
    text.chars().map(|c| f64::from(font.h_advance(font.glyph_id(c)))).sum()
}

/// The scale of the font, which is measured from its ascent to its descent.
fn pixels(em: f64) -> PxScale {
    let units = FONT.units_per_em().unwrap_or(FONT.height_unscaled());
    PxScale::from(em as f32 * FONT.height_unscaled() / units)
}

impl BackendTextStyle for Words {
    type FontError = Infallible;

    fn color(&self) -> BackendColor {
        paint(self.colour)
    }

    fn size(&self) -> f64 {
        self.em * SIZE_OVER_EM
    }

    fn transform(&self) -> FontTransform {
        if self.up { FontTransform::Rotate270 } else { FontTransform::None }
    }

    fn anchor(&self) -> Pos {
        let side = match self.side {
            Side::Left => HPos::Left,
            Side::Centre => HPos::Center,
            Side::Right => HPos::Right,
        };
        Pos::new(side, VPos::Center)
    }

    fn family(&self) -> FontFamily<'_> {
        FontFamily::Name("DejaVu Sans, Verdana, Helvetica, Arial, sans-serif")
    }

    fn layout_box(&self, text: &str) -> Result<((i32, i32), (i32, i32)), Infallible> {
        Ok(((0, 0), (width(text, self.em).round() as i32, self.em.round() as i32)))
    }

    fn draw<E, D: FnMut(i32, i32, BackendColor) -> Result<(), E>>(
        &self,
        text: &str,
        (left, top): BackendCoord,
        mut dot: D,
    ) -> Result<Result<(), E>, Infallible> {
        let scale = pixels(self.em);
        let font = FONT.as_scaled(scale);
        let baseline = top as f32 + (self.em * (0.5 + BASELINE)) as f32;
        let mut x = left as f32;
        let mut drawn = Ok(());
        for id in text.chars().map(|c| font.glyph_id(c)) {
            let glyph = id.with_scale_and_position(scale, point(x, baseline));
            x += font.h_advance(id);
            let Some(outline) = FONT.outline_glyph(glyph) else { continue };
            let corner = outline.px_bounds().min;
            outline.draw(|dx, dy, cover| {
                let colour = BackendColor { alpha: f64::from(cover.min(1.0)), ..self.color() };
                let place = (corner.x as i32 + dx as i32, corner.y as i32 + dy as i32);
                if drawn.is_ok() {
                    drawn = dot(place.0, place.1, colour);
                }
            });
        }
        Ok(drawn)
    }
}
