//! Errors, sorted by who is to blame.

use crate::path_map::{PathMap, PathMapError};
use cloudburst_core::config::ConfigError;
use cloudburst_core::error::{Indeterminate, LocalError, Rejection, SendError as Refusal};
use cloudburst_core::wire::RejectReason;
use nix::errno::Errno;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an endpoint was not built. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The caller must say how peers are told from strangers.
    #[error(
        "no security was chosen: call `.security(Security::pre_shared(key))`, or \
         `.security(Security::trusted_network())` where anybody who reaches the endpoint may use it"
    )]
    NoSecurity,
    /// A DSCP has six bits.
    #[error("DSCP {value} does not exist: it must be between 0 and 63")]
    Dscp {
        /// What was asked for.
        value: u8,
    },
    /// No DSCP, or more than there are classes for.
    #[error("{count} DSCPs were given: there must be between 1 and {most}, one a class")]
    Dscps {
        /// How many came.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// An address that no packet can be sent to.
    #[error(
        "an endpoint cannot be known as {address}, because peers cannot send to it: give the IP \
         address and the port that they send to"
    )]
    KnownAs {
        /// The address.
        address: SocketAddr,
    },
    /// A path map that does not exist.
    #[error(transparent)]
    Paths(#[from] PathMapError),
    /// A setting that is out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refuses the address, or another socket.
    #[error("cannot bind a UDP socket to {addr}{advice}", advice = after_refusal(source))]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The path map writes IP headers itself, which the system allows to the privileged alone.
    #[error(
        "path map `{map}` needs a raw socket, and the system refuses one{advice}",
        advice = after_raw_refusal(source)
    )]
    NoRawSocket {
        /// The map.
        map: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system refuses to set or read an option of a socket, or its address.
    #[error("cannot use {option} on a socket, and the endpoint needs it")]
    SocketOption {
        /// The name of the option, or of the system call, in the manual.
        option: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// No file can be created in the directory for [`Builder::qlog`](crate::Builder::qlog).
    #[error("cannot write a qlog to the directory {}", dir.display())]
    Qlog {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refuses something that every endpoint needs.
    #[error("the system refuses {what}{advice}", advice = after_refusal(source))]
    System {
        /// What the system refused: a thread, a descriptor for events, or random bytes.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl BuildError {
    /// For an error of the system where the endpoint asks for `what`.
    pub(crate) fn refused<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { what, source: error.into() }
    }

    /// Names the map that wanted a raw socket.
    pub(crate) fn of_map(self, paths: &PathMap) -> Self {
        match self {
            Self::NoRawSocket { source, .. } => {
                Self::NoRawSocket { map: paths.to_string(), source }
            }
            other => other,
        }
    }
}

/// Why a message was not delivered, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The message was not even queued; the caller, or this endpoint, is to blame.
    #[error("not sent: {0}")]
    Refused(#[source] Refusal),
    /// The message was not delivered and never will be.
    #[error("not delivered: {0}; {advice}", advice = after_rejection(.0))]
    Rejected(#[source] Rejection),
    /// The message may have been delivered, or not. No more of it is sent, but what has left this
    /// host by now may yet make it whole.
    #[error("perhaps not delivered: {0}; {advice}", advice = after_indeterminate(.0))]
    Unknown(#[source] Indeterminate),
    /// This endpoint was closed or dropped while the message was under way.
    #[error(
        "perhaps not delivered: this endpoint was closed while the message was under way; \
         give `shutdown` more time"
    )]
    Closed,
    /// This process is a fork of the one that built the endpoint, whose threads and nonces it
    /// does not share.
    #[error(
        "not sent by this process: the endpoint belongs to process {built_in}, and this is its fork \
         {here}; build endpoints after the fork"
    )]
    Forked {
        /// The process that built the endpoint.
        built_in: u32,
        /// The process that tried to send, or to wait for what the other one sends.
        here: u32,
    },
}

impl SendError {
    /// Whether an end had no room: the receiver, whose application does not take messages fast enough,
    /// or this endpoint, which has too many under way. Send less, or later.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Refused(Refusal::Full { .. }) | Self::Unknown(Indeterminate::Busy))
    }

    /// Whether the deadline passed before the send ended. More time may help; see
    /// [`may_have_been_delivered`](Self::may_have_been_delivered) before sending again.
    pub const fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::Rejected(
                Rejection::NoAnswer
                    | Rejection::NotAccepted
                    | Rejection::OtherVersion { .. }
                    | Rejection::NotStarted
                    | Rejection::Local(_)
            ) | Self::Unknown(
                Indeterminate::Deadline | Indeterminate::Busy | Indeterminate::Local(_)
            )
        )
    }

    /// Whether the receiver may have the message: sending it again may deliver it twice. If this is
    /// `false`, the message was certainly not delivered and never will be.
    ///
    /// `true` for [`Forked`](Self::Forked), too: the process that built the endpoint may have sent
    /// the message.
    pub const fn may_have_been_delivered(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Closed | Self::Forked { .. })
    }
}

/// Why a call has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request was not delivered, or may not have been: see what became of it.
    #[error("no response, for the request was {0}")]
    Request(#[source] SendError),
    /// The callee has the request, and its response was not here before the deadline.
    #[error(
        "no response before the deadline, though the callee has the request: it may still act \
         on it; allow more time, or see whether it is overloaded"
    )]
    Deadline,
    /// The callee's application has dropped the request: its handler panicked, was stopped, or
    /// wanted it so.
    #[error("the callee has dropped the request without a reply: see its log")]
    Unanswered,
    /// As many calls are in flight as may be.
    #[error("not sent: {calls} calls are in flight; wait until one ends, or raise `send_messages`")]
    Full {
        /// Calls in flight.
        calls: usize,
    },
    /// This endpoint was closed or dropped.
    #[error("no response: this endpoint was closed; the callee may have the request")]
    Closed,
}

impl CallError {
    /// Whether an end had no room: see [`SendError::is_busy`].
    pub const fn is_busy(&self) -> bool {
        match self {
            Self::Request(error) => error.is_busy(),
            Self::Full { .. } => true,
            Self::Deadline | Self::Unanswered | Self::Closed => false,
        }
    }

    /// Whether the deadline passed before the response came. More time may help; see
    /// [`may_have_been_delivered`](Self::may_have_been_delivered) before calling again.
    pub const fn is_timeout(&self) -> bool {
        match self {
            Self::Request(error) => error.is_timeout(),
            Self::Deadline => true,
            Self::Unanswered | Self::Full { .. } | Self::Closed => false,
        }
    }

    /// Whether the callee may have the request: calling again may run it twice. If this is `false`,
    /// the request was certainly not delivered and never will be.
    pub const fn may_have_been_delivered(&self) -> bool {
        match self {
            Self::Request(error) => error.may_have_been_delivered(),
            Self::Deadline | Self::Unanswered | Self::Closed => true,
            Self::Full { .. } => false,
        }
    }
}

/// The endpoint is closed, and its last message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this endpoint is closed, and all its messages were taken")]
pub struct Closed;

fn after_refusal(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE) => {
            ": this process has too many files open; raise `ulimit -n`, or lower the number of paths"
        }
        Some(Errno::ENFILE) => ": this host has too many files open; raise `fs.file-max`",
        _ => "",
    }
}

fn after_raw_refusal(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        ": give the program CAP_NET_RAW (`setcap cap_net_raw+ep PROGRAM`), or use `ecmp`, \
         `flowlabel` or `xpath`, which need no privilege"
    } else {
        after_refusal(error)
    }
}

const fn after_rejection(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::ByPeer(RejectReason::TooLarge) => "raise `max_message` there, or send less",
        Rejection::ByPeer(RejectReason::Unsupported) => "run the same version at both ends",
        Rejection::ByPeer(RejectReason::Corrupt) => "this host's memory or a bug is to blame",
        Rejection::ByPeer(RejectReason::Closing) => "send again once the receiver is back",
        Rejection::NoAnswer => "check the peer's address, its key, and the firewalls on the way",
        Rejection::NotAccepted => {
            "tell the receiver its address: `Builder::known_as`, `cbrst-recv --known-as`"
        }
        Rejection::OtherVersion { .. } => "run the same version at both ends",
        Rejection::Local(error) => after_local(error),
        Rejection::NotStarted => "allow more time or a higher rate, or send less at once",
        Rejection::Cancelled => "the caller wanted it so",
        _ => "see the log of the receiver",
    }
}

const fn after_indeterminate(reason: &Indeterminate) -> &'static str {
    match reason {
        Indeterminate::Deadline => "allow more time, or ask the peer before sending again",
        Indeterminate::Busy => {
            "have the receiver take messages faster, or raise `receive_messages` and `receive_bytes` there"
        }
        Indeterminate::Local(error) => after_local(error),
        Indeterminate::PeerRestarted => "ask the peer before sending again",
        Indeterminate::Cancelled => "the caller wanted it so",
        _ => "ask the peer before sending again",
    }
}

const fn after_local(error: &LocalError) -> &'static str {
    match error {
        LocalError::Unreachable => {
            "bring up the interface with its address, or see what `ip route get` says of the peer"
        }
        LocalError::Denied => "see the rules of the firewall for packets that leave this host",
        LocalError::Prohibited => "send to the address of one host, and see `ip route get` of it",
        LocalError::NoBuffer => "lower `capacity`, or raise `socket_buffers`",
        LocalError::TooLarge => "lower `mtu`",
        _ => "see `dmesg`, and whether another program can send to the peer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn who_may_send_again_and_who_may_wait_longer_is_told() {
        use SendError::{Closed, Refused, Rejected, Unknown};
        let forked = SendError::Forked { built_in: 1, here: 2 };
        for (error, is_timeout, may_have_been_delivered) in [
            (Refused(Refusal::Closing), false, false),
            (Rejected(Rejection::NoAnswer), true, false),
            (Rejected(Rejection::NotAccepted), true, false),
            (Rejected(Rejection::OtherVersion { ours: 2, theirs: 3 }), true, false),
            (Rejected(Rejection::NotStarted), true, false),
            (Rejected(Rejection::Local(LocalError::Denied)), true, false),
            (Rejected(Rejection::Cancelled), false, false),
            (Rejected(Rejection::ByPeer(RejectReason::Closing)), false, false),
            (Unknown(Indeterminate::Deadline), true, true),
            (Unknown(Indeterminate::Busy), true, true),
            (Unknown(Indeterminate::Local(LocalError::Denied)), true, true),
            (Unknown(Indeterminate::PeerRestarted), false, true),
            (Unknown(Indeterminate::Cancelled), false, true),
            (Closed, false, true),
            (forked, false, true),
        ] {
            let expected = (is_timeout, may_have_been_delivered);
            assert_eq!((error.is_timeout(), error.may_have_been_delivered()), expected, "{error}");
            let error = CallError::Request(error);
            assert_eq!((error.is_timeout(), error.may_have_been_delivered()), expected, "{error}");
        }
        for (error, expected) in [
            (CallError::Deadline, (true, true)),
            (CallError::Unanswered, (false, true)),
            (CallError::Full { calls: 1 }, (false, false)),
            (CallError::Closed, (false, true)),
        ] {
            assert_eq!((error.is_timeout(), error.may_have_been_delivered()), expected, "{error}");
        }
    }

    #[test]
    fn an_end_without_room_is_told_from_others() {
        let full = Refusal::Full { messages: 1, bytes: 1 };
        for (error, is_busy) in [
            (SendError::Refused(full), true),
            (SendError::Unknown(Indeterminate::Busy), true),
            (SendError::Unknown(Indeterminate::Deadline), false),
            (SendError::Refused(Refusal::Closing), false),
            (SendError::Rejected(Rejection::NotStarted), false),
        ] {
            assert_eq!(error.is_busy(), is_busy, "{error}");
            assert_eq!(CallError::Request(error.clone()).is_busy(), is_busy, "{error}");
        }
        assert!(CallError::Full { calls: 1 }.is_busy() && !CallError::Deadline.is_busy());
    }

    #[test]
    fn an_error_has_the_one_that_it_wraps_as_its_source() {
        let local = Indeterminate::Local(LocalError::Denied);
        let call = CallError::Request(SendError::Unknown(local));
        let causes = core::iter::successors(call.source(), |cause| (*cause).source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        let expected = [
            SendError::Unknown(local).to_string(),
            local.to_string(),
            LocalError::Denied.to_string(),
        ];
        assert_eq!(causes, expected);
    }

    #[test]
    fn a_remedy_is_named_only_for_what_it_remedies() {
        let raw = |errno: Errno| {
            let source = io::Error::from(errno);
            BuildError::NoRawSocket { map: "bounce:10.0.0.9".into(), source }.to_string()
        };
        for denied in [Errno::EPERM, Errno::EACCES] {
            assert!(raw(denied).contains("CAP_NET_RAW"), "{}", raw(denied));
        }
        assert!(raw(Errno::EMFILE).contains("`ulimit -n`"), "{}", raw(Errno::EMFILE));
        assert_eq!(
            raw(Errno::EAFNOSUPPORT),
            "path map `bounce:10.0.0.9` needs a raw socket, and the system refuses one"
        );
        let refused = |errno: Errno| BuildError::refused("a thread")(errno).to_string();
        assert_eq!(refused(Errno::EAGAIN), "the system refuses a thread");
        assert!(refused(Errno::EMFILE).contains("`ulimit -n`"), "{}", refused(Errno::EMFILE));
        let (addr, source) = ("127.0.0.1:7".parse().unwrap(), Errno::EMFILE.into());
        let bind = BuildError::Bind { addr, source }.to_string();
        assert!(bind.contains("`ulimit -n`"), "{bind}");
    }

    #[test]
    fn lines_say_what_is_certain_and_what_to_do() {
        let lines = [
            SendError::Refused(Refusal::TooLarge { len: 2, max: 1 }).to_string(),
            SendError::Rejected(Rejection::NoAnswer).to_string(),
            SendError::Rejected(Rejection::NotAccepted).to_string(),
            SendError::Unknown(Indeterminate::Deadline).to_string(),
            SendError::Unknown(Indeterminate::Local(LocalError::Denied)).to_string(),
        ];
        assert_eq!(
            lines,
            [
                "not sent: message of 2 bytes is larger than `max_message`, 1 bytes",
                "not delivered: nobody who shares this key answered before the deadline; \
                 check the peer's address, its key, and the firewalls on the way",
                "not delivered: somebody who shares this key is there and did not accept the \
                 handshake: it may not know that it is reached by this address; \
                 tell the receiver its address: `Builder::known_as`, `cbrst-recv --known-as`",
                "perhaps not delivered: no STOP came before the deadline; \
                 allow more time, or ask the peer before sending again",
                "perhaps not delivered: no STOP came before the deadline, and this host has not \
                 sent the last packets: its firewall forbids it; \
                 see the rules of the firewall for packets that leave this host",
            ]
        );
    }
}
