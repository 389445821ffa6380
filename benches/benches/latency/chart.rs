//! A chart of a table: quinn and Cloudburst relative to TCP in each row.

use crate::report::{Row, digits, ratio};
use crate::transport::Result;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

const WIDTH: u32 = 900;
/// The part of the width for the names of the rows.
const NAMES: u32 = 210;
/// The height of the area above the bars.
const HEAD: u32 = 70;
/// The height of the area below them.
const AXIS: u32 = 50;
const ROW: u32 = 34;
const FONT: &str = "sans-serif";
/// Different in brightness, so that they are distinct without colour.
const BARS: [(&str, RGBColor); 2] =
    [("quinn", RGBColor(143, 200, 40)), ("Cloudburst", RGBColor(68, 57, 131))];

/// Draws an SVG file of the rows that have a figure for TCP.
pub(crate) fn draw(path: &Path, rows: &[Row]) -> Result<()> {
    draw_all(path, rows).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the ratios of quinn and Cloudburst to TCP. A ratio of 0 has no place on the axis.
fn ratios(row: &Row) -> Option<[f64; 2]> {
    let [tcp, quinn, cloudburst] = row.figures;
    let ratios = [ratio(quinn, tcp)?, ratio(cloudburst, tcp)?];
    ratios.iter().all(|&ratio| ratio > 0.0).then_some(ratios)
}

fn draw_all(path: &Path, rows: &[Row]) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let rows: Vec<_> = rows.iter().filter_map(|row| Some((&row.name, ratios(row)?))).collect();
    let all = || rows.iter().flat_map(|(_, ratios)| *ratios);
    // Leaves room for the figure at the end of a bar.
    let lowest = all().fold(1.0, f64::min) / 2.0;
    let highest = all().fold(1.0, f64::max) * 2.0;
    let count = rows.len() as f64;

    register_font(FONT, FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| "the embedded font is invalid")?;
    let root = SVGBackend::new(path, (WIDTH, HEAD + ROW * rows.len() as u32 + AXIS));
    let root = root.into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin_top(HEAD)
        .margin_right(20)
        .x_label_area_size(AXIS)
        .y_label_area_size(NAMES)
        .build_cartesian_2d((lowest..highest).log_scale(), 0.0..count)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_label_formatter(&|x| format!("{x}"))
        .x_desc("x TCP in the clear")
        .label_style((FONT, 14))
        .axis_desc_style((FONT, 15))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.15))
        .draw()?;

    let font =
        |size: u32, at: HPos| (FONT, size).into_text_style(&root).pos(Pos::new(at, VPos::Center));
    for (i, (name, ratios)) in rows.iter().enumerate() {
        let middle = count - i as f64 - 0.5;
        for (at, (ratio, (_, colour))) in ratios.iter().zip(BARS).enumerate() {
            let top = middle + 0.38 - 0.38 * at as f64;
            let bar = Rectangle::new([(1.0, top), (*ratio, top - 0.36)], colour.filled());
            let (gap, side) = if *ratio < 1.0 { (0.95, HPos::Right) } else { (1.05, HPos::Left) };
            let place = (ratio * gap, top - 0.18);
            chart.draw_series([bar])?;
            chart.draw_series([Text::new(digits(*ratio), place, font(12, side))])?;
        }
        let (x, y) = chart.backend_coord(&(lowest, middle));
        root.draw(&Text::new(name.to_string(), (x - 10, y), font(14, HPos::Right)))?;
    }
    chart.draw_series(LineSeries::new([(1.0, 0.0), (1.0, count)], BLACK))?;

    let mut x = NAMES as i32;
    for (name, colour) in BARS {
        root.draw(&Rectangle::new([(x, 15), (x + 16, 27)], colour.filled()))?;
        root.draw(&Text::new(name, (x + 24, 21), font(15, HPos::Left)))?;
        x += 110;
    }
    let reading = "rate/5KB and goodput/93KB: more is better; all other rows: less is better";
    root.draw(&Text::new(reading, (NAMES as i32, 48), font(14, HPos::Left)))?;
    root.present()?;
    Ok(())
}
