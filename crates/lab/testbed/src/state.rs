//! The state of fabrics, shared between processes: a JSON file for each in `/run/cloudburst-testbed`.

use crate::Error;
use crate::topology::{Link, Node, Target, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/run/cloudburst-testbed";

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// A black hole: packets that enter the link are lost, no route changes, and no node is notified.
    Silent,
    /// The link is down at both ends: switches and hosts at its ends no longer use it. Others are
    /// not notified, because no routing protocol runs here.
    Down,
}

/// One fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) name: String,
    pub(crate) topology: Topology,
    /// The process that builds it, until it is built.
    pub(crate) builder: Option<Process>,
    /// The process with which it ends. Without one it stays until it is taken down.
    pub(crate) owner: Option<Process>,
    /// The process that decapsulates at the spines and emulates queues, if it is a separate one.
    pub(crate) forwarder: Option<Process>,
    pub(crate) failed: BTreeMap<Target, Failure>,
    /// Percent, where it differs from the topology.
    pub(crate) loss: BTreeMap<Link, f64>,
}

impl State {
    pub(crate) fn new(name: &str, topology: &Topology) -> Self {
        Self {
            name: name.into(),
            topology: topology.clone(),
            builder: None,
            owner: None,
            forwarder: None,
            failed: BTreeMap::new(),
            loss: BTreeMap::new(),
        }
    }

    /// Returns how `link` has failed, if it has: by itself or with a node at its ends.
    pub(crate) fn failure(&self, link: Link) -> Option<Failure> {
        let parts = [Target::Link(link), Target::Node(link.lower), Target::Node(link.upper)];
        parts.iter().filter_map(|part| self.failed.get(part)).max().copied()
    }

    /// Returns the percentage of packets that `link` loses, in each direction.
    pub(crate) fn loss(&self, link: Link) -> f64 {
        let usual = if matches!(link.upper, Node::Spine(_)) { self.topology.loss } else { 0.0 };
        self.loss.get(&link).copied().unwrap_or(usual)
    }

    /// Returns whether no process is left to finish it or take it down.
    pub(crate) fn is_orphan(&self) -> bool {
        [&self.builder, &self.owner].into_iter().flatten().any(|process| !process.is_alive())
    }

    /// Returns the other process that it belongs to.
    pub(crate) fn master(&self) -> Option<&Process> {
        let masters = [&self.builder, &self.owner].into_iter().flatten();
        masters.into_iter().find(|process| process.is_alive() && !process.is_this())
    }

    /// Returns all known states.
    pub(crate) fn all(_: &Lock) -> Result<Vec<Self>, Error> {
        let entries = fs::read_dir(DIRECTORY).map_err(Error::io(DIRECTORY))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names: Vec<_> =
            names.filter_map(|name| name.strip_suffix(".json").map(String::from)).collect();
        // A broken one matters only to callers that request it by name.
        Ok(names.iter().filter_map(|name| Self::read(name).ok().flatten()).collect())
    }

    /// # Errors
    ///
    /// If there is a file that does not contain a state.
    pub(crate) fn read(name: &str) -> Result<Option<Self>, Error> {
        let path = path(name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(path.display().to_string())(error)),
        };
        let parsed = serde_json::from_slice(&text);
        parsed.map(Some).map_err(|error| Error::State { path, said: error.to_string() })
    }

    /// Replaces the file atomically: readers see the old or the new one.
    pub(crate) fn write(&self, _: &Lock) -> Result<(), Error> {
        let path = path(&self.name);
        let new = Path::new(DIRECTORY).join(".new");
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::State { path: path.clone(), said: error.to_string() })?;
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(Error::io(path.display().to_string()))
    }

    pub(crate) fn forget(name: &str, _: &Lock) -> Result<(), Error> {
        match fs::remove_file(path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(path(name).display().to_string())(error))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn exists(name: &str) -> bool {
        path(name).exists()
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{name}.json"))
}

/// The exclusive right to change states, held by one process at a time.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock. No process holds it for longer than a change takes.
    pub(crate) fn take() -> Result<Self, Error> {
        let path = format!("{DIRECTORY}/lock");
        let file = fs::create_dir_all(DIRECTORY).and_then(|()| File::create(&path));
        let file = file.map_err(Error::io(path.clone()))?;
        file.lock().map_err(Error::io(path))?;
        Ok(Self { _file: file })
    }
}

/// A process, distinguished from a later one with the same PID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Its start time, in clock ticks since boot.
    started: u64,
}

impl Process {
    pub(crate) fn this() -> Self {
        Self::of(std::process::id() as i32).unwrap_or(Self { pid: 0, started: 0 })
    }

    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is a name in parentheses, which may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        if fields.next() == Some("Z") {
            return None;
        }
        Some(Self { pid, started: fields.nth(18)?.parse().ok()? })
    }

    pub(crate) fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    fn is_this(&self) -> bool {
        *self == Self::this()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_distinguished_from_a_later_one_with_its_id() {
        let this = Process::this();
        assert!(this.is_alive() && this.pid > 0);
        assert!(!Process { started: this.started + 1, ..this }.is_alive());
    }

    #[test]
    fn a_state_round_trips_through_json() {
        let mut state = State::new("x", &Topology::default());
        state.failed.insert("s2".parse().unwrap(), Failure::Silent);
        state.failed.insert("l1-s3".parse().unwrap(), Failure::Down);
        state.loss.insert("l1-s3".parse().unwrap(), 0.5);
        state.owner = Some(Process::this());
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
        assert_eq!(state.failure("l1-s3".parse().unwrap()), Some(Failure::Down));
        assert_eq!(state.failure("l2-s2".parse().unwrap()), Some(Failure::Silent));
        assert_eq!(state.failure("l2-s3".parse().unwrap()), None);
    }
}
