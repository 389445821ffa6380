//! Why there was no examination.

use crate::protocol::Reason;
use crate::sender::Failure;
use crate::sender::address::{self, ResolveError};
use crate::text;
use cloudburst_net::{BuildError, SendError};
use std::io;
use std::net::SocketAddr;

/// Why there was no examination.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExamError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("{peer} cannot be reached: {source}{}", address::after_connect(source))]
    NoRoute { peer: SocketAddr, source: io::Error },
    #[error("cannot send probes: {0}")]
    Trace(io::Error),
    #[error("{}", text::with_causes(.0))]
    Endpoint(#[from] BuildError),
    #[error(transparent)]
    Unanswered(Failure),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(
        "the receiver got the request, but no answer arrived: it is not a cbrst-recv of this \
         version, or a device on the way, such as source NAT that changes ports or a firewall, drops \
         packets that the receiver sends on its own"
    )]
    NoVitals,
    #[error(transparent)]
    Refused(Reason),
}
