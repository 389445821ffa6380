//! What requests and responses begin with (docs/spec.md, section 13).

use bytes::{BufMut, Bytes, BytesMut};
use core::time::Duration;

const REQUEST_HEADER: usize = 12;
const RESPONSE_HEADER: usize = 9;

/// What a call is known by: 64 bits that only its caller and its callee know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Token(pub(super) u64);

/// A request as it travels.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestFrame {
    pub(super) token: Token,
    /// How long the caller waits, from when it began to send.
    pub(super) patience: Duration,
    pub(super) bytes: Bytes,
}

/// A response as it travels. `None`: the service has ended the request without an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResponseFrame {
    pub(super) token: Token,
    pub(super) bytes: Option<Bytes>,
}

impl RequestFrame {
    pub(super) fn write(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(REQUEST_HEADER + self.bytes.len());
        out.put_u64(self.token.0);
        // Rounded up: a caller waits at least as long as it says.
        let millis = self.patience.as_micros().div_ceil(1_000);
        out.put_u32(u32::try_from(millis).unwrap_or(u32::MAX));
        out.extend_from_slice(&self.bytes);
        out.freeze()
    }

    /// `None`: it is too short.
    pub(super) fn parse(bytes: &Bytes) -> Option<Self> {
        let (token, rest) = bytes.split_first_chunk::<8>()?;
        let (millis, _) = rest.split_first_chunk::<4>()?;
        Some(Self {
            token: Token(u64::from_be_bytes(*token)),
            patience: Duration::from_millis(u32::from_be_bytes(*millis).into()),
            bytes: bytes.slice(REQUEST_HEADER..),
        })
    }
}

impl ResponseFrame {
    pub(super) fn write(&self) -> Bytes {
        let len = self.bytes.as_ref().map_or(0, Bytes::len);
        let mut out = BytesMut::with_capacity(RESPONSE_HEADER + len);
        out.put_u64(self.token.0);
        out.put_u8(self.bytes.is_none().into());
        out.extend_from_slice(self.bytes.as_deref().unwrap_or_default());
        out.freeze()
    }

    /// `None`: it is too short, its status is not defined, or there is more than a refusal has.
    pub(super) fn parse(bytes: &Bytes) -> Option<Self> {
        let (token, rest) = bytes.split_first_chunk::<8>()?;
        let token = Token(u64::from_be_bytes(*token));
        match rest {
            [0, ..] => Some(Self { token, bytes: Some(bytes.slice(RESPONSE_HEADER..)) }),
            [1] => Some(Self { token, bytes: None }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_a_token_milliseconds_and_bytes() {
        let token = Token(0x0102_0304_0506_0708);
        let patience = Duration::from_micros(1_500);
        let frame = RequestFrame { token, patience, bytes: Bytes::from_static(b"hi") };
        let wire = frame.write();
        assert_eq!(&wire[..], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 2, b'h', b'i']);
        let rounded = RequestFrame { patience: Duration::from_millis(2), ..frame };
        assert_eq!(RequestFrame::parse(&wire), Some(rounded));
        assert!((0..12).all(|len| RequestFrame::parse(&wire.slice(..len)).is_none()));
        let patience = Duration::MAX;
        let endless = RequestFrame { token, patience, bytes: Bytes::new() }.write();
        assert_eq!(endless[8..], [0xff; 4]);
    }

    #[test]
    fn responses_are_a_token_a_status_and_bytes() {
        let token = Token(7);
        for (bytes, tail) in [
            (Some(Bytes::from_static(b"hi")), &[0, b'h', b'i'][..]),
            (Some(Bytes::new()), &[0]),
            (None, &[1]),
        ] {
            let frame = ResponseFrame { token, bytes };
            let wire = frame.write();
            assert_eq!(&wire[8..], tail);
            assert_eq!(ResponseFrame::parse(&wire), Some(frame));
        }
        for malformed in
            [&[0; 8][..], &[0, 0, 0, 0, 0, 0, 0, 7, 2], &[0, 0, 0, 0, 0, 0, 0, 7, 1, 0]]
        {
            assert_eq!(ResponseFrame::parse(&Bytes::copy_from_slice(malformed)), None);
        }
    }
}
