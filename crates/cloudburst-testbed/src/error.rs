//! What can go wrong, sorted by who is to blame.

use crate::topology::{Link, Node};
use cloudburst_program::FatalError;
use std::io;
use std::path::PathBuf;

/// Why a fabric could not be built, found, changed or measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller: a parameter makes no sense.
    #[error("{field} {value}: expected {expected}")]
    Parameter {
        /// The field of [`Topology`](crate::Topology), or the argument.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// The caller: there is no such host, leaf or spine.
    #[error("{node}: this fabric has {has}")]
    NoSuchNode {
        /// What was asked for.
        node: Node,
        /// What there is.
        has: String,
    },
    /// The caller: these two are not joined by a link.
    #[error("{link}: no such link; hosts are joined to their own leaf, leaves to every spine")]
    NoSuchLink {
        /// What was asked for.
        link: Link,
    },
    /// The caller: a fabric of this name is up, with other parameters.
    #[error(
        "{name} is up with other parameters ({different}): take it down first, \
         cbrst-testbed down --name {name}"
    )]
    Different {
        /// The fabric's name.
        name: String,
        /// Which parameters, and both values of each.
        different: String,
    },
    /// The caller: a fabric of this name is being built or belongs to a running program.
    #[error("{name} belongs to process {pid}, which still runs: end it, or choose another --name")]
    Taken {
        /// The fabric's name.
        name: String,
        /// Whose it is.
        pid: i32,
    },
    /// The caller: no fabric of this name is up.
    #[error("{name} is not up: build it with cbrst-testbed up --name {name}")]
    NotUp {
        /// The fabric's name.
        name: String,
    },
    /// The machine: namespaces of these names are there and no state file says what they are.
    #[error(
        "namespaces named like {name}'s exist ({first}), and no fabric of that name is known: \
         if they may go, cbrst-testbed down --name {name}"
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
         (CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW), and {missing}: run it with sudo"
    )]
    Privilege {
        /// Which is missing.
        missing: String,
    },
    /// The machine: a program is not installed.
    #[error("needs `{tool}`, which cannot be run: scripts/setup installs it: {source}")]
    Missing {
        /// The program.
        tool: &'static str,
        /// Why it did not start.
        source: io::Error,
    },
    /// The machine or a bug here: a program refused what it was told.
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
    #[error("{tool} in {place} printed what is not understood: {said}")]
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
    /// The machine: a state file does not hold a state.
    #[error("{}: {said}: remove it, after cbrst-testbed down", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        said: String,
    },
    /// Somebody wanted the program to stop.
    #[error("interrupted; what had been built was taken down again")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Whether the caller has to change something, rather than the machine.
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
