//! Two threads: one encodes and sends, the other receives and decodes. The paper (section IV-A) has four.
//!
//! [`Engine`] drives a [`Transceiver`] over any [`PacketIo`]:
//!
//! ```text
//!   caller ── send ──► Sender ──► PacketIo::transmit          thread "cbrst-send"
//!                        ▲  the answers among them
//!   caller ◄── recv ── Receiver ◄── PacketIo::take            thread "cbrst-recv"
//! ```
//!
//! One lock guards the endpoint, and any thread may drive it. Callbacks of the application and system
//! calls run without the lock; observers, path resolvers and [`PacketIo::now`] run under it. A
//! caller's thread sends the first packets of its message, and the receiving thread sends what an
//! answer requests, because handing work to another thread takes longer than doing it. The sending
//! thread handles everything that must wait for the pacer or for an answer.

mod closing;
mod drive;
mod engine;
mod receiving;
mod sending;
mod shared;
mod state;

pub use engine::{Driven, Engine};
pub use shared::{EngineEvent, contain};
pub use state::{OnAnswer, OnConnect, OnEnd, OnWithdrawn};

use crate::error::LocalError;
use crate::path::Via;
use crate::proto::Transmit;
use crate::time::Instant;
use core::time::Duration;

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

/// Sockets, or a stand-in for them, and their clock.
pub trait PacketIo: Send + Sync + 'static {
    /// The result of [`wait`](Self::wait), so that [`take`](Self::take) need not check the sockets
    /// again.
    // Two calls, because a thread that waits has nothing in hand, and one that takes does: see
    // `Shared::in_hand`.
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

    /// Waits for datagrams, for [`wake`](Self::wake), or for `timeout`, to the nanosecond. A
    /// `timeout` of zero does not wait. Several threads may call this at once.
    fn wait(&self, timeout: Duration) -> Self::Ready;

    /// Calls `deliver` with the datagrams that have arrived, and does not wait for more.
    fn take(&self, ready: Self::Ready, deliver: &mut dyn FnMut(Datagrams<'_>));

    /// Makes each [`wait`](Self::wait) under way return, and one more that begins later, so that a
    /// thread that is about to wait does not miss this. Waits with a `timeout` of zero do not use
    /// up the latter.
    fn wake(&self);
}
