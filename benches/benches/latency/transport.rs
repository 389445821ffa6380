//! The measurements that are the same for every transport.

use std::time::Duration;

/// Bytes of a request.
pub(crate) const REQUEST: usize = 1_500;
/// The longest response.
pub(crate) const LONGEST: usize = 93_000;
/// The timeout of an operation.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

pub(crate) type Result<T> = std::result::Result<T, String>;

/// The client's end of a transport, whose connection to its server is open.
pub(crate) trait Transport {
    /// Runs `count` sequential round trips of a request of [`REQUEST`] bytes and a response of
    /// `response` bytes, and returns how long each took, from before the request was sent until the
    /// whole response had arrived. Ends early after `limit`.
    fn round_trips(
        &mut self,
        response: usize,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Duration>>;

    /// Keeps `in_flight` messages of `len` bytes in flight for `period`, then waits for the last.
    /// A message counts when the sender knows that the receiver has it. Returns the number of
    /// messages and the total time.
    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)>;

    /// Returns the packets that the server has sent since it was opened, if the transport reports
    /// them. In a flood it sends only answers.
    fn answers(&self) -> Option<u64> {
        None
    }
}

/// Returns a message of `len` bytes that contains its length, and the length of its answer.
pub(crate) fn message(len: usize, answer: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; len];
    bytes[..4].copy_from_slice(&(len as u32).to_be_bytes());
    bytes[4..8].copy_from_slice(&(answer as u32).to_be_bytes());
    bytes
}

/// Bytes of the header that [`message`] writes.
pub(crate) const HEADER: usize = 8;

/// Returns the bytes of the message that begins with `header`, and of its answer.
pub(crate) fn lengths(header: &[u8]) -> (usize, usize) {
    let field = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i])) as usize;
    (field(0), field(4))
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub(crate) fn expect_len(got: usize, expected: usize) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(format!("the response has {got} bytes instead of {expected}"))
}
