//! A chart with the degree along the bottom and one line for each n, as in the paper.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

const SIZE: (u32, u32) = (720, 460);
/// The width of the chart; the rest is for the names of the lines.
const CHART: u32 = 612;
const FONT: &str = "sans-serif";

/// From dark to light, as n grows; different in brightness, so that they are distinct without colour.
const COLOURS: [RGBColor; 7] = [
    RGBColor(68, 1, 84),
    RGBColor(68, 57, 131),
    RGBColor(49, 104, 142),
    RGBColor(33, 145, 140),
    RGBColor(53, 183, 121),
    RGBColor(143, 200, 40),
    RGBColor(230, 170, 0),
];

pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// The label of the y axis, which is logarithmic; values of 0 are omitted.
    pub(crate) y: &'static str,
    pub(crate) lines: Vec<Line>,
    /// The legend of hollow dots, in two lines.
    pub(crate) hollow: [&'static str; 2],
}

pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) dots: Vec<Dot>,
}

#[derive(Clone, Copy)]
pub(crate) struct Dot {
    pub(crate) x: u8,
    pub(crate) y: f64,
    pub(crate) hollow: bool,
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Chart {
    /// Draws an SVG file.
    pub(crate) fn draw(&self, path: &Path) -> Result<(), String> {
        self.draw_all(path).map_err(|error| crate::unwritable(path, &*error))
    }

    fn draw_all(&self, path: &Path) -> Drawn {
        register_font(FONT, FontStyle::Normal, dejavu::sans::regular())
            .map_err(|_| "the embedded font is invalid")?;
        let root = SVGBackend::new(path, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (chart, names) = root.split_horizontally(CHART);
        self.draw_chart(&chart)?;
        self.draw_names(&names)?;
        root.present()?;
        Ok(())
    }

    fn draw_chart(&self, canvas: &Canvas<'_>) -> Drawn {
        let last = self.dots().map(|dot| dot.x).max().unwrap_or(1);
        let mut chart = ChartBuilder::on(canvas)
            .caption(self.title, (FONT, 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.7..f64::from(last) + 0.3, self.range().log_scale())?;
        chart
            .configure_mesh()
            .x_labels(usize::from(last))
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y}"))
            .x_desc("degree d")
            .y_desc(self.y)
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 16))
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .draw()?;
        for (line, colour) in self.coloured() {
            let dots = line.dots.iter().filter(|dot| dot.y > 0.0);
            let places = dots.clone().map(|dot| (f64::from(dot.x), dot.y));
            chart.draw_series(LineSeries::new(places.clone(), colour.stroke_width(2)))?;
            chart.draw_series(places.map(|place| Circle::new(place, 4, colour.filled())))?;
            let hollow = dots.filter(|dot| dot.hollow).map(|dot| (f64::from(dot.x), dot.y));
            chart.draw_series(hollow.map(|place| Circle::new(place, 2, WHITE.filled())))?;
        }
        Ok(())
    }

    /// Lists the lines by n, the largest first, which mostly is their order from top to bottom.
    fn draw_names(&self, canvas: &Canvas<'_>) -> Drawn {
        let text = |text: &str, x, y| {
            Text::new(text.to_owned(), (x, y - 6), (FONT, 15).into_text_style(canvas))
        };
        let mut y = 60;
        for (line, colour) in self.coloured().rev() {
            canvas.draw(&Rectangle::new([(4, y - 1), (24, y + 1)], colour.filled()))?;
            canvas.draw(&Circle::new((14, y), 4, colour.filled()))?;
            canvas.draw(&text(&line.name, 32, y))?;
            y += 22;
        }
        if self.dots().any(|dot| dot.hollow) {
            y += 12;
            canvas.draw(&Circle::new((14, y), 4, BLACK.filled()))?;
            canvas.draw(&Circle::new((14, y), 2, WHITE.filled()))?;
            for line in self.hollow {
                canvas.draw(&text(line, 32, y))?;
                y += 18;
            }
        }
        Ok(())
    }

    fn coloured(&self) -> impl DoubleEndedIterator<Item = (&Line, RGBColor)> {
        let colour = |i: usize| COLOURS[i % COLOURS.len()];
        self.lines.iter().enumerate().map(move |(i, line)| (line, colour(i)))
    }

    fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.lines.iter().flat_map(|line| &line.dots)
    }

    /// Returns the range from the lowest dot to the highest, with a margin for the size of the dots.
    fn range(&self) -> Range<f64> {
        let shown = || self.dots().map(|dot| dot.y).filter(|&y| y > 0.0);
        let highest = shown().reduce(f64::max).unwrap_or(1.0);
        let lowest = shown().reduce(f64::min).unwrap_or(1.0);
        let margin = (highest / lowest).powf(0.03).max(1.01);
        lowest / margin..highest * margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(ys: &[f64]) -> Range<f64> {
        let dots = ys.iter().map(|&y| Dot { x: 1, y, hollow: false }).collect();
        let lines = vec![Line { name: String::new(), dots }];
        Chart { title: "", y: "", hollow: [""; 2], lines }.range()
    }

    #[test]
    fn the_axis_covers_every_dot_above_zero() {
        let range = range(&[0.0, 0.5, 4000.0]);
        assert!((0.3..0.5).contains(&range.start) && (4000.0..6000.0).contains(&range.end));
    }

    #[test]
    fn the_axis_has_a_length_even_if_all_dots_are_equal() {
        for ys in [&[][..], &[0.0], &[3.0, 3.0]] {
            let range = range(ys);
            assert!(0.0 < range.start && range.start < range.end, "{ys:?}");
        }
    }
}
