//! Legends.

use super::chart::SMALL;
use super::shape::{Colour, Place, Shape, WHITE};
use super::text::{Side, Words, width};

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
}

/// Draws entries from `top` on, in as many lines as they need. Returns the bottom of the last line.
pub(super) fn draw(
    shapes: &mut Vec<Shape>,
    entries: &[&Entry],
    left: f64,
    right: f64,
    top: f64,
) -> f64 {
    let (mut x, mut y) = (left, top + 10.0);
    for entry in entries {
        let wide = 20.0 + width(&entry.name, SMALL);
        if x > left && x + wide > right {
            (x, y) = (left, y + 22.0);
        }
        dot(shapes, entry, (x + 7.0, y));
        let at = (x + 20.0, y);
        shapes.push(Shape::Words(Words::new(entry.name.as_str(), at, Side::Left, SMALL)));
        x += wide + 24.0;
    }
    y + 12.0
}

/// Draws a dot of a scheme.
pub(super) fn dot(shapes: &mut Vec<Shape>, entry: &Entry, at: Place) {
    shapes.push(form(entry.form, at, 5.0, entry.colour));
    if entry.hollow {
        shapes.push(form(entry.form, at, 2.6, WHITE));
    }
}

fn form(form: Form, (x, y): Place, radius: f64, colour: Colour) -> Shape {
    let r = radius;
    let corners: &[Place] = match form {
        Form::Circle => return Shape::Disc { centre: (x, y), radius, colour },
        Form::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Form::Triangle => &[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)],
        Form::Diamond => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        Form::Wedge => &[(0.0, 1.2), (1.15, -0.85), (-1.15, -0.85)],
    };
    let corners = corners.iter().map(|(dx, dy)| (x + r * dx, y + r * dy)).collect();
    Shape::Area { corners, colour }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_many_look_alike() {
        let looks = |entry: &Entry| (entry.colour, entry.form, entry.hollow);
        let entries: Vec<_> = (0..70).map(|k| Entry::nth(k, "x")).collect();
        for (k, a) in entries.iter().enumerate() {
            assert!(entries[k + 1..].iter().all(|b| looks(a) != looks(b)), "{k}");
        }
    }
}
