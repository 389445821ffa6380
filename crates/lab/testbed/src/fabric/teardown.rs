//! Removal of fabrics and their remains.

use crate::state::{Lock, State};
use crate::topology::Node;
use crate::{Error, namespace, plan};

/// The result of [`Fabric::remove`](super::Fabric::remove).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Network namespaces removed.
    pub namespaces: usize,
    /// Processes that were running in them, and still do, without a network.
    pub processes: Vec<i32>,
}

/// Returns the namespaces that are named like those of a fabric.
pub(super) fn namespaces_of(name: &str) -> Vec<String> {
    let is_of = |namespace: &String| {
        let node = namespace.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        node.is_some_and(|node| node.parse::<Node>().is_ok_and(|parsed| parsed.to_string() == node))
    };
    namespace::names().into_iter().filter(is_of).collect()
}

/// Removes the remains of processes that ended without doing so.
pub(super) fn sweep(lock: &Lock) -> Result<(), Error> {
    for state in State::all(lock)?.iter().filter(|state| state.is_orphan()) {
        tear_down(&state.name, Some(state), lock)?;
    }
    Ok(())
}

pub(super) fn tear_down(name: &str, state: Option<&State>, lock: &Lock) -> Result<Removed, Error> {
    if let Some(forwarder) = state.and_then(|state| state.forwarder.as_ref())
        && forwarder.is_alive()
    {
        let pid = nix::unistd::Pid::from_raw(forwarder.pid);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
    }
    let namespaces = namespaces_of(name);
    let processes = namespace::processes_in(&namespaces);
    let lines: String = namespaces.iter().map(|name| format!("netns delete {name}\n")).collect();
    let place = "the machine";
    // Processes and sockets keep their namespaces alive, so the links are removed from these: each
    // has an end at a leaf.
    for namespace in namespaces.iter().filter(|namespace| namespace.contains("-l")) {
        let delete = ["-n", namespace, "link", "delete", "group", plan::GROUP];
        let _ = namespace::run("ip", &delete, "", place);
    }
    if !lines.is_empty() {
        namespace::run("ip", &["-force", "-batch", "-"], &lines, place)?;
    }
    State::forget(name, lock)?;
    Ok(Removed { namespaces: namespaces.len(), processes })
}
