//! The directory of a run: `run.json` describes the run, and `cells.jsonl` has a line for each finished cell.

use super::{Cell, Failure, Record, Scale};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The schemes of each experiment that belong to a run.
pub type Wanted = BTreeMap<String, BTreeSet<String>>;

/// The description of a run: `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The version of this program.
    pub version: String,
    /// The command line that last added cells.
    pub command: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How much is simulated.
    pub scale: Scale,
    /// The day on which cells were last added, such as `2026-01-31`.
    pub date: String,
    /// The experiments and schemes of the run.
    pub wanted: Wanted,
}

impl Run {
    /// Refuses `other`, the run in `directory`, unless the cells of both may be mixed.
    pub(super) fn check(&self, other: &Self, directory: &Path) -> Result<(), Failure> {
        let differs = |what, theirs: String, ours: String| {
            let directory = directory.display();
            let reason = format!(
                "{directory} has a run with {what} {theirs}, this one has {what} {ours}: use another \
                 directory or the same {what}"
            );
            Err(Failure::Usage(reason))
        };
        if self.version != other.version {
            return differs("version", other.version.clone(), self.version.clone());
        }
        if self.seed != other.seed {
            return differs("seed", other.seed.to_string(), self.seed.to_string());
        }
        if self.scale != other.scale {
            return differs("scale", other.scale.to_string(), self.scale.to_string());
        }
        Ok(())
    }

    /// The cells of the run, in the order in which they are run.
    pub fn cells(&self) -> Vec<Cell> {
        let wants = |cell: &Cell| {
            self.wanted.get(&cell.experiment).is_some_and(|schemes| schemes.contains(&cell.scheme))
        };
        let all = crate::experiments::ALL.iter().flat_map(|each| (each.cells)(self.scale));
        all.filter(wants).collect()
    }
}

/// A directory to which cells are added, locked by one process at a time.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    run: Run,
    file: File,
    records: BTreeMap<String, Record>,
}

impl Store {
    /// Creates `directory`, or resumes the run in it.
    ///
    /// # Errors
    ///
    /// If the directory has another run, is in use, or cannot be read or written.
    pub fn open(directory: &Path, run: Run) -> Result<Self, Failure> {
        let path = directory.join("cells.jsonl");
        fs::create_dir_all(directory).map_err(Failure::file("create the directory", directory))?;
        if path.exists() && !path.is_file() {
            return Err(Failure::Content { path, reason: "expected a file".to_owned() });
        }
        let mut options = File::options();
        let options = options.read(true).append(true).create(true);
        let mut file = options.open(&path).map_err(Failure::file("write", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let reason = "in use by another process: wait for it or use another directory";
                return Err(Failure::Content { path, reason: reason.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(Failure::file("lock", path)(error)),
        }
        let mut run = run;
        match read_run(directory) {
            Ok(found) => {
                run.check(&found, directory)?;
                for (experiment, schemes) in found.wanted {
                    run.wanted.entry(experiment).or_default().extend(schemes);
                }
            }
            Err(Failure::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                let length = file.metadata().map_err(Failure::file("read", &path))?.len();
                if length > 0 {
                    let reason = "there is no run.json beside it: use another directory".to_owned();
                    return Err(Failure::Content { path, reason });
                }
            }
            Err(failure) => return Err(failure),
        }
        let (records, whole) = read_cells(&mut file, &path)?;
        // A killed process or a full disk may have left an incomplete last line.
        file.set_len(whole).map_err(Failure::file("write", &path))?;
        write_run(directory, &run)?;
        Ok(Self { directory: directory.to_owned(), run, file, records })
    }

    /// Appends a finished cell, unless it is already there.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn append(&mut self, record: Record) -> Result<(), Failure> {
        let name = record.cell.to_string();
        if self.records.contains_key(&name) {
            return Ok(());
        }
        let path = self.directory.join("cells.jsonl");
        let line = serde_json::to_string(&record)
            .map_err(|error| Failure::Content { path: path.clone(), reason: error.to_string() })?;
        let written = self.file.write_all((line + "\n").as_bytes());
        written.map_err(|source| Failure::Append { path, source })?;
        self.records.insert(name, record);
        Ok(())
    }

    /// The path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The description of the run.
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// The finished cells, by name.
    pub const fn records(&self) -> &BTreeMap<String, Record> {
        &self.records
    }

    /// The cells of the run that are missing, and the number of all its cells.
    pub fn missing(&self) -> (Vec<Cell>, usize) {
        let cells = self.run.cells();
        let wanted = cells.len();
        let is_missing = |cell: &Cell| !self.records.contains_key(&cell.to_string());
        (cells.into_iter().filter(is_missing).collect(), wanted)
    }
}

/// Reads a directory without locking it.
pub(super) fn read(directory: &Path) -> Result<(Run, BTreeMap<String, Record>), Failure> {
    let run = read_run(directory)?;
    let path = directory.join("cells.jsonl");
    let mut file = File::open(&path).map_err(Failure::file("read", &path))?;
    let (records, _) = read_cells(&mut file, &path)?;
    Ok((run, records))
}

fn read_run(directory: &Path) -> Result<Run, Failure> {
    let path = directory.join("run.json");
    let text = fs::read_to_string(&path).map_err(Failure::file("read", &path))?;
    serde_json::from_str(&text).map_err(|error| Failure::Content {
        path,
        reason: format!("expected a run of cbrst-sim: {error}"),
    })
}

/// Replaces `run.json` atomically.
fn write_run(directory: &Path, run: &Run) -> Result<(), Failure> {
    let path = directory.join("run.json");
    let new = directory.join("run.json.new");
    let all = || {
        let mut text = serde_json::to_string_pretty(run)?;
        text.push('\n');
        fs::write(&new, text)?;
        fs::rename(&new, &path)
    };
    all().map_err(Failure::file("write", &path))
}

/// The cells of a file, and the length of its complete lines in bytes.
fn read_cells(file: &mut File, path: &Path) -> Result<(BTreeMap<String, Record>, u64), Failure> {
    let mut text = String::new();
    file.rewind()
        .and_then(|()| file.read_to_string(&mut text))
        .map_err(Failure::file("read", path))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut records = BTreeMap::new();
    for (number, line) in text[..whole].lines().enumerate() {
        let wrong = |reason| Failure::Content { path: path.to_owned(), reason };
        let record: Record = serde_json::from_str(line).map_err(|error| {
            wrong(format!("line {}: expected a cell of cbrst-sim: {error}", number + 1))
        })?;
        let name = record.cell.to_string();
        if records.get(&name).is_some_and(|other| *other != record) {
            return Err(wrong(format!("line {}: {name} differs from an earlier line", number + 1)));
        }
        records.insert(name, record);
    }
    Ok((records, whole as u64))
}
