//! Why an evaluation does not go on.

use cloudburst_program::FatalError;
use std::path::PathBuf;

/// Why nothing more is measured.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The fabric could not be built, read or changed; or somebody wants the program to stop.
    #[error(transparent)]
    Fabric(#[from] cloudburst_testbed::Error),
    /// An endpoint of Cloudburst could not be built.
    #[error("an endpoint could not be built: {0}")]
    Endpoint(#[from] cloudburst_net::BuildError),
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file that should hold something else.
    #[error("{}: {reason}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A transport that is compared did not start.
    #[error("{transport}: {reason}")]
    Transport {
        /// Its name.
        transport: &'static str,
        /// What it says.
        reason: String,
    },
    /// A host could not do its part of a trial.
    #[error("host {host}: {reason}")]
    Trial {
        /// Its address.
        host: String,
        /// What its agent says.
        reason: String,
    },
    /// An agent does not answer, or not what it should.
    #[error("the agent at {agent}: {reason}")]
    Agent {
        /// Its address.
        agent: String,
        /// What it says.
        reason: String,
    },
    /// What was asked for makes no sense, or cannot be done with this network.
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
    /// Makes a failure of what the system says.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }

    /// Makes a failure of what a transport says.
    pub(crate) fn transport<E: core::fmt::Display>(
        transport: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Transport { transport, reason: error.to_string() }
    }
}
