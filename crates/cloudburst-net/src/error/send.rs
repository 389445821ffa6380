//! Why a message, a call or a reply did not succeed, and whether it may have been delivered.

use cloudburst_core::config::ConfigError;
use cloudburst_core::error::{CallFailure, Indeterminate, LocalError, Rejection, StartError};
use cloudburst_core::path::OrderError;
use cloudburst_core::wire::RejectReason;
use std::io;
use std::net::SocketAddr;

/// Why a message, a connect or a reply was not delivered or may not have been, or why a call has no
/// response.
///
/// Each variant is one reason. [`may_have_been_delivered`](Self::may_have_been_delivered) says
/// whether sending again is safe; the other predicates sort the reasons by what to do about them. The text
/// includes the cause, which [`source`](core::error::Error::source) therefore does not return again.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Bytes, Endpoint, SendError};
/// # use std::net::SocketAddr;
/// async fn ask(client: &Endpoint, servers: [SocketAddr; 2]) -> Result<Bytes, SendError> {
///     match client.call(servers[0], "a question").await {
///         Err(error) if !error.may_have_been_delivered() => {
///             client.call(servers[1], "a question").await // it is not delivered twice
///         }
///         Err(SendError::NoResponse) => Ok(Bytes::from("an old answer")),
///         answered => answered,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
// Flat, although the variants have groups: callers check whether the message may have arrived far
// more often than they match one reason, and methods answer that.
pub enum SendError {
    // Refused by this endpoint: nothing was sent.
    /// The message is longer than the configuration allows. Of
    /// [`Config::max_message`](crate::Config::max_message), a request header takes 12 bytes, and a response
    /// header 9.
    #[error(
        "not sent: message of {len} bytes is too long: `max_message` leaves room for {max} bytes"
    )]
    TooLarge {
        /// Bytes in the message, without the header.
        len: usize,
        /// The limit: `max_message`, less the header.
        max: usize,
    },
    /// An option of the message is out of range.
    #[error("not sent: {0}")]
    Option(ConfigError),
    /// There is no path to the peer: the path map has none, the endpoint is bound to an address of the other
    /// family, or the peer's port is 0.
    #[error("not sent: there is no path to {peer}: {why}", why = after_no_path(*peer))]
    NoPath {
        /// The peer.
        peer: SocketAddr,
    },
    /// No address of the peer is known that this endpoint can send to: the look-up of its name failed, or
    /// there was no time for one.
    #[error("not sent: no address for {name}: {reason}; check the name, or `resolve` it before")]
    NoAddress {
        /// The name.
        name: String,
        /// The resolver's error.
        reason: String,
    },
    /// The configured order does not fit the number of paths to the peer.
    #[error("not sent: the paths to {peer} cannot be put in order: {source}")]
    Order {
        /// The peer.
        peer: SocketAddr,
        /// The number of paths, and the number that the order needs.
        // As in `BuildError`: thiserror would make a field `source` the error's source.
        r#source: OrderError,
    },
    /// The peer is behind an address translator, and no session with it is left.
    #[error(
        "not sent: {peer} is behind an address translator, and its session has ended: it must send \
         first"
    )]
    Gone {
        /// The peer.
        peer: SocketAddr,
    },
    /// The limit on messages or bytes under way is reached, and the message must not wait in line, or the line
    /// is full ([`Limits::waiting`](crate::Limits::waiting)).
    #[error(
        "not sent: {messages} messages and connects ({bytes} bytes) are under way: wait until one ends"
    )]
    Full {
        /// Messages and connects under way.
        messages: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// The limit on calls in flight is reached, and the call must not wait in line, or the line is full.
    #[error("not sent: {calls} calls are in flight; wait until one ends, or raise `memory`")]
    TooManyCalls {
        /// Calls in flight.
        calls: usize,
    },
    /// This endpoint is closing or closed.
    #[error("not sent: this endpoint is closing")]
    Closing,
    /// 2^48 messages were sent.
    #[error("not sent: this endpoint has used up its message ids: start another")]
    OutOfIds,

    // Certainly not delivered.
    /// The peer refused the message.
    #[error("not delivered: {0}; {advice}", advice = after_refusal_by_peer(*.0))]
    Refused(RejectReason),
    /// No session was established before the deadline: no endpoint is there, or it has another key, or no
    /// packet gets through.
    #[error(
        "not delivered: no endpoint with this key answered before the deadline; check the peer's \
         address, its key, and the firewalls on the way"
    )]
    NoAnswer,
    /// Of a connect or a call: nothing listens at this address, as its host reports (ICMP). A message waits
    /// for its deadline instead.
    #[error(
        "not delivered: nothing listens at {peer}, as its host reports; check the port, and whether the \
         peer is running"
    )]
    PortClosed {
        /// The address.
        peer: SocketAddr,
    },
    /// No session was established before the deadline, though an endpoint that has the key answered.
    /// Most likely it does not know this address as its own.
    #[error(
        "not delivered: an endpoint with this key answered but did not accept the handshake: it may \
         not know this address as its own; tell the receiver its address: `Builder::known_as`, \
         `cbrst-recv --known-as`"
    )]
    NotAccepted,
    /// No session was established before the deadline, because the endpoint that shares the key speaks
    /// another version of the protocol.
    #[error(
        "not delivered: the peer speaks version {theirs} of the protocol, and this endpoint version \
         {ours}; run the same version at both ends"
    )]
    OtherVersion {
        /// The version that this endpoint speaks.
        ours: u8,
        /// The newest version that the peer speaks.
        theirs: u8,
    },
    /// As [`NoAnswer`](Self::NoAnswer), and the last packets to the peer did not even leave this host.
    #[error(
        "not delivered: no endpoint with this key answered before the deadline, and this host could \
         not send the last packets: {0}; {advice}", advice = after_local(*.0)
    )]
    NotSent(LocalError),
    /// The deadline passed before the first packet: there was no capacity for the message
    /// ([`Limits::send_messages`](crate::Limits::send_messages) and `send_bytes`), or the rate or other
    /// messages left it no transmit opportunity, or the deadline was zero.
    #[error(
        "not delivered: no packet of the message was sent before its deadline; allow more time, a \
         higher rate, or more messages at once (`memory`)"
    )]
    NotStarted,
    /// The message was cancelled before its first packet; a reply, because it is no longer awaited.
    #[error("not delivered: the message was cancelled before its first packet was sent")]
    Cancelled,

    // The message may have been delivered, or not. No more of it is sent, but packets that have left this
    // host may still complete it.
    /// No STOP came before the deadline.
    #[error(
        "perhaps not delivered: no STOP came before the deadline; allow more time, or ask the peer \
         before sending again"
    )]
    Deadline,
    /// As [`Deadline`](Self::Deadline), and the receiver was full when it last answered, but did not answer
    /// that it delivers nothing: then this would be [`Refused`](Self::Refused).
    #[error(
        "perhaps not delivered: no STOP came before the deadline: the receiver was full when it \
         last answered; have the receiver take messages faster, or raise `memory` there"
    )]
    Busy,
    /// As [`Deadline`](Self::Deadline), and the last packets to the peer did not even leave this host.
    #[error(
        "perhaps not delivered: no STOP came before the deadline, and this host could not send the \
         last packets: {0}; {advice}", advice = after_local(*.0)
    )]
    PartlySent(LocalError),
    /// As [`Deadline`](Self::Deadline), and packets of this many bytes do not reach the peer, though
    /// shorter ones do: the MTU of the path is below what is discovered.
    #[error(
        "perhaps not delivered: no STOP came before the deadline: packets of {0} bytes do not reach the \
         peer, and short ones do: the MTU of the path may be smaller: set `mtu` to what the path carries"
    )]
    PathMtu(usize),
    /// The receiver restarted, or forgot the session, or another one on its port took its place,
    /// while the message was under way.
    #[error(
        "perhaps not delivered: the receiver restarted, or was replaced, while the message was \
         under way; ask the peer before sending again"
    )]
    PeerRestarted,
    /// The callee may have the request, and nothing was heard from it for about a minute, or nothing listens
    /// at its port any more, as its host reports.
    #[error(
        "perhaps not delivered: the peer has not answered for a minute, or nothing listens at its port any \
         more; check whether it is running and reachable"
    )]
    PeerGone,
    /// The message was cancelled after packets of it had been sent.
    #[error("perhaps not delivered: the message was cancelled while it was under way")]
    CancelledLate,
    /// This endpoint was closed or dropped while the message or the call was under way.
    #[error(
        "perhaps not delivered: this endpoint was closed; give `shutdown` more time for sends and \
         calls under way to end"
    )]
    Closed,

    // Of calls alone: the callee's endpoint has the request.
    /// The callee has the request, but its response did not arrive before the deadline.
    #[error(
        "no response before the deadline, though the callee has the request: it may still act \
         on it; allow more time, or check whether it is overloaded"
    )]
    NoResponse,
    /// The callee's application has dropped the request: its handler panicked, failed, was stopped, or chose
    /// not to reply.
    #[error("the callee has dropped the request without a reply: see its log")]
    Unanswered,
    /// The callee's application has refused the request, because it is overloaded, and has not acted on it.
    #[error(
        "not executed: the callee's application is overloaded and has refused the request; call again \
         later, or call another peer"
    )]
    Overloaded,
}

impl SendError {
    /// Whether one end was full: the receiver, whose application does not take messages fast enough or is
    /// overloaded, or this endpoint, which has too many under way. Send less, or later.
    pub const fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Full { .. }
                | Self::TooManyCalls { .. }
                | Self::Refused(RejectReason::Busy)
                | Self::Busy
                | Self::Overloaded
        )
    }

    /// Whether the deadline passed before the send or the call ended. More time may help, so
    /// [`OtherVersion`](Self::OtherVersion) is not among them. See
    /// [`may_have_been_delivered`](Self::may_have_been_delivered) before sending again.
    pub const fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::NoAnswer
                | Self::NotAccepted
                | Self::NotSent(_)
                | Self::NotStarted
                | Self::Refused(RejectReason::Busy)
                | Self::Deadline
                | Self::Busy
                | Self::PartlySent(_)
                | Self::PathMtu(_)
                | Self::NoResponse
        )
    }

    /// Whether the peer has refused the message. Unless it was [closing](RejectReason::Closing) or
    /// [busy](RejectReason::Busy), it will refuse it again.
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Whether this endpoint is closed or closing: it can send nothing more.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closing | Self::Closed)
    }

    /// Whether the receiver may have the message: sending it again may deliver it, or run the call,
    /// twice. If this is `false`, the message was certainly not delivered and never will be; of a call, the
    /// callee's application has not acted on the request and never will.
    pub const fn may_have_been_delivered(&self) -> bool {
        matches!(
            self,
            Self::Deadline
                | Self::Busy
                | Self::PartlySent(_)
                | Self::PathMtu(_)
                | Self::PeerRestarted
                | Self::PeerGone
                | Self::CancelledLate
                | Self::Closed
                | Self::NoResponse
                | Self::Unanswered
        )
    }
}

impl From<ConfigError> for SendError {
    fn from(error: ConfigError) -> Self {
        Self::Option(error)
    }
}

// These conversions name every variant, so that a new one does not compile before it has a text and
// a group.
impl From<StartError> for SendError {
    fn from(refusal: StartError) -> Self {
        match refusal {
            StartError::TooLarge { len, max } => Self::TooLarge { len, max },
            StartError::Full { messages, bytes } => Self::Full { messages, bytes },
            StartError::TooManyCalls { calls } => Self::TooManyCalls { calls },
            StartError::NoPath(peer) => Self::NoPath { peer },
            StartError::Gone(peer) => Self::Gone { peer },
            StartError::Order { peer, source } => Self::Order { peer, source },
            StartError::Closing => Self::Closing,
            StartError::Option(error) => Self::Option(error),
            StartError::OutOfIds => Self::OutOfIds,
        }
    }
}

impl From<Rejection> for SendError {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::ByPeer(reason) => Self::Refused(reason),
            Rejection::NoAnswer => Self::NoAnswer,
            Rejection::OtherVersion { ours, theirs } => Self::OtherVersion { ours, theirs },
            Rejection::PortClosed(peer) => Self::PortClosed { peer },
            Rejection::NotAccepted => Self::NotAccepted,
            Rejection::Local(error) => Self::NotSent(error),
            Rejection::NotStarted => Self::NotStarted,
            Rejection::Closing => Self::Closing,
            Rejection::Cancelled => Self::Cancelled,
        }
    }
}

impl From<Indeterminate> for SendError {
    fn from(reason: Indeterminate) -> Self {
        match reason {
            Indeterminate::Deadline => Self::Deadline,
            Indeterminate::Busy => Self::Busy,
            Indeterminate::Local(error) => Self::PartlySent(error),
            Indeterminate::Mtu(bytes) => Self::PathMtu(bytes),
            Indeterminate::PeerRestarted => Self::PeerRestarted,
            Indeterminate::PeerGone => Self::PeerGone,
            Indeterminate::Cancelled => Self::CancelledLate,
        }
    }
}

impl From<CallFailure> for SendError {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Rejected(rejection) => rejection.into(),
            CallFailure::Unknown(reason) => reason.into(),
            CallFailure::Deadline => Self::NoResponse,
            CallFailure::Unanswered => Self::Unanswered,
            CallFailure::Overloaded => Self::Overloaded,
        }
    }
}

impl From<SendError> for io::Error {
    /// For callers whose other errors are of this type. The [`SendError`], which says more, is in
    /// [`io::Error::get_ref`].
    fn from(error: SendError) -> Self {
        let kind = match error {
            SendError::TooLarge { .. } | SendError::Option(_) | SendError::Order { .. } => {
                io::ErrorKind::InvalidInput
            }
            SendError::NoPath { .. } | SendError::NoAddress { .. } => {
                io::ErrorKind::HostUnreachable
            }
            SendError::Gone { .. } | SendError::Closing => io::ErrorKind::NotConnected,
            SendError::Full { .. } | SendError::TooManyCalls { .. } | SendError::Overloaded => {
                io::ErrorKind::ResourceBusy
            }
            SendError::Refused(RejectReason::Busy)
            | SendError::NoAnswer
            | SendError::NotAccepted
            | SendError::NotSent(_)
            | SendError::NotStarted
            | SendError::Deadline
            | SendError::Busy
            | SendError::PartlySent(_)
            | SendError::PathMtu(_)
            | SendError::NoResponse => io::ErrorKind::TimedOut,
            SendError::Refused(_) | SendError::PortClosed { .. } => {
                io::ErrorKind::ConnectionRefused
            }
            SendError::OtherVersion { .. } => io::ErrorKind::Unsupported,
            SendError::PeerRestarted | SendError::PeerGone => io::ErrorKind::ConnectionReset,
            SendError::Closed => io::ErrorKind::ConnectionAborted,
            SendError::OutOfIds
            | SendError::Cancelled
            | SendError::CancelledLate
            | SendError::Unanswered => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl From<Closed> for io::Error {
    /// The kind is [`io::ErrorKind::NotConnected`].
    fn from(closed: Closed) -> Self {
        Self::new(io::ErrorKind::NotConnected, closed)
    }
}

impl From<Overloaded> for io::Error {
    /// The kind is [`io::ErrorKind::ResourceBusy`].
    fn from(overloaded: Overloaded) -> Self {
        Self::new(io::ErrorKind::ResourceBusy, overloaded)
    }
}

/// The endpoint is closed, and all its messages have been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this endpoint is closed, and all its messages were taken")]
pub struct Closed;

/// An error of a handler or of a service: it is overloaded, and has not acted on the request.
///
/// Return it from a handler of [`Endpoint::try_serve`](crate::Endpoint::try_serve) or from a service of
/// `Endpoint::serve_with`; it may be the [`source`](core::error::Error::source) of another error. The caller
/// gets [`SendError::Overloaded`], and may send the request again, later or elsewhere. See also
/// [`Request::refuse`](crate::Request::refuse).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("the service is overloaded, and has not acted on the request")]
pub struct Overloaded;

const fn after_refusal_by_peer(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::TooLarge => "raise `max_message` there, or send less",
        RejectReason::Unsupported => "run the same version at both ends",
        RejectReason::Corrupt => "faulty memory of this host or a bug is to blame",
        RejectReason::Closing => "send again once the receiver is back",
        RejectReason::Busy => "have the receiver take messages faster, or raise `memory` there",
        _ => "see the log of the receiver",
    }
}

const fn after_no_path(peer: SocketAddr) -> &'static str {
    match peer.port() {
        0 => "the port of a peer cannot be 0",
        _ => {
            "the path map has none, or this endpoint is bound to an address of the other family (IPv4 or IPv6)"
        }
    }
}

const fn after_local(error: LocalError) -> &'static str {
    match error {
        LocalError::Unreachable => {
            "bring up the interface with its address, or check the route with `ip route get PEER`"
        }
        LocalError::Denied => "check this host's firewall rules for outgoing packets",
        LocalError::Prohibited => "send to the address of a single host, and check `ip route get`",
        LocalError::WrongSource => {
            "bind the endpoint to an address of that network, or to 0.0.0.0 or [::]"
        }
        LocalError::NoBuffer => "lower `capacity`, or raise `socket_buffers`",
        LocalError::TooLarge => "lower `mtu`",
        _ => "check `dmesg`, and whether another program can send to the peer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn predicates_say_whether_to_send_again_and_whether_to_wait_longer() {
        for (error, is_timeout, may_have_been_delivered) in [
            (SendError::TooLarge { len: 2, max: 1 }, false, false),
            (SendError::TooManyCalls { calls: 1 }, false, false),
            (SendError::Closing, false, false),
            (SendError::NoAnswer, true, false),
            (SendError::PortClosed { peer: ([10, 0, 0, 1], 7).into() }, false, false),
            (SendError::NotAccepted, true, false),
            (SendError::OtherVersion { ours: 2, theirs: 3 }, false, false),
            (SendError::NotStarted, true, false),
            (SendError::NotSent(LocalError::Denied), true, false),
            (SendError::Cancelled, false, false),
            (SendError::Refused(RejectReason::Closing), false, false),
            (SendError::Refused(RejectReason::Busy), true, false),
            (SendError::Deadline, true, true),
            (SendError::Busy, true, true),
            (SendError::PartlySent(LocalError::Denied), true, true),
            (SendError::PathMtu(1_280), true, true),
            (SendError::PeerRestarted, false, true),
            (SendError::PeerGone, false, true),
            (SendError::CancelledLate, false, true),
            (SendError::Closed, false, true),
            (SendError::NoResponse, true, true),
            (SendError::Unanswered, false, true),
            (SendError::Overloaded, false, false),
        ] {
            let expected = (is_timeout, may_have_been_delivered);
            assert_eq!((error.is_timeout(), error.may_have_been_delivered()), expected, "{error}");
        }
    }

    #[test]
    fn an_outcome_that_is_certain_in_the_core_stays_certain() {
        let local = LocalError::Denied;
        for rejection in [
            Rejection::ByPeer(RejectReason::Corrupt),
            Rejection::NoAnswer,
            Rejection::PortClosed(([10, 0, 0, 1], 7).into()),
            Rejection::OtherVersion { ours: 2, theirs: 3 },
            Rejection::NotAccepted,
            Rejection::Local(local),
            Rejection::NotStarted,
            Rejection::Cancelled,
        ] {
            let error = SendError::from(CallFailure::Rejected(rejection));
            assert!(!error.may_have_been_delivered(), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("not delivered: {rejection}")), "{text}");
        }
        // It waited in line, so that none of it was sent.
        let closing = SendError::from(CallFailure::Rejected(Rejection::Closing));
        assert_eq!(closing, SendError::Closing);
        for reason in [
            Indeterminate::Deadline,
            Indeterminate::Busy,
            Indeterminate::Local(local),
            Indeterminate::Mtu(1_280),
            Indeterminate::PeerRestarted,
            Indeterminate::PeerGone,
            Indeterminate::Cancelled,
        ] {
            let error = SendError::from(CallFailure::Unknown(reason));
            assert!(error.may_have_been_delivered(), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("perhaps not delivered: {reason}")), "{text}");
        }
        let peer = SocketAddr::from(([10, 0, 0, 1], 7));
        for refusal in [
            StartError::TooLarge { len: 2, max: 1 },
            StartError::Full { messages: 1, bytes: 2 },
            StartError::TooManyCalls { calls: 1 },
            StartError::NoPath(peer),
            StartError::Gone(peer),
            StartError::Closing,
            StartError::OutOfIds,
        ] {
            let error = SendError::from(refusal.clone());
            assert!(!error.may_have_been_delivered(), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("not sent: {refusal}")), "{text}");
        }
    }

    #[test]
    fn busy_refused_and_closed_are_distinguished() {
        for (error, [is_busy, is_refused, is_closed]) in [
            (SendError::Full { messages: 1, bytes: 1 }, [true, false, false]),
            (SendError::TooManyCalls { calls: 1 }, [true, false, false]),
            (SendError::Busy, [true, false, false]),
            (SendError::Overloaded, [true, false, false]),
            (SendError::Deadline, [false; 3]),
            (SendError::Refused(RejectReason::Closing), [false, true, false]),
            (SendError::Refused(RejectReason::Busy), [true, true, false]),
            (SendError::Closing, [false, false, true]),
            (SendError::Closed, [false, false, true]),
        ] {
            let predicates = [error.is_busy(), error.is_refused(), error.is_closed()];
            assert_eq!(predicates, [is_busy, is_refused, is_closed], "{error}");
        }
    }

    #[test]
    fn an_error_prints_its_cause_once() {
        let peer = SocketAddr::from(([10, 0, 0, 1], 7));
        let local = LocalError::Denied;
        let option = ConfigError { field: "priority", value: "9".into(), expected: "at most 7" };
        for (error, cause) in [
            (SendError::PartlySent(local), local.to_string()),
            (SendError::NotSent(local), local.to_string()),
            (SendError::Refused(RejectReason::Corrupt), RejectReason::Corrupt.to_string()),
            (SendError::Option(option.clone()), option.to_string()),
            (
                SendError::Order { peer, source: OrderError::NoPaths },
                OrderError::NoPaths.to_string(),
            ),
        ] {
            assert!(error.to_string().contains(&cause), "{error}");
            assert!(error.source().is_none(), "{error}");
        }
    }

    #[test]
    fn an_io_error_has_the_kind_of_the_send_error_and_contains_it() {
        for (error, kind) in [
            (SendError::Deadline, io::ErrorKind::TimedOut),
            (SendError::NoAnswer, io::ErrorKind::TimedOut),
            (
                SendError::PortClosed { peer: ([10, 0, 0, 1], 7).into() },
                io::ErrorKind::ConnectionRefused,
            ),
            (SendError::Closing, io::ErrorKind::NotConnected),
            (SendError::Overloaded, io::ErrorKind::ResourceBusy),
            (SendError::Refused(RejectReason::Closing), io::ErrorKind::ConnectionRefused),
        ] {
            let wrapped = io::Error::from(error.clone());
            assert_eq!(wrapped.kind(), kind, "{error}");
            assert_eq!(wrapped.get_ref().unwrap().downcast_ref(), Some(&error));
        }
        assert_eq!(io::Error::from(Closed).kind(), io::ErrorKind::NotConnected);
        assert_eq!(io::Error::from(Overloaded).kind(), io::ErrorKind::ResourceBusy);
    }

    #[test]
    fn error_texts_say_whether_the_message_was_delivered_and_what_to_do() {
        let lines = [
            SendError::TooLarge { len: 2, max: 1 }.to_string(),
            SendError::NoAnswer.to_string(),
            SendError::NotAccepted.to_string(),
            SendError::Deadline.to_string(),
            SendError::PartlySent(LocalError::Denied).to_string(),
        ];
        assert_eq!(
            lines,
            [
                "not sent: message of 2 bytes is too long: `max_message` leaves room for 1 bytes",
                "not delivered: no endpoint with this key answered before the deadline; \
                 check the peer's address, its key, and the firewalls on the way",
                "not delivered: an endpoint with this key answered but did not accept the \
                 handshake: it may not know this address as its own; \
                 tell the receiver its address: `Builder::known_as`, `cbrst-recv --known-as`",
                "perhaps not delivered: no STOP came before the deadline; \
                 allow more time, or ask the peer before sending again",
                "perhaps not delivered: no STOP came before the deadline, and this host could not \
                 send the last packets: the local firewall rejects them; \
                 check this host's firewall rules for outgoing packets",
            ]
        );
    }
}
