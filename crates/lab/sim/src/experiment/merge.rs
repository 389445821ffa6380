//! Merging the shards of a run.

use super::store::{self, Run, Store};
use super::{Failure, Record};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Adds the cells of all `directories` to `out`, which is created or resumed. `command` and `date` go into its
/// `run.json`.
///
/// # Errors
///
/// If the runs differ in seed, scale or version, a cell differs between two of them, or a file cannot be read
/// or written. Nothing has been added unless writing failed.
pub fn merge(
    out: &Path,
    directories: &[PathBuf],
    command: String,
    date: String,
) -> Result<Store, Failure> {
    let mut merged: Option<Run> = None;
    let mut found: BTreeMap<String, (&Path, Record)> = BTreeMap::new();
    let mut all: Vec<(&Path, Run, BTreeMap<String, Record>)> = Vec::new();
    for directory in directories {
        let (run, records) = store::read(directory)?;
        all.push((directory, run, records));
    }
    if out.join("run.json").exists() {
        let (run, records) = store::read(out)?;
        all.push((out, run, records));
    }
    for (directory, run, records) in all {
        match &mut merged {
            None => merged = Some(Run { command: command.clone(), date: date.clone(), ..run }),
            Some(merged) => {
                merged.check(&run, directory)?;
                for (experiment, schemes) in run.wanted {
                    merged.wanted.entry(experiment).or_default().extend(schemes);
                }
            }
        }
        for (name, record) in records {
            match found.get(&name) {
                Some((other, before)) if *before != record => {
                    let one = other.display();
                    let two = directory.display();
                    let reason = format!(
                        "{name} differs between {one} and {two}: find out which one is from a \
                         different build, and leave it out"
                    );
                    return Err(Failure::Usage(reason));
                }
                Some(_) => {}
                None => _ = found.insert(name, (directory, record)),
            }
        }
    }
    let Some(run) = merged else {
        return Err(Failure::Usage("no directories to merge".to_owned()));
    };
    let mut store = Store::open(out, run)?;
    for cell in store.run().cells() {
        if let Some((_, record)) = found.remove(&cell.to_string()) {
            store.append(record)?;
        }
    }
    // Cells that are not part of the run, if any.
    found.into_values().try_for_each(|(_, record)| store.append(record))?;
    Ok(store)
}
