//! Errors of an evaluation.

use cloudburst_program::FatalError;
use std::path::PathBuf;

/// Why an evaluation ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The fabric could not be built, read or changed, or the program was interrupted.
    #[error(transparent)]
    Fabric(#[from] cloudburst_testbed::Error),
    /// The requests cannot be drawn, such as between fewer than two hosts.
    #[error(transparent)]
    Workload(#[from] cloudburst_workload::WorkloadError),
    /// An endpoint of Cloudburst could not be built.
    #[error("cannot build an endpoint: {0}")]
    Endpoint(#[from] cloudburst_net::BuildError),
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}: {reason}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A transport under test did not start.
    #[error("{transport}: {reason}")]
    Transport {
        /// Its name.
        transport: &'static str,
        /// Its error.
        reason: String,
    },
    /// A host could not do its part of a trial.
    #[error("host {host}: {reason}")]
    Trial {
        /// Its address.
        host: String,
        /// The error of its agent.
        reason: String,
    },
    /// An agent did not answer, or its answer was invalid.
    #[error("the agent at {agent}: {reason}")]
    Agent {
        /// Its address.
        agent: String,
        /// What went wrong.
        reason: String,
    },
    /// The request is invalid, or impossible on this network.
    #[error("{0}")]
    Usage(String),
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] cloudburst_report::Error),
}

impl FatalError for Failure {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Fabric(cloudburst_testbed::Error::Interrupted))
    }

    fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }
}

impl Failure {
    /// Makes a failure of an I/O error.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }

    /// Makes a failure of a transport's error.
    pub(crate) fn transport<E: core::fmt::Display>(
        transport: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Transport { transport, reason: error.to_string() }
    }
}
