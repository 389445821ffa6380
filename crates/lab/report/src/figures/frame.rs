//! What all charts have: their fonts, and a plot with a title, axes and ticks.

use super::axis::Scale;
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::sync::LazyLock;

/// The width of figures. All lengths are in pixels of a PNG, two of which are one of an SVG.
pub(super) const WIDTH: i32 = 2000;
/// The margins of a plot: above for its title, below for its axis, and on the right.
pub(super) const ABOVE: i32 = 68;
pub(super) const BELOW: i32 = 96;
pub(super) const RIGHT: i32 = 32;
/// The distance of the label of the vertical axis from the edge.
const EDGE: i32 = 12;
/// The sizes of text, in plotters' measure: 1.24 em.
pub(super) const SMALL: i32 = 32;
const LARGE: i32 = 38;
/// The distance by which text is moved down. Without, plotters centres it in SVGs, but draws it twice
/// this distance too high in PNGs.
pub(super) const DOWN: i32 = 2;

pub(super) const GREY: RGBColor = RGBColor(95, 95, 105);
const GRID: RGBColor = RGBColor(222, 222, 228);

/// The fonts that a browser may use for an SVG. Text is measured, and drawn in PNGs, with DejaVu Sans,
/// the widest of them: text that fits here fits there.
static FONTS: LazyLock<&str> = LazyLock::new(|| {
    let names = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";
    let registered = register_font(names, FontStyle::Normal, dejavu::sans::regular());
    assert!(registered.is_ok(), "the embedded font is valid");
    names
});

pub(super) type Area<DB> = DrawingArea<DB, Shift>;
type Axes<'a, DB> = ChartContext<'a, DB, Cartesian2d<Scale, Scale>>;
type Failure<DB> = DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>;
pub(super) type Painted<DB> = Result<(), Failure<DB>>;

fn style(size: i32, side: HPos) -> TextStyle<'static> {
    TextStyle::from((*FONTS, size).into_font()).pos(Pos::new(side, VPos::Center))
}

/// The style of small text that begins at its place, and is vertically centred there.
pub(super) fn small() -> TextStyle<'static> {
    style(SMALL, HPos::Left)
}

/// The width of small text.
pub(super) fn width(text: &str) -> i32 {
    let (width, _) = small().font.box_size(text).expect("the font is registered");
    width as i32
}

/// Draws the title, axes and ticks of a plot. Each scale comes with the label of its axis.
pub(super) fn paint<'c, DB: DrawingBackend>(
    area: &Area<DB>,
    title: &str,
    (x, x_label): (Scale, &str),
    (y, y_label): (Scale, &str),
    (left, right): (i32, i32),
) -> Result<Axes<'c, DB>, Failure<DB>> {
    let mut plot = ChartBuilder::on(area)
        .margin_top(ABOVE)
        .margin_left(EDGE)
        .margin_right(right)
        .x_label_area_size(BELOW)
        .y_label_area_size(left - EDGE)
        .build_cartesian_2d(x, y)?;
    let mut mesh = plot.configure_mesh();
    if !y_label.is_empty() {
        mesh.y_desc(y_label);
    }
    mesh.x_desc(x_label)
        .label_style(small())
        .y_label_offset(DOWN)
        .set_all_tick_mark_size(8)
        .axis_style(GREY.stroke_width(2))
        .light_line_style(GRID.stroke_width(2))
        .bold_line_style(TRANSPARENT)
        .draw()?;
    let (across, down) = plot.plotting_area().get_pixel_range();
    let above = (i32::midpoint(across.start, across.end), down.start - ABOVE / 2);
    area.use_screen_coord().draw(&Text::new(title, above, style(LARGE, HPos::Center)))?;
    Ok(plot)
}
