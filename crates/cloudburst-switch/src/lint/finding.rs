//! What a check reports.

use super::text::Location;
use core::fmt;

/// A difference between a configuration and the intent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    file: String,
    /// The line, from 1; 0 if something is missing.
    line: usize,
    found: String,
    expected: String,
    remedy: String,
}

impl Finding {
    pub(super) fn new(
        at: &Location,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            file: at.file.clone(),
            line: at.line,
            found: found.into(),
            expected: expected.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, found, expected, remedy } = self;
        f.write_str(file)?;
        if *line > 0 {
            write!(f, ":{line}")?;
        }
        write!(f, ": {found}; expected {expected}: {remedy}")
    }
}
