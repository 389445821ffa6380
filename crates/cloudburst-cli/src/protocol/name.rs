//! Names that a receiver may store files under.

use cloudburst_program::acts_on_terminals;
use core::fmt;

/// The path of a file below the receiver's directory: harmless components, separated by `/`.
///
/// It is UTF-8 of 1 to [`FilePath::MAX`] bytes, in components of 1 to [`FilePath::MAX_COMPONENT`] bytes. No
/// component is `.` or `..` or one of the receiver's own temporary names, or has backslashes or control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NameError {
    /// The name or one of its components is empty.
    #[error("it is empty, or has an empty component")]
    Empty,
    /// The name or a component is too long for file systems.
    #[error("it has {len} bytes, more than {max}")]
    TooLong {
        /// Bytes in the name or in a component of it.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// A component is `.` or `..`.
    #[error("it leads through . or ..")]
    Directory,
    /// It contains a `\`.
    #[error("it has a backslash")]
    Separator,
    /// It contains a character that terminals act on instead of showing it.
    #[error("it has the control character {0:?}")]
    Control(char),
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    Encoding,
    /// A component begins like the receiver's temporary directories.
    #[error("names that begin with {} are reserved for the receiver", FilePath::TEMPORARY)]
    Temporary,
}

impl FilePath {
    /// The most bytes in a name. Linux takes 4095, which include the receiver's directory.
    pub const MAX: usize = 2048;

    /// The most bytes in a component.
    pub const MAX_COMPONENT: usize = 255;

    /// The prefix of the names of the receiver's temporary directories.
    pub const TEMPORARY: &str = ".cbrst-";

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if name.len() > Self::MAX {
            return Err(NameError::TooLong { len: name.len(), max: Self::MAX });
        }
        name.split('/').try_for_each(check_component)?;
        Ok(Self(name.to_owned()))
    }

    /// Checks a name given as bytes, as on the wire and in the file system.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn from_bytes(name: &[u8]) -> Result<Self, NameError> {
        if name.len() > Self::MAX {
            return Err(NameError::TooLong { len: name.len(), max: Self::MAX });
        }
        Self::new(core::str::from_utf8(name).map_err(|_| NameError::Encoding)?)
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Splits the name into its directories, the outermost first, and its last component.
    pub fn split(&self) -> (impl Iterator<Item = &str>, &str) {
        let (directories, last) = match self.0.rsplit_once('/') {
            Some((directories, last)) => (Some(directories), last),
            None => (None, &*self.0),
        };
        (directories.into_iter().flat_map(|all| all.split('/')), last)
    }
}

fn check_component(name: &str) -> Result<(), NameError> {
    let max = FilePath::MAX_COMPONENT;
    match name {
        "" => Err(NameError::Empty),
        "." | ".." => Err(NameError::Directory),
        _ if name.len() > max => Err(NameError::TooLong { len: name.len(), max }),
        _ if name.contains('\\') => Err(NameError::Separator),
        _ if name.starts_with(FilePath::TEMPORARY) => Err(NameError::Temporary),
        _ => match name.chars().find(|c| acts_on_terminals(*c)) {
            Some(control) => Err(NameError::Control(control)),
            None => Ok(()),
        },
    }
}

impl fmt::Display for FilePath {
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
        for name in [
            "a", "a.tar.gz", ".hidden", "...", "-rf", "~", "a b", "größe", "日本", "a/.b/c",
            &longest,
        ] {
            assert_eq!(FilePath::from_bytes(name.as_bytes()).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        use NameError::*;
        for (name, error) in [
            ("", Empty),
            (".", Directory),
            ("..", Directory),
            ("/", Empty),
            ("/etc/passwd", Empty),
            ("a//b", Empty),
            ("../x", Directory),
            ("a/../../x", Directory),
            ("a/./x", Directory),
            ("a/", Empty),
            ("a\\b", Separator),
            ("a/.cbrst-x/b", Temporary),
            ("a/b\nc", Control('\n')),
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
            assert_eq!(FilePath::from_bytes(name.as_bytes()), Err(error), "{name:?}");
        }
    }

    #[test]
    fn names_that_are_not_utf_8_or_too_long_are_refused() {
        assert_eq!(FilePath::from_bytes(b"a\xff"), Err(NameError::Encoding));
        for (len, max) in [(256, 255), (1 << 20, 2048)] {
            let refused = Err(NameError::TooLong { len, max });
            assert_eq!(FilePath::from_bytes(&vec![b'x'; len]), refused);
        }
        // 255 characters, but 510 bytes: it is bytes that count.
        let refused = Err(NameError::TooLong { len: 510, max: 255 });
        assert_eq!(FilePath::new(&"ü".repeat(255)), refused);
        let path = ["x"; 1024].join("/");
        assert!(FilePath::new(&path).is_ok());
        let refused = Err(NameError::TooLong { len: 2049, max: 2048 });
        assert_eq!(FilePath::new(&(path + "/x")), refused);
    }

    #[test]
    fn a_path_has_directories_and_a_last_component() {
        let parts = |path: &str| {
            let path = FilePath::new(path).unwrap();
            let (directories, last) = path.split();
            (directories.collect::<Vec<_>>().join("|"), last.to_owned())
        };
        assert_eq!(parts("a"), (String::new(), "a".into()));
        assert_eq!(parts("a/b/c"), ("a|b".into(), "c".into()));
    }
}
