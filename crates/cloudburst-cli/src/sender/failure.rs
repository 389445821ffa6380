//! Why a file is not at the receiver: each text is one line, with cause and remedy.

use super::source::SourceError;
use crate::protocol::Reason;
use crate::text;
use cloudburst_net::SendError;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The receiver's host reports that the port is closed.
    #[error("no receiver listens at {peer}: start cbrst-recv there, or check the address")]
    NoReceiver { peer: SocketAddr },
    /// Nothing came back, not even an error.
    #[error(
        "no answer from {peer} in {} s: the host may be down, the receiver may have another key (or only \
         one end runs --insecure) or an older version, or a firewall in between drops UDP",
        waited.as_secs_f64()
    )]
    NoAnswer { peer: SocketAddr, waited: Duration },
    /// An endpoint with the key answers, but does not know the address of the handshake as its own.
    #[error(
        "a receiver with this key answers at {peer}, but does not accept the handshake: it may not \
         know that it is reached by this address; start it as cbrst-recv --known-as {peer}"
    )]
    NotAccepted { peer: SocketAddr },
    /// The receiver speaks another version, and answers in it.
    #[error(
        "the receiver at {peer} speaks version {theirs} of the protocol, and this end version {ours}: \
         upgrade {}", older(*ours, *theirs)
    )]
    OtherVersion { peer: SocketAddr, ours: u8, theirs: u8 },
    /// The receiver has a session with this end, but no capacity for messages.
    #[error(
        "the receiver at {peer} was full for {} s, because its application does not take \
         messages: find out what it waits for, or try again later", waited.as_secs_f64()
    )]
    Busy { peer: SocketAddr, waited: Duration },
    /// The network reports an error.
    #[error("{peer} cannot be reached: {source}")]
    Unreachable { peer: SocketAddr, source: io::Error },
    /// The receiver refused the file.
    #[error("refused: {0}")]
    Refused(Reason),
    /// The receiver gave up.
    #[error("{0}")]
    ByReceiver(Reason),
    /// Nothing moved.
    #[error(
        "stalled: nothing got through for {} s, in packets of up to {mtu} bytes; check the network, or \
         allow more with --deadline",
        waited.as_secs_f64()
    )]
    Stalled {
        waited: Duration,
        /// The MTU of the path, as far as discovered.
        mtu: usize,
    },
    /// All of the file arrived, but the receiver did not confirm that it is stored.
    #[error(
        "the receiver has all of it, but did not confirm within {} s that it is stored: check there",
        .0.as_secs_f64()
    )]
    Unconfirmed(Duration),
    /// A frame could not be delivered.
    #[error("{}", text::with_options(&.0.to_string()))]
    Transport(SendError),
    /// FINISH may have been delivered or not.
    #[error(
        "the receiver may or may not have stored it; check there: {}",
        text::with_options(&.0.to_string())
    )]
    Indeterminate(SendError),
    /// The receiver gave up after FINISH, and may have stored the file.
    #[error("the receiver may or may not have stored it; check there: {0}")]
    IndeterminateByReceiver(Reason),
    /// The file could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A signal stopped the program.
    #[error("interrupted")]
    Interrupted,
    /// A signal stopped the program after FINISH.
    #[error(
        "interrupted after all of it was sent; the receiver may or may not have stored it: check there"
    )]
    InterruptedAfterFinish,
    /// An earlier file failed for a reason that applies to this one, too.
    #[error("not sent, for the same reason as an earlier file: {0}")]
    NotTried(String),
}

/// Returns the name of the end that has the older version.
const fn older(ours: u8, theirs: u8) -> &'static str {
    if ours < theirs { "this end" } else { "the receiver" }
}

impl Failure {
    /// Explains `error`, after which nothing could be sent to `peer` in the time `waited`; `None` if no more
    /// is known than the error itself.
    pub(crate) fn of_peer(peer: SocketAddr, waited: Duration, error: &SendError) -> Option<Self> {
        match *error {
            SendError::NoAnswer => Some(Self::NoAnswer { peer, waited }),
            SendError::NotAccepted => Some(Self::NotAccepted { peer }),
            SendError::OtherVersion { ours, theirs } => {
                Some(Self::OtherVersion { peer, ours, theirs })
            }
            SendError::Busy => Some(Self::Busy { peer, waited }),
            _ => None,
        }
    }

    /// Replaces a failure without an answer by its cause if `refusal` finds one.
    pub(crate) fn explained(self, refusal: impl FnOnce() -> Option<Self>) -> Self {
        match self {
            Self::NoAnswer { .. } | Self::Stalled { .. } => refusal().unwrap_or(self),
            other => other,
        }
    }

    /// Whether other files would fail for the same reason.
    pub(crate) const fn is_fatal(&self) -> bool {
        match self {
            Self::Refused(reason)
            | Self::ByReceiver(reason)
            | Self::IndeterminateByReceiver(reason) => {
                matches!(reason, Reason::Taken | Reason::Interrupted | Reason::Version(_))
            }
            Self::Source(_) => false,
            _ => true,
        }
    }

    /// Whether a later attempt would continue after what has arrived.
    pub(crate) const fn is_interruption(&self) -> bool {
        match self {
            Self::NoReceiver { .. }
            | Self::NoAnswer { .. }
            | Self::Busy { .. }
            | Self::Unreachable { .. }
            | Self::Stalled { .. }
            | Self::Transport(_)
            | Self::Interrupted => true,
            Self::Refused(reason) | Self::ByReceiver(reason) => reason.is_interruption(),
            _ => false,
        }
    }

    /// Returns the `outcome` in `--json`.
    pub(crate) const fn outcome(&self) -> &'static str {
        match self {
            Self::Unconfirmed(_)
            | Self::Indeterminate(_)
            | Self::IndeterminateByReceiver(_)
            | Self::InterruptedAfterFinish => "unknown",
            _ => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudburst_net::LocalError;

    #[test]
    fn advice_names_options_instead_of_settings_of_the_library() {
        let text = Failure::Transport(SendError::NotSent(LocalError::TooLarge)).to_string();
        assert!(text.ends_with("lower --mtu"), "{text}");
    }
}
