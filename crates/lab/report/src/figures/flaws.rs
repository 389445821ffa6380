//! Flaws of the layout, found in the SVG.

use super::{Figure, frame};

impl Figure {
    /// The flaws of the layout, a sentence each: text outside the figure, and text over other text. They
    /// depend on the data, so tests of figures check them.
    pub fn flaws(&self) -> Vec<String> {
        let svg = match self.svg() {
            Ok(svg) => svg,
            Err(reason) => return vec![reason.to_string()],
        };
        let (width, height) = self.size();
        let width = f64::from(width);
        let height = f64::from(height);
        let texts: Vec<_> = svg.split("<text ").skip(1).filter_map(covered).collect();
        let mut flaws = Vec::new();
        for (k, (text, a)) in texts.iter().enumerate() {
            let [left, top, right, bottom] = *a;
            if left < 0.0 || top < 0.0 || right > width || bottom > height {
                flaws.push(format!("{text:?} is cut: {a:?}"));
            }
            for (other, b) in &texts[k + 1..] {
                let apart = left >= b[2] || b[0] >= right || top >= b[3] || b[1] >= bottom;
                if !apart {
                    flaws.push(format!("{text:?} {a:?} covers {other:?} {b:?}"));
                }
            }
        }
        flaws
    }
}

/// The text of an element that plotters wrote, after the name of its tag, and its bounding box: left, top,
/// right and bottom.
fn covered(tag: &str) -> Option<(String, [f64; 4])> {
    let attribute = |name: &str| tag.split_once(&format!("{name}=\""))?.1.split('"').next();
    let number = |name: &str| attribute(name)?.parse::<f64>().ok();
    let text = tag.split_once('>')?.1.split("</text>").next()?.trim();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let x = number("x")?;
    let y = number("y")?;
    let em = number("font-size")?;
    let long = f64::from(frame::width(&text)) * em * 1.24 / f64::from(frame::SMALL);
    let before = match attribute("text-anchor")? {
        "start" => 0.0,
        "middle" => long / 2.0,
        _ => long,
    };
    let top = match attribute("dy")? {
        // Its top, and its centre.
        "0.76em" => 0.0,
        "0.5ex" => -em / 2.0,
        _ => -em,
    };
    Some(if tag.contains("rotate(270") {
        (text, [x + top, y + before - long, x + top + em, y + before])
    } else {
        (text, [x - before, y + top, x - before + long, y + top + em])
    })
}

#[cfg(test)]
mod tests {
    use crate::figures::{Bar, Bars, Entry};
    use crate::statistics::Estimate;

    fn flaws(title: &str, x: &str, note: &str) -> Vec<String> {
        let entry = Entry::nth(0, "scheme");
        let value = Estimate::exact(2.0);
        let bars = vec![Bar { entry, value, note: note.to_owned() }];
        Bars { title: title.to_owned(), x: x.to_owned(), bars }.figure("stem", "").flaws()
    }

    #[test]
    fn clipped_or_overlapping_text_is_reported() {
        assert_eq!(flaws("A title", "ms", "2.0 ms"), [""; 0]);
        let [cut] = &flaws(&"A long title ".repeat(20), "ms", "2.0 ms")[..] else { panic!() };
        assert!(cut.starts_with("\"A long title") && cut.contains("is cut"), "{cut}");
        let covering = flaws("A title", "ms", &"far ".repeat(100));
        assert!(covering.iter().any(|flaw| flaw.contains("covers")), "{covering:?}");
    }
}
