//! The headers of requests and responses (docs/spec.md, section 13).

use crate::error::{CallFailure, Rejection};
use crate::id::Incarnation;
use crate::proto::Message;
use crate::time::Instant;
use crate::wire::{RejectReason, Role};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::time::Duration;
use std::net::SocketAddr;

/// Values of the status, the first byte of a response after the token.
const ANSWERED: u8 = 0;
const DROPPED: u8 = 1;
const REFUSED: u8 = 2;
// A status and not a text, so that responses keep one format.
const OVERLOADED: u8 = 3;

/// The identifier of a call, its token on the wire: 64 bits that only its caller and its callee
/// know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
// A token and not the message ID: those begin at 0 in each incarnation, so that a response to a
// former one would find a call of this one, and any holder of the key could predict them by
// counting.
pub struct CallId(pub(super) u64);

impl CallId {
    /// The token as it stands at the front of requests, responses and withdrawals.
    pub(in crate::proto) const fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

/// A request that is ready to be sent.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) id: CallId,
    pub(in crate::proto) timeout: Duration,
    pub(crate) frame: Bytes,
}

impl Prepared {
    pub(super) fn new(id: CallId, timeout: Duration, bytes: &[u8]) -> Self {
        let mut frame = BytesMut::with_capacity(Role::Request.header_len() + bytes.len());
        frame.put_u64(id.0);
        frame.put_u32(millis(timeout));
        frame.extend_from_slice(bytes);
        Self { id, timeout, frame: frame.freeze() }
    }

    /// The call's identifier.
    pub const fn id(&self) -> CallId {
        self.id
    }

    /// The length of the request on the wire: its own bytes and 12 more.
    pub const fn len(&self) -> usize {
        self.frame.len()
    }

    /// Always `false`: the header is always there.
    pub const fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }
}

/// The frame of a request whose caller waits for `timeout` from now on.
pub(in crate::proto) fn with_timeout(frame: Bytes, timeout: Duration) -> Bytes {
    let mut frame = frame.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    if let Some(field) = frame.get_mut(8..12) {
        field.copy_from_slice(&millis(timeout).to_be_bytes());
    }
    frame.freeze()
}

/// Milliseconds, rounded up, so that a caller waits at least as long as it says.
fn millis(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_micros().div_ceil(1_000)).unwrap_or(u32::MAX)
}

/// A request as its callee receives it.
#[derive(Clone, PartialEq, Eq)]
pub struct IncomingRequest {
    /// The caller's address, at which it accepts messages itself: see
    /// [`Message::peer`](crate::proto::Message::peer).
    pub peer: SocketAddr,
    /// The caller's incarnation.
    pub(in crate::proto) incarnation: Incarnation,
    /// The call's identifier, which the caller chose.
    pub call: CallId,
    /// When the caller stops waiting, as the callee estimates it: counted from when the request was
    /// complete.
    pub deadline: Instant,
    /// When the application took it.
    pub(in crate::proto) taken_at: Instant,
    /// The payload.
    pub bytes: Bytes,
}

/// Shows the length of the payload, not the payload.
impl core::fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { peer, incarnation: _, call, deadline, taken_at: _, bytes } = self;
        let mut shown = f.debug_struct("IncomingRequest");
        shown.field("peer", peer).field("call", call).field("deadline", deadline);
        shown.field("len", &bytes.len()).finish()
    }
}

/// Identifies a request at its callee: tokens are unique only per caller, and another incarnation may
/// have a caller's address later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// The caller, as in [`IncomingRequest::peer`].
    pub peer: SocketAddr,
    pub(in crate::proto) incarnation: Incarnation,
    /// The call.
    pub call: CallId,
}

impl IncomingRequest {
    /// The request's identifier at its callee.
    pub const fn id(&self) -> RequestId {
        RequestId { peer: self.peer, incarnation: self.incarnation, call: self.call }
    }

    /// Parses a request. Returns `None` if it is too short.
    pub(super) fn parse(message: Message) -> Option<Self> {
        let Message { peer, incarnation, arrived_at, mut bytes, .. } = message;
        let call = CallId(bytes.try_get_u64().ok()?);
        let timeout = Duration::from_millis(bytes.try_get_u32().ok()?.into());
        let deadline = arrived_at + timeout;
        Some(Self { peer, incarnation, call, deadline, taken_at: arrived_at, bytes })
    }
}

/// The bytes of the response to `call`. `None` says that the service ended the request without an
/// answer.
pub fn response(call: CallId, bytes: Option<&[u8]>) -> Bytes {
    let status = if bytes.is_some() { ANSWERED } else { DROPPED };
    write_response(call, status, bytes.unwrap_or_default())
}

/// The bytes of a response which says that the callee is closing, and its application has not seen
/// the request.
pub(in crate::proto) fn refusal(call: CallId) -> Bytes {
    write_response(call, REFUSED, &[])
}

/// The bytes of a response which says that the application is overloaded, and has not acted on the
/// request.
pub fn overload(call: CallId) -> Bytes {
    write_response(call, OVERLOADED, &[])
}

/// The call that a response answers. `None` if it says that there is no answer.
pub(in crate::proto) fn answered(mut response: &[u8]) -> Option<CallId> {
    let call = CallId(response.try_get_u64().ok()?);
    (response.try_get_u8().ok()? == ANSWERED).then_some(call)
}

fn write_response(call: CallId, status: u8, bytes: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(Role::Response.header_len() + bytes.len());
    frame.put_u64(call.0);
    frame.put_u8(status);
    frame.extend_from_slice(bytes);
    frame.freeze()
}

/// The call that a response belongs to, and how it ends. Returns `None` if the response is too
/// short, has an undefined status, or has trailing bytes although it is no answer.
pub(super) fn parse_response(mut bytes: Bytes) -> Option<(CallId, Result<Bytes, CallFailure>)> {
    let call = CallId(bytes.try_get_u64().ok()?);
    let refused = CallFailure::Rejected(Rejection::ByPeer(RejectReason::Closing));
    match bytes.try_get_u8().ok()? {
        ANSWERED => Some((call, Ok(bytes))),
        DROPPED if bytes.is_empty() => Some((call, Err(CallFailure::Unanswered))),
        REFUSED if bytes.is_empty() => Some((call, Err(refused))),
        OVERLOADED if bytes.is_empty() => Some((call, Err(CallFailure::Overloaded))),
        _ => None,
    }
}

/// The bytes of the withdrawal of `call`.
pub(in crate::proto) fn withdrawal(call: CallId) -> Bytes {
    Bytes::copy_from_slice(&call.to_bytes())
}

/// The request that a message withdraws. Returns `None` if it has another length.
pub(super) fn parse_withdrawal(message: &Message) -> Option<RequestId> {
    let token = <[u8; 8]>::try_from(&message.bytes[..]).ok()?;
    let Message { peer, incarnation, .. } = *message;
    Some(RequestId { peer, incarnation, call: CallId(u64::from_be_bytes(token)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MessageId;

    fn message(bytes: Bytes) -> Message {
        let peer = SocketAddr::from(([10, 0, 0, 1], 1));
        let id = MessageId(0);
        let role = Role::Request;
        let arrived_at = Instant::from_nanos(5);
        let incarnation = Incarnation([3; 16]);
        Message { peer, incarnation, id, role, arrived_at, bytes }
    }

    #[test]
    fn requests_are_a_token_milliseconds_and_bytes() {
        let call = CallId(0x0102_0304_0506_0708);
        let wire = Prepared::new(call, Duration::from_micros(1_500), b"hi").frame;
        assert_eq!(&wire[..], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 2, b'h', b'i']);
        let request = IncomingRequest::parse(message(wire.clone())).unwrap();
        assert_eq!((request.call, &request.bytes[..]), (call, &b"hi"[..]));
        assert_eq!(request.deadline, Instant::from_nanos(2_000_005));
        assert!((0..12).all(|len| IncomingRequest::parse(message(wire.slice(..len))).is_none()));
        let endless = Prepared::new(call, Duration::MAX, b"").frame;
        assert_eq!(endless[8..], [0xff; 4]);
        let late = with_timeout(wire.clone(), Duration::from_micros(999));
        assert_eq!((&late[..8], &late[8..]), (&wire[..8], &[0, 0, 0, 1, b'h', b'i'][..]));
    }

    #[test]
    fn responses_are_a_token_a_status_and_bytes() {
        let call = CallId(7);
        let closing = CallFailure::Rejected(Rejection::ByPeer(RejectReason::Closing));
        for (wire, tail, result) in [
            (response(call, Some(b"hi")), &[0, b'h', b'i'][..], Ok(Bytes::from_static(b"hi"))),
            (response(call, Some(b"")), &[0], Ok(Bytes::new())),
            (response(call, None), &[1], Err(CallFailure::Unanswered)),
            (refusal(call), &[2], Err(closing)),
            (overload(call), &[3], Err(CallFailure::Overloaded)),
        ] {
            assert_eq!(&wire[8..], tail);
            assert_eq!(answered(&wire), result.is_ok().then_some(call));
            assert_eq!(parse_response(wire), Some((call, result)));
        }
        for tail in [&[][..], &[4], &[1, 0], &[2, 0], &[3, 0]] {
            let malformed = [&[0, 0, 0, 0, 0, 0, 0, 7], tail].concat();
            assert_eq!(parse_response(malformed.into()), None);
        }
    }

    #[test]
    fn withdrawals_are_a_token_and_nothing_else() {
        let call = CallId(0x0102_0304_0506_0708);
        let wire = withdrawal(call);
        assert_eq!(wire[..], [1, 2, 3, 4, 5, 6, 7, 8]);
        let named = parse_withdrawal(&message(wire.clone())).unwrap();
        assert_eq!((named.call, named.peer), (call, message(wire.clone()).peer));
        assert_eq!(parse_withdrawal(&message(wire.slice(..7))), None);
        assert_eq!(parse_withdrawal(&message([&wire[..], &[0]].concat().into())), None);
    }
}
