//! `cbrst-sim run` and `merge`.

use super::names::unknown;
use super::ui::Ui;
use super::{PROGRAM, RunArguments};
use crate::experiment::{self, Experiment, Failure, Run, Scale, Store, Todo, Wanted, sweep};
use crate::experiments::ALL;
use cloudburst_report::today;
use std::path::{Path, PathBuf};
use std::thread;

/// One of `count` shards of the cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shard {
    /// The number of the shard, from 0.
    index: usize,
    count: usize,
}

/// Parses `I/N`.
pub(super) fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/');
    let parts = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, count)) if (1..=count).contains(&i) => Ok(Shard { index: i - 1, count }),
        _ => Err("expected I/N with I from 1 to N, such as 3/16".to_owned()),
    }
}

/// Runs `run`.
pub(super) fn run(arguments: RunArguments) -> Result<(), Failure> {
    let ui = Ui::new(arguments.quiet);
    let scale = match (arguments.short, arguments.medium) {
        (true, _) => Scale::Short,
        (_, true) => Scale::Medium,
        _ => Scale::Full,
    };
    let chosen = choose(&arguments.experiments)?;
    let run = Run {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command(),
        seed: arguments.seed,
        scale,
        date: today(),
        wanted: wanted(&chosen, scale, &arguments.schemes)?,
    };
    // Only these cells are divided into shards, not others that are already in the directory.
    let cells = run.cells();
    let jobs = arguments.jobs.map_or_else(cores, usize::from);
    let interrupted = cloudburst_program::interrupted()
        .map_err(|error| Failure::System(format!("cannot wait for signals: {error}")))?;
    let mut store = Store::open(&arguments.out, run)?;

    let is_mine =
        |index: usize| arguments.shard.is_none_or(|shard| index % shard.count == shard.index);
    let mut todo = Vec::new();
    for (index, cell) in cells.into_iter().enumerate() {
        let is_done = store.records().contains_key(&cell.to_string());
        let experiment = ALL.iter().find(|experiment| experiment.name == cell.experiment);
        if let (true, false, Some(experiment)) = (is_mine(index), is_done, experiment) {
            todo.push(Todo { experiment, cell, scale, seed: arguments.seed });
        }
    }
    let present = store.records().len();
    if present > 0 {
        let directory = arguments.out.display();
        ui.status(&format!("{directory} has {present} cells; {} are left to run", todo.len()));
    }
    let bar = ui.bar(todo.len());
    let swept = sweep(todo, jobs, &interrupted, |record| {
        bar.set_message(record.cell.to_string());
        bar.inc(1);
        store.append(record)
    });
    bar.finish_and_clear();
    let (missing, wanted) = store.missing();
    if !swept? {
        let directory = arguments.out;
        let present = wanted - missing.len();
        return Err(Failure::Interrupted { directory, present, wanted });
    }
    if missing.is_empty() {
        return show(&store, ui);
    }
    let directory = arguments.out.display();
    let present = wanted - missing.len();
    ui.status(&format!(
        "{directory} has {present} of {wanted} cells; run the other shards and merge their directories"
    ));
    Ok(())
}

/// Runs `merge`.
pub(super) fn merge(out: &Path, directories: &[PathBuf], ui: Ui) -> Result<(), Failure> {
    let store = experiment::merge(out, directories, command(), today())?;
    let (missing, wanted) = store.missing();
    match missing.first() {
        None => show(&store, ui),
        Some(first) => Err(Failure::Incomplete {
            directory: out.to_owned(),
            missing: missing.len(),
            wanted,
            first: first.to_string(),
        }),
    }
}

fn show(store: &Store, ui: Ui) -> Result<(), Failure> {
    let page = experiment::report(store.directory())?;
    ui.print_result(&format!("{}", page.display()))
}

fn choose(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let all: Vec<&str> = ALL.iter().map(|experiment| experiment.name).chain(["all"]).collect();
    for name in names {
        if !all.contains(&name.as_str()) {
            return Err(Failure::Usage(unknown("experiment", name, &all)));
        }
    }
    let is_chosen = |name: &str| names.iter().any(|chosen| chosen == name || chosen == "all");
    Ok(ALL.iter().filter(|experiment| is_chosen(experiment.name)).collect())
}

/// Returns the schemes to run, by experiment.
fn wanted(chosen: &[&Experiment], scale: Scale, schemes: &[String]) -> Result<Wanted, Failure> {
    let mut wanted = Wanted::new();
    for experiment in chosen {
        let all = (experiment.cells)(scale).into_iter().map(|cell| cell.scheme);
        wanted.insert(experiment.name.to_owned(), all.collect());
    }
    if schemes.is_empty() {
        return Ok(wanted);
    }
    for scheme in schemes {
        if !wanted.values().any(|all| all.contains(scheme)) {
            let mut all: Vec<&str> = wanted.values().flatten().map(String::as_str).collect();
            all.sort_unstable();
            all.dedup();
            return Err(Failure::Usage(unknown("scheme", scheme, &all)));
        }
    }
    wanted.values_mut().for_each(|all| all.retain(|scheme| schemes.contains(scheme)));
    wanted.retain(|_, all| !all.is_empty());
    Ok(wanted)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn command() -> String {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|each| each.to_string_lossy().into_owned()).collect();
    format!("{PROGRAM} {}", arguments.join(" "))
}
