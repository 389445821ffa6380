//! Errors, sorted by who is to blame.

use crate::topology::{Link, Node};
use cloudburst_program::FatalError;
use std::io;
use std::path::PathBuf;

/// Why a fabric could not be built, found, changed or measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller: a parameter is invalid.
    #[error("{field} {value}: expected {expected}")]
    Parameter {
        /// The field of [`Topology`](crate::Topology), or the argument.
        field: &'static str,
        /// Its value.
        value: String,
        /// The values that are valid.
        expected: String,
    },
    /// The caller: there is no such host, leaf or spine.
    #[error("{node}: this fabric has {has}")]
    NoSuchNode {
        /// The node requested.
        node: Node,
        /// The nodes of this kind that exist.
        has: String,
    },
    /// The caller: there is no link between these two nodes.
    #[error("{link}: no such link; hosts are linked to their own leaf, leaves to every spine")]
    NoSuchLink {
        /// The link requested.
        link: Link,
    },
    /// The caller: a fabric of this name is up, with other parameters.
    #[error(
        "{name} is up with other parameters ({different}): take it down first with \
         cbrst-testbed down --name {name}"
    )]
    Different {
        /// The fabric's name.
        name: String,
        /// The parameters that differ, with both values of each.
        different: String,
    },
    /// The caller: a fabric of this name is being built or belongs to a running program.
    #[error("{name} belongs to process {pid}, which still runs: end it, or choose another --name")]
    Taken {
        /// The fabric's name.
        name: String,
        /// The process that it belongs to.
        pid: i32,
    },
    /// The caller: no fabric of this name is up.
    #[error("{name} is not up: build it with cbrst-testbed up --name {name}")]
    NotUp {
        /// The fabric's name.
        name: String,
    },
    /// The machine: namespaces with these names exist without a state file.
    #[error(
        "namespaces named like those of {name} exist ({first}), but no fabric of that name is known: \
         if they are not needed, remove them with cbrst-testbed down --name {name}"
    )]
    Leftover {
        /// The fabric's name.
        name: String,
        /// One of them.
        first: String,
    },
    /// The machine: the process may not do this.
    #[error(
        "network namespaces, queues and the raw sockets that decapsulate IP-in-IP need root \
         (CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW), but {missing}: run it with sudo"
    )]
    Privilege {
        /// The privileges that are missing.
        missing: String,
    },
    /// The machine: a program is not installed.
    #[error("cannot run `{tool}`, which is required: install it with scripts/setup: {source}")]
    Missing {
        /// The program.
        tool: &'static str,
        /// Why it did not start.
        source: io::Error,
    },
    /// The machine or a bug here: a program failed.
    #[error("{tool} in {place}: {said}")]
    Tool {
        /// The program.
        tool: &'static str,
        /// The namespace, or "the machine".
        place: String,
        /// What it wrote to standard error.
        said: String,
    },
    /// The machine or a bug here: a program's output was not understood.
    #[error("unexpected output of {tool} in {place}: {said}")]
    Output {
        /// The program.
        tool: &'static str,
        /// The namespace.
        place: String,
        /// What was missing.
        said: String,
    },
    /// The machine: a system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The machine: a state file is invalid.
    #[error("{}: {said}: run cbrst-testbed down, then remove this file", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        said: String,
    },
    /// The program was interrupted.
    #[error("interrupted; what had been built was taken down again")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Returns whether the caller must change something, rather than the machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Parameter { .. } | Self::NoSuchNode { .. } | Self::NoSuchLink { .. })
    }
}

impl FatalError for Error {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted)
    }

    fn is_usage(&self) -> bool {
        self.is_usage()
    }
}
