//! The paper's figures of section V, with what was measured here.

mod axis;
mod bars;
mod chart;
mod experiments;
mod files;
mod legend;
mod shape;
mod text;

pub(super) use experiments::of;
pub(super) use shape::Drawing;

/// A figure and what is said below it.
pub(super) struct Figure {
    /// Its file, without the ending.
    pub(super) stem: String,
    pub(super) caption: String,
    pub(super) drawing: Drawing,
}

/// A value at a horizontal axis.
fn axis_label(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::shape::Shape;
    use super::{axis_label, of};
    use crate::report::points::Experiment;
    use crate::report::synthetic;

    #[test]
    fn everything_is_inside_and_words_do_not_overlap() {
        let mut run = synthetic::run(2, &synthetic::EXPERIMENTS);
        // Some that are late: what is drawn for them may cover nothing either.
        for message in run.turns.iter_mut().flat_map(|turn| &mut turn.messages).step_by(70) {
            message.took_us = None;
        }
        for figure in Experiment::of(&run).iter().flat_map(of) {
            let drawing = &figure.drawing;
            let places = drawing.shapes.iter().flat_map(|shape| match shape {
                Shape::Line { places, .. } => places.clone(),
                Shape::Area { corners, .. } => corners.clone(),
                Shape::Disc { centre, .. } => vec![*centre],
                Shape::Words(_) => Vec::new(),
            });
            for (x, y) in places {
                let inside = (0.0..=drawing.width).contains(&x);
                let inside = inside && (0.0..=drawing.height).contains(&y);
                assert!(inside, "{}: something is drawn at {x}, {y}", figure.stem);
            }
            let words: Vec<_> = (drawing.shapes.iter())
                .filter_map(|shape| match shape {
                    Shape::Words(words) => Some((words.covers(), &words.text)),
                    _ => None,
                })
                .collect();
            assert!(words.len() > 5, "{}", figure.stem);
            for (k, (a, text)) in words.iter().enumerate() {
                let [left, top, right, bottom] = *a;
                let inside = left >= 0.0 && top >= 0.0;
                let inside = inside && right <= drawing.width && bottom <= drawing.height;
                assert!(inside, "{}: {text:?} is cut: {a:?}", figure.stem);
                for (b, other) in &words[k + 1..] {
                    let apart = left >= b[2] || b[0] >= right || top >= b[3] || b[1] >= bottom;
                    assert!(apart, "{}: {text:?} {a:?} covers {other:?} {b:?}", figure.stem);
                }
            }
        }
    }

    #[test]
    fn values_at_an_axis_are_short() {
        assert_eq!([0.1 + 0.2, 48.0, 0.25].map(axis_label), ["0.3", "48", "0.25"]);
    }
}
