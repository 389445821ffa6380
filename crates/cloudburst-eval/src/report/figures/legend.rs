//! Which dots are whose.

use super::chart::SMALL;
use super::shape::{Place, Shape, WHITE};
use super::text::{Side, Words, width};
use crate::report::names::{self, Colour, Form};

/// A scheme in a legend, and what its dots look like.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) colour: Colour,
    pub(super) form: Form,
    pub(super) hollow: bool,
}

impl Entry {
    pub(super) fn of(scheme: &str) -> Self {
        let (colour, form, hollow) = names::look(scheme);
        Self { name: names::display(scheme), colour, form, hollow }
    }
}

/// Draws entries in as many lines as they need from `top` on; gives where the last ends.
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

/// A dot of a scheme.
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
