//! Why a file is not at the receiver: one line each, with cause and remedy.

use super::address::explain_silence;
use super::source::SourceError;
use crate::protocol::Reason;
use cloudburst_net::SendError;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The receiver's host says that the port is closed.
    #[error("nobody listens at {peer}: start cbrst-recv there, or check the address")]
    NoReceiver { peer: SocketAddr },
    /// Nothing came back, not even a refusal.
    #[error(
        "no answer from {peer} in {} s: something may be there, but it has another key (or one \
         end alone runs --insecure) or is of an older version, or a firewall drops UDP in between",
        waited.as_secs_f64()
    )]
    NoAnswer { peer: SocketAddr, waited: Duration },
    /// Somebody with the key is there, and takes the handshake for somebody else's.
    #[error(
        "somebody with this key answers at {peer} and does not accept the handshake: it may not know \
         that it is reached by this address; start it as cbrst-recv --known-as {peer}"
    )]
    NotAccepted { peer: SocketAddr },
    /// Somebody with the key is there, and says so.
    #[error(
        "the receiver at {peer} speaks version {theirs} of the protocol, and this end version {ours}: \
         upgrade {}", older(*ours, *theirs)
    )]
    OtherVersion { peer: SocketAddr, ours: u8, theirs: u8 },
    /// It has a session with this end, and no room for what is sent.
    #[error(
        "the receiver at {peer} had no room for {} s, because its application does not take \
         messages: see what it waits for, or try again later", waited.as_secs_f64()
    )]
    Busy { peer: SocketAddr, waited: Duration },
    /// The network says so.
    #[error("{peer} cannot be reached: {source}")]
    Unreachable { peer: SocketAddr, source: io::Error },
    /// The receiver did not take it.
    #[error("refused: {0}")]
    Refused(Reason),
    /// The receiver gave up.
    #[error("{0}")]
    ByReceiver(Reason),
    /// Nothing moved.
    #[error(
        "stalled: nothing got through for {} s; check the network, or allow more by --deadline",
        .0.as_secs_f64()
    )]
    Stalled(Duration),
    /// All of it arrived, and then silence.
    #[error(
        "the receiver has all of it, but did not say for {} s whether it is stored: look there",
        .0.as_secs_f64()
    )]
    Unconfirmed(Duration),
    /// A frame could not be delivered.
    #[error("{0}")]
    Transport(SendError),
    /// FINISH may have been delivered or not.
    #[error("the receiver may have stored it, or not; look there: {0}")]
    Doubtful(SendError),
    /// The receiver gave up after FINISH, which it may have heeded.
    #[error("the receiver may have stored it, or not; look there: {0}")]
    InDoubt(Reason),
    /// The file is to blame.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The same after FINISH.
    #[error(
        "interrupted; all of it was sent, and the receiver may have stored it, or not: look there"
    )]
    InterruptedLate,
    /// An earlier file failed in a way that this one would, too.
    #[error("not sent, for the same reason")]
    NotTried,
}

/// The end that is of an older version.
const fn older(ours: u8, theirs: u8) -> &'static str {
    if ours < theirs { "this end" } else { "the receiver" }
}

impl Failure {
    /// What is known of `peer`, to which nothing could be sent in the time `waited`; `None` if no more
    /// is than the error itself says.
    pub(crate) fn of_peer(peer: SocketAddr, waited: Duration, error: &SendError) -> Option<Self> {
        match *error {
            SendError::NoAnswer => Some(explain_silence(peer, waited)),
            SendError::NotAccepted => Some(Self::NotAccepted { peer }),
            SendError::OtherVersion { ours, theirs } => {
                Some(Self::OtherVersion { peer, ours, theirs })
            }
            SendError::Busy => Some(Self::Busy { peer, waited }),
            _ => None,
        }
    }

    /// Whether other files would fare the same.
    pub(crate) const fn is_fatal(&self) -> bool {
        match self {
            Self::Refused(reason) | Self::ByReceiver(reason) | Self::InDoubt(reason) => {
                matches!(reason, Reason::Taken | Reason::Interrupted | Reason::Version(_))
            }
            Self::Source(_) => false,
            _ => true,
        }
    }

    /// The word for `--json`.
    pub(crate) const fn outcome(&self) -> &'static str {
        match self {
            Self::Unconfirmed(_) | Self::Doubtful(_) | Self::InDoubt(_) | Self::InterruptedLate => {
                "unknown"
            }
            _ => "failed",
        }
    }
}
