//! Parses the command line and starts the program. Reports errors as text and, with `--json`, as an object.

use crate::plan::{PlanError, key};
use crate::ui::{self, JsonTo, Report};
use crate::{Exit, generate};
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::{env, io, iter};

/// The arguments of a program, or how it ends.
///
/// # Errors
///
/// [`Exit::Done`] after `--help` and `--version`, else [`Exit::Usage`].
pub(crate) fn parse<A: Parser>() -> Result<A, Exit> {
    let args: Vec<OsString> = env::args_os().collect();
    let parse = |args: &[OsString]| {
        let mut command = generate::with_option(A::command());
        let matches = command.try_get_matches_from_mut(args)?;
        if let Some(form) = generate::wanted(&matches) {
            return Ok(Err(form));
        }
        A::from_arg_matches(&matches).map(Ok).map_err(|error| error.format(&mut command))
    };
    let parsed = parse(&args).map_err(|error| {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            let _ = error.print();
            return Exit::Done;
        }
        // An error quotes arguments as they are. Those that terminals would act on are as wrong when escaped.
        let escaped = |arg: &OsString| OsString::from(&*ui::escaped(&arg.to_string_lossy()));
        let escaped: Vec<OsString> = args.iter().map(escaped).collect();
        let error = parse(&escaped).err().unwrap_or(error);
        let _ = error.print();
        tell_programs(&reason(&error));
        Exit::Usage
    })?;
    parsed.map_err(|form| {
        // A reader that has gone has seen enough.
        let _ = generate::write(A::command(), form, &mut io::stdout().lock());
        Exit::Done
    })
}

/// Runs a program whose arguments make up a plan.
pub(crate) fn run<A: Parser, P>(
    program: &str,
    plan: impl FnOnce(A, Option<OsString>) -> Result<P, PlanError>,
    run: impl FnOnce(P) -> Exit,
) -> Exit {
    let args = match parse::<A>() {
        Ok(args) => args,
        Err(exit) => return exit,
    };
    match plan(args, env::var_os(key::VARIABLE)) {
        Ok(plan) => run(plan),
        Err(error) => {
            ui::complain(&format!("{program}: {error}"));
            tell_programs(&error.to_string());
            Exit::Usage
        }
    }
}

/// Prints the object of a run that did not begin, if the command line asks for JSON. Where it cannot be parsed
/// there is nothing else to go by than its words.
fn tell_programs(error: &str) {
    let options = || env::args_os().skip(1).take_while(|arg| arg != "--");
    if !options().any(|arg| arg == "--json") {
        return;
    }
    let to = match options().any(|arg| arg == "--stdout") {
        true => JsonTo::StandardError,
        false => JsonTo::StandardOutput,
    };
    ui::print_json(to, &Report::of_no_file(error.to_owned()));
}

/// What clap has against a command line, on one line and without usage.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let first = lines.next().map(|line| line.trim_start_matches("error: "));
    let lines: Vec<&str> = iter::once(first.unwrap_or_default()).chain(lines).collect();
    lines.join(" ")
}
