//! Starts a program: makes a plan of its command line and runs it. Errors are printed as text and, with `--json`,
//! as an object.

use crate::args::Configured;
use crate::plan::{PlanError, key};
use crate::ui::{self, JsonTo};
use crate::{Exit, config};
use clap::Parser;
use cloudburst_program::{NotRun, complain};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Parses the arguments of a program, makes a plan of them, and runs it. `object` makes the JSON of an error.
pub(crate) fn run<A: Parser + Configured, P>(
    program: &str,
    object: impl Fn(&str) -> String,
    plan: impl FnOnce(A, Option<OsString>) -> Result<P, PlanError>,
    run: impl FnOnce(P) -> Exit,
) -> Exit {
    let key = env::var_os(key::VARIABLE).filter(|key| !key.is_empty());
    // The environment takes precedence over settings files.
    let replaced: &[&str] = if key.is_some() { &["key-file"] } else { &[] };
    let args = cloudburst_program::parse::<A>().and_then(|args| {
        let command =
            config::with_settings(A::command(), args.config(), replaced).map_err(|error| {
                complain(&format!("{program}: {error}"));
                NotRun::Invalid(error.to_string())
            });
        cloudburst_program::parse_by::<A>(command?)
    });
    let error = match args {
        Ok(args) => match plan(args, key) {
            Ok(plan) => return run(plan),
            Err(error) => {
                complain(&format!("{program}: {error}"));
                error.to_string()
            }
        },
        Err(NotRun::Answered) => return Exit::Done,
        Err(NotRun::Invalid(reason)) => reason,
    };
    if let Some(to) = wants_json(program) {
        // The exit code shows the error in any case.
        let _ = ui::print(to, &object(&error));
    }
    Exit::Usage
}

/// Returns where the object of a run that did not begin goes, if the command line or a settings file asks for JSON.
/// Both may be invalid: the raw words of the command line are searched.
fn wants_json(program: &str) -> Option<JsonTo> {
    let words: Vec<OsString> = env::args_os().skip(1).take_while(|word| word != "--").collect();
    let has = |option: &str| words.iter().any(|word| word == option);
    let config = words.iter().enumerate().find_map(|(at, word)| {
        let value = word.to_str()?.strip_prefix("--config")?;
        let next = || words.get(at + 1).map(PathBuf::from);
        if value.is_empty() { next() } else { value.strip_prefix('=').map(PathBuf::from) }
    });
    let wanted = has("--json") || config::wants_json(program, config.as_deref());
    let to = if has("--stdout") { JsonTo::StandardError } else { JsonTo::StandardOutput };
    wanted.then_some(to)
}
