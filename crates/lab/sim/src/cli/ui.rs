//! Output: results on standard output, progress and status on standard error.

use crate::experiment::Failure;
use cloudburst_program::print_line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};

/// Prints results and status unless `--quiet` was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ui {
    quiet: bool,
}

impl Ui {
    pub(super) const fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Prints a result on standard output. A closed pipe is not an error.
    pub(super) fn print_result(self, line: &str) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        print_line(line).map_err(Failure::Output)
    }

    /// Prints a status line on standard error.
    pub(super) fn status(self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// A progress bar over cells, drawn on terminals only.
    pub(super) fn bar(self, cells: usize) -> ProgressBar {
        let bar = ProgressBar::new(cells as u64);
        if self.quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta} {msg}") {
            bar.set_style(style);
        }
        bar
    }
}
