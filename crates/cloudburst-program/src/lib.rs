//! Code that the command-line programs share: command lines with their manual pages and completions, numbers with
//! units, signals that stop a program, standard output, text on terminals, and exit codes.

#![forbid(unsafe_code)]

mod arguments;
mod generate;
mod signals;
mod text;
mod units;

pub use arguments::{NotRun, parse, parse_by, reason};
pub use signals::{block_signals, interrupted};
pub use text::{acts_on_terminals, escaped};
pub use units::{Bits, Bytes, Seconds, UnitError};

use core::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// An error that ends a program.
pub trait FatalError: Display {
    /// Whether a signal stopped the program.
    fn is_interruption(&self) -> bool;

    /// Whether the command line is to blame.
    fn is_usage(&self) -> bool;
}

/// Ends `program`: writes its failure, if any, to standard error. The exit code is 0 for success, 130 after a
/// signal, 2 if the command line is to blame, and otherwise 1.
pub fn exit(program: &str, result: Result<(), impl FatalError>) -> ExitCode {
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    // Line breaks are the failure's own. Other characters that act on terminals come from arguments and names.
    format!("{program}: {failure}").lines().for_each(complain);
    ExitCode::from(match failure {
        failure if failure.is_interruption() => 130,
        failure if failure.is_usage() => 2,
        _ => 1,
    })
}

/// Prints a line on standard error. Characters that act on terminals, from names or arguments, are
/// [escaped].
pub fn complain(line: &str) {
    // If standard error is closed, there is nowhere to report that.
    let _ = writeln!(io::stderr(), "{}", escaped(line));
}

/// Prints a line on standard output. A closed pipe is not an error: its reader has seen enough.
///
/// # Errors
///
/// If the line cannot be written for any other reason.
pub fn print_line(line: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
