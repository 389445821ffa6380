//! Parses command lines, and handles `--help`, `--version` and `--generate`.

use crate::escaped;
use crate::generate;
use clap::error::ErrorKind;
use clap::{Command, Parser};
use std::ffi::OsString;
use std::process::ExitCode;
use std::{env, io, iter};

/// Why a program does not run. The reason has been printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRun {
    /// Help, the version, a manual page or completions were requested, and have been printed.
    Answered,
    /// The command line is invalid. The reason is on one line.
    Invalid(String),
}

impl From<NotRun> for ExitCode {
    fn from(not_run: NotRun) -> Self {
        match not_run {
            NotRun::Answered => Self::SUCCESS,
            NotRun::Invalid(_) => Self::from(2),
        }
    }
}

/// Parses the arguments of the program.
///
/// If the first argument is `--generate man|bash|zsh|fish`, prints the manual page or the completions instead, for
/// packages to install. Help does not mention this option.
///
/// # Errors
///
/// If the program is not to run. The output or the error has been printed.
pub fn parse<A: Parser>() -> Result<A, NotRun> {
    parse_by(A::command())
}

/// Parses the arguments of the program with a modified `command`, such as one with other defaults.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_by<A: Parser>(command: Command) -> Result<A, NotRun> {
    let args: Vec<OsString> = env::args_os().collect();
    let parsed = match generate::wanted(&command, &args) {
        Some(form) => form.map(Err),
        None => arguments(command.clone(), &args).map(Ok),
    };
    match parsed {
        Ok(Ok(arguments)) => Ok(arguments),
        Ok(Err(form)) => {
            // A closed stream is not an error: its reader has seen enough.
            let _ = generate::write(command, form, &mut io::stdout().lock());
            Err(NotRun::Answered)
        }
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            let _ = error.print();
            Err(NotRun::Answered)
        }
        Err(error) => {
            // Errors quote arguments verbatim. Parsing them again with control characters escaped gives the same
            // error, safe for terminals.
            let escaped: Vec<OsString> =
                args.iter().map(|arg| OsString::from(&*escaped(&arg.to_string_lossy()))).collect();
            let again = match generate::wanted(&command, &escaped) {
                Some(form) => form.err(),
                None => arguments::<A>(command, &escaped).err(),
            };
            let error = again.unwrap_or(error);
            let _ = error.print();
            Err(NotRun::Invalid(reason(&error)))
        }
    }
}

fn arguments<A: Parser>(mut command: Command, args: &[OsString]) -> Result<A, clap::Error> {
    let matches = command.try_get_matches_from_mut(args)?;
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns the reason in a clap error, on one line and without the usage.
pub fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let first = lines.next().map(|line| line.trim_start_matches("error: "));
    let lines: Vec<&str> = iter::once(first.unwrap_or_default()).chain(lines).collect();
    lines.join(" ")
}
