//! Errors of reports.

use std::io;
use std::path::PathBuf;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a directory could not be written.
    #[error("{}: cannot be written: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A figure could not be drawn.
    #[error("cannot draw {figure}: {reason}")]
    Drawing {
        /// Its stem.
        figure: String,
        /// What went wrong.
        reason: String,
    },
    /// The page could not be rendered.
    #[error("cannot render index.html: {0}")]
    Page(String),
}

impl Error {
    /// An I/O error of a path.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.into(), source }
    }
}
