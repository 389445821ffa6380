//! What is measured of every transport, in the same way.

use std::time::Duration;

/// Bytes of a request.
pub(crate) const REQUEST: usize = 1_500;
/// The longest response.
pub(crate) const LONGEST: usize = 93_000;
/// What takes so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

pub(crate) type Result<T> = std::result::Result<T, String>;

/// The client's end of a transport, whose connection to its server is open.
pub(crate) trait Transport {
    /// Runs `count` round trips one after the other, of a request of [`REQUEST`] bytes and a
    /// response of `response` bytes, and says how long each took from before the request was sent
    /// until the whole response was there. Ends early after `limit`.
    fn round_trips(
        &mut self,
        response: usize,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Duration>>;

    /// Keeps `in_flight` messages of `len` bytes under way for `period`, then waits for the last.
    /// A message counts when the sender knows that the receiver has it. Returns how many did, and
    /// how long it all took.
    fn flood(
        &mut self,
        len: usize,
        in_flight: usize,
        period: Duration,
    ) -> Result<(usize, Duration)>;

    /// Packets that the server has sent since it was opened, if the transport tells. In a flood it
    /// sends nothing but answers.
    fn answers(&self) -> Option<u64> {
        None
    }
}

/// A message of `len` bytes that says how long it is, and how many bytes to answer it with.
pub(crate) fn message(len: usize, answer: usize) -> Vec<u8> {
    let mut bytes = vec![0x5a; len];
    bytes[..4].copy_from_slice(&(len as u32).to_be_bytes());
    bytes[4..8].copy_from_slice(&(answer as u32).to_be_bytes());
    bytes
}

/// Bytes of the header that [`message`] writes.
pub(crate) const HEADER: usize = 8;

/// Bytes in the message that begins so, and in its answer.
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
