//! Starts a program: makes a plan of its command line and runs it. Errors are printed as text and, with `--json`,
//! as an object.

use crate::args::Configured;
use crate::plan::{PlanError, key};
use crate::ui::{self, JsonTo, Report};
use crate::{Exit, config};
use clap::Parser;
use cloudburst_program::NotRun;
use std::env;
use std::ffi::OsString;

/// Parses the arguments of a program, makes a plan of them, and runs it.
pub(crate) fn run<A: Parser + Configured, P>(
    program: &str,
    plan: impl FnOnce(A, Option<OsString>) -> Result<P, PlanError>,
    run: impl FnOnce(P) -> Exit,
) -> Exit {
    let key = env::var_os(key::VARIABLE);
    // The environment takes precedence over settings files.
    let holds: &[&str] = if key.is_some() { &["key-file"] } else { &[] };
    let args = cloudburst_program::parse::<A>().and_then(|args| {
        let command = config::with_settings(A::command(), args.config(), holds).map_err(|error| {
            ui::complain(&format!("{program}: {error}"));
            NotRun::Invalid(error.to_string())
        });
        cloudburst_program::parse_by::<A>(command?)
    });
    let args = match args {
        Ok(args) => args,
        Err(NotRun::Answered) => return Exit::Done,
        Err(NotRun::Invalid(reason)) => {
            tell_programs(&reason);
            return Exit::Usage;
        }
    };
    match plan(args, key) {
        Ok(plan) => run(plan),
        Err(error) => {
            ui::complain(&format!("{program}: {error}"));
            tell_programs(&error.to_string());
            Exit::Usage
        }
    }
}

/// Prints the object of a run that did not begin, if the command line asks for JSON. The command line may be
/// unparsable, so its raw words are searched.
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
