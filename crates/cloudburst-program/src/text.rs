//! Escapes text from outside, such as names of files, for terminals.

use core::fmt::Write;
use std::borrow::Cow;

/// Whether terminals act on a character instead of showing it: control characters, line and paragraph
/// separators, and marks that change the direction of the text.
pub fn acts_on_terminals(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    is_mark || c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces each character that [acts on terminals](acts_on_terminals) by its escape sequence in Rust, such as `\n`
/// or `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_terminals) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts_on_terminals(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_are_escaped() {
        assert_eq!(escaped("größe \\ 日本"), "größe \\ 日本");
        assert_eq!(escaped("a\nb\t\x1b[2J\u{9b}1m"), "a\\nb\\t\\u{1b}[2J\\u{9b}1m");
        assert_eq!(escaped("cod.\u{202e}exe\u{200f}"), "cod.\\u{202e}exe\\u{200f}");
    }
}
