//! Legends.

use super::frame::{Area, Painted, width};
use plotters::prelude::*;
use std::ops::Range;

/// A colour: red, green and blue.
pub type Colour = (u8, u8, u8);

/// The shape of a scheme's dots, which distinguishes schemes without colour too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A disc.
    Circle,
    /// A square on its side.
    Square,
    /// A triangle on its base.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    Wedge,
}

/// Colours that most colour-blind people can distinguish: those of Okabe and Ito without yellow.
const COLOURS: [Colour; 7] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (230, 159, 0),
    (25, 25, 30),
    (86, 180, 233),
];
const FORMS: [Form; 5] = [Form::Circle, Form::Square, Form::Triangle, Form::Diamond, Form::Wedge];

/// A scheme in a legend, and the appearance of its dots.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name. A chart has one legend entry for each name.
    pub name: String,
    /// The colour of its dots, lines and bars.
    pub colour: Colour,
    /// The shape of its dots.
    pub form: Form,
    /// Whether its dots or bars are hollow.
    pub hollow: bool,
}

impl Entry {
    /// The entry with this index. No two of the first 70 look alike.
    pub fn nth(index: usize, name: impl Into<String>) -> Self {
        let differ = COLOURS.len() * FORMS.len();
        Self {
            name: name.into(),
            colour: COLOURS[index % COLOURS.len()],
            form: FORMS[index % FORMS.len()],
            hollow: index / differ % 2 == 1,
        }
    }

    pub(super) fn rgb(&self) -> RGBColor {
        let (red, green, blue) = self.colour;
        RGBColor(red, green, blue)
    }

    /// Draws a dot of the scheme.
    pub(super) fn dot<DB: DrawingBackend>(&self, area: &Area<DB>, at: (i32, i32)) -> Painted<DB> {
        self.form.paint(area, at, 10.0, self.rgb())?;
        if self.hollow {
            self.form.paint(area, at, 5.2, WHITE)?;
        }
        Ok(())
    }
}

impl Form {
    fn paint<DB: DrawingBackend>(
        self,
        area: &Area<DB>,
        at: (i32, i32),
        radius: f64,
        colour: RGBColor,
    ) -> Painted<DB> {
        let corners: &[(f64, f64)] = match self {
            Self::Circle => {
                return area.draw(&Circle::new(at, radius.round() as i32, colour.filled()));
            }
            Self::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Self::Triangle => &[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)],
            Self::Diamond => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            Self::Wedge => &[(0.0, 1.2), (1.15, -0.85), (-1.15, -0.85)],
        };
        let pixel = |share: f64| (radius * share).round() as i32;
        let corners = corners.iter().map(|(x, y)| (at.0 + pixel(*x), at.1 + pixel(*y)));
        area.draw(&Polygon::new(corners.collect::<Vec<_>>(), colour))
    }
}

/// An entry, and the place of its dot.
pub(super) type Placed<'a> = (&'a Entry, (i32, i32));

/// Places the dots of a legend with an entry for each name, in as many lines as they need. Returns them
/// and the height of the legend.
pub(super) fn layout<'a>(
    all: impl Iterator<Item = &'a Entry>,
    across: Range<i32>,
) -> (Vec<Placed<'a>>, i32) {
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let mut x = across.start;
    let mut y = 44;
    for entry in all {
        if placed.iter().any(|(known, _)| known.name == entry.name) {
            continue;
        }
        let wide = 40 + width(&entry.name);
        if x > across.start && x + wide > across.end {
            x = across.start;
            y += 44;
        }
        placed.push((entry, (x + 14, y)));
        x += wide + 48;
    }
    (placed, y + 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_many_entries_look_alike() {
        let looks = |entry: &Entry| (entry.colour, entry.form, entry.hollow);
        let entries: Vec<_> = (0..70).map(|k| Entry::nth(k, "x")).collect();
        for (k, a) in entries.iter().enumerate() {
            assert!(entries[k + 1..].iter().all(|b| looks(a) != looks(b)), "{k}");
        }
    }
}
