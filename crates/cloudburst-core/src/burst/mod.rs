//! Drives a [`Transceiver`] over any [`PacketIo`], on the threads that wait, or on up to two of its own.
//!
//! ```text
//!   caller ── send ──► Sender ──► PacketIo::transmit
//!                        ▲  the answers among them
//!   caller ◄── recv ── Receiver ◄── PacketIo::take      by whoever waits; else "cbrst-recv"
//!                timers ◄── PacketIo::set_timer         by whoever waits; else "cbrst-send"
//! ```
//!
//! One lock guards the endpoint, and any thread may drive it. Callbacks of the application and
//! sending run without the lock; observers, path resolvers, [`PacketIo::now`] and
//! [`PacketIo::set_timer`] run under it. A caller's thread sends the first packets of its message. A
//! caller that waits, or a task of its runtime, takes the packets that arrive, serves all timers, and
//! sends what they request, because handing work to another thread takes longer than doing it. The
//! paper (section IV-A) has four threads; the two of the endpoint do the same work when nobody waits.

mod closing;
mod drive;
mod engine;
mod receiving;
mod role;
mod sending;
mod shared;
mod state;

pub use drive::Driven;
pub use engine::Engine;
pub use sending::Flush;
pub use state::{OnAnswer, OnConnect, OnEnd, OnWithdrawn};

use crate::error::LocalError;
use crate::path::Via;
use crate::proto::Transmit;
use crate::time::Instant;
use core::time::Duration;
use std::net::SocketAddr;

#[cfg(doc)]
use crate::proto::Transceiver;

/// Datagrams that arrived together on the same path, as GRO joins them. They are decrypted in place.
#[derive(Debug)]
pub struct Datagrams<'a> {
    /// The path by which they arrived.
    pub via: Via,
    /// Their bytes, one after the other.
    pub bytes: &'a mut [u8],
    /// Bytes in each of them but the last.
    pub segment_size: usize,
    /// Whether they arrived with a CE mark (RFC 3168). GRO joins only datagrams with the same mark.
    pub ce: bool,
}

impl<'a> Datagrams<'a> {
    /// A single datagram, without a CE mark.
    pub const fn one(via: Via, bytes: &'a mut [u8]) -> Self {
        Self { via, segment_size: bytes.len(), bytes, ce: false }
    }

    /// Calls `handle` with each datagram. Empty bytes are one empty datagram.
    pub fn for_each(self, mut handle: impl FnMut(Via, &mut [u8])) {
        if self.bytes.is_empty() {
            handle(self.via, &mut []);
        }
        self.bytes.chunks_mut(self.segment_size.max(1)).for_each(|one| handle(self.via, one));
    }

    /// The number of datagrams.
    pub(crate) fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.segment_size.max(1)).max(1)
    }
}

/// Sockets, or a stand-in for them, with their clock and a timer.
pub trait PacketIo: Send + Sync + 'static {
    /// The result of [`wait`](Self::wait), so that [`take`](Self::take) need not check the sockets
    /// again.
    // Two calls, because the clock is read in between: a timer counts only if it expired before the
    // sockets are read.
    type Ready;

    /// The time on a monotonic clock. Called under the lock of the engine, so it must not block.
    fn now(&self) -> Instant;

    /// Puts the datagrams in `contents` on the wire, as described by `transmit`.
    ///
    /// # Errors
    ///
    /// Returns an error if the host took none of them. Only these packets are lost: implementations
    /// count the error and return.
    fn transmit(&self, transmit: &Transmit, contents: &[u8]) -> Result<(), LocalError>;

    /// Waits for datagrams, for the timer, for [`wake`](Self::wake), or for `timeout`. A `timeout`
    /// of zero does not wait. Called by one thread at a time.
    fn wait(&self, timeout: Duration) -> Self::Ready;

    /// Calls `deliver` with datagrams that have arrived, without waiting. With `all`, it takes all of
    /// them, up to a limit in a flood; otherwise perhaps only some.
    fn take(&self, ready: Self::Ready, all: bool, deliver: &mut dyn FnMut(Datagrams<'_>));

    /// Ends a [`wait`](Self::wait) under way or else the next one, and likewise a
    /// [`watch`](Self::watch).
    fn wake(&self);

    /// Sets the timer to expire at `at`, at once if that has passed, or never. Replaces what was set.
    /// Called under the lock of the engine, so it must not block.
    fn set_timer(&self, at: Option<Instant>);

    /// Calls `refused` with the destination and the first bytes of each packet that was sent to a port at
    /// which nothing listens, as [`take`](Self::take) has found since the last call.
    fn take_refused(&self, _refused: &mut dyn FnMut(SocketAddr, &[u8])) {}

    /// Whether the addresses of this host have changed since the last call, as far as a
    /// [`wait`](Self::wait) has noticed.
    fn has_moved(&self) -> bool {
        false
    }

    /// Whether a [`wait`](Self::wait) would end at once. Uses up nothing.
    fn is_ready(&self) -> bool;

    /// Returns when a [`wait`](Self::wait) would end at once. Uses up nothing.
    fn watch(&self);

    /// Returns when the timer has expired and was not set since. Uses up nothing.
    fn watch_timer(&self);
}
