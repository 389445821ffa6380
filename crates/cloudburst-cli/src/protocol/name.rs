//! Names that a receiver may store files by.

use cloudburst_program::acts_on_terminals;
use core::fmt;

/// One component of a path, and a harmless one: valid wherever it exists.
///
/// UTF-8 of 1 to [`FileName::MAX`] bytes without separators and control characters, and neither
/// `.` nor `..` nor one of the receiver's own temporary names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName(String);

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NameError {
    /// There is none.
    #[error("it is empty")]
    Empty,
    /// File systems do not take it.
    #[error("it has {len} bytes, more than {}", FileName::MAX)]
    TooLong {
        /// Bytes in the name.
        len: usize,
    },
    /// It is `.` or `..`.
    #[error("it names a directory")]
    Directory,
    /// It has a `/` or a `\`.
    #[error("it has a separator")]
    Separator,
    /// It has a character that is not seen, but obeyed.
    #[error("it has the control character {0:?}")]
    Control(char),
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    Encoding,
    /// It begins as the receiver's temporary directory does.
    #[error("names in {} are the receiver's own", FileName::TEMPORARY)]
    Temporary,
}

impl FileName {
    /// Bytes in a name at most.
    pub const MAX: usize = 255;

    /// How the receiver's temporary directory begins.
    pub const TEMPORARY: &str = ".cbrst-";

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > Self::MAX {
            return Err(NameError::TooLong { len: name.len() });
        }
        if name == "." || name == ".." {
            return Err(NameError::Directory);
        }
        if name.contains(['/', '\\']) {
            return Err(NameError::Separator);
        }
        if let Some(control) = name.chars().find(|c| acts_on_terminals(*c)) {
            return Err(NameError::Control(control));
        }
        if name.starts_with(Self::TEMPORARY) {
            return Err(NameError::Temporary);
        }
        Ok(Self(name.to_owned()))
    }

    /// Checks a name that is bytes, as the wire and the file system have it.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn from_bytes(name: &[u8]) -> Result<Self, NameError> {
        if name.len() > Self::MAX {
            return Err(NameError::TooLong { len: name.len() });
        }
        Self::new(core::str::from_utf8(name).map_err(|_| NameError::Encoding)?)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_pass_as_they_are() {
        let longest = "x".repeat(255);
        for name in
            ["a", "a.tar.gz", ".hidden", "...", "-rf", "~", "a b", "größe", "日本", &longest]
        {
            assert_eq!(FileName::from_bytes(name.as_bytes()).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        use NameError::*;
        for (name, error) in [
            ("", Empty),
            (".", Directory),
            ("..", Directory),
            ("/", Separator),
            ("/etc/passwd", Separator),
            ("../x", Separator),
            ("a/../../x", Separator),
            ("a/", Separator),
            ("..\\x", Separator),
            ("a\0b", Control('\0')),
            ("a\nb", Control('\n')),
            ("\x1b[2J", Control('\x1b')),
            ("\u{9b}2J", Control('\u{9b}')),
            ("cod.\u{202e}exe", Control('\u{202e}')),
            ("cod.\u{200f}exe", Control('\u{200f}')),
            ("cod.\u{200e}exe", Control('\u{200e}')),
            ("cod.\u{61c}exe", Control('\u{61c}')),
            (".cbrst-Ab12", Temporary),
        ] {
            assert_eq!(FileName::from_bytes(name.as_bytes()), Err(error), "{name:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_and_names_beyond_the_limit_are_refused() {
        assert_eq!(FileName::from_bytes(b"a\xff"), Err(NameError::Encoding));
        for len in [256, 1 << 20] {
            assert_eq!(FileName::from_bytes(&vec![b'x'; len]), Err(NameError::TooLong { len }));
        }
        // 255 characters, but 510 bytes: it is bytes that count.
        assert_eq!(FileName::new(&"ü".repeat(255)), Err(NameError::TooLong { len: 510 }));
    }
}
