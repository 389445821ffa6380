//! Errors of runs, merges and reports.

use cloudburst_program::FatalError;
use std::io;
use std::path::PathBuf;

/// Why a run, a merge or a report failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is invalid, or contradicts the contents of the directories that it names.
    #[error("{0}")]
    Usage(String),
    /// A signal stopped the run.
    #[error(
        "interrupted: {} has {present} of {wanted} cells; repeat the command to resume",
        directory.display()
    )]
    Interrupted {
        /// The directory of the run.
        directory: PathBuf,
        /// Finished cells.
        present: usize,
        /// All cells of the run.
        wanted: usize,
    },
    /// Merged shards lack cells.
    #[error(
        "{}: {missing} of {wanted} cells are missing, the first is {first}: run the missing shards and \
         merge again",
        directory.display()
    )]
    Incomplete {
        /// The directory merged into.
        directory: PathBuf,
        /// Missing cells.
        missing: usize,
        /// All cells of the run.
        wanted: usize,
        /// The name of the first missing cell.
        first: String,
    },
    /// A file or directory could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// `read`, `write`, `lock`, `create` or `create the directory`.
        doing: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A finished cell could not be appended.
    #[error(
        "cannot write {}: {source}; the cells in it are intact: free some space and repeat the command",
        path.display()
    )]
    Append {
        /// The path of the file with the cells.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has unexpected content.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Its path.
        path: PathBuf,
        /// The problem with its content.
        reason: String,
    },
    /// A cell could not be run.
    #[error("{cell}: {reason}; this is a bug in the simulator")]
    Cell {
        /// The name of the cell.
        cell: String,
        /// The error.
        reason: String,
    },
    /// Standard output could not be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// A system call failed.
    #[error("{0}")]
    System(String),
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] cloudburst_report::Error),
}

impl FatalError for Failure {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted { .. })
    }

    fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }
}

impl Failure {
    pub(crate) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}
