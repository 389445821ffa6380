//! Evidence that the packets of a message do not arrive, though its peer may answer others.

use crate::time::Instant;
use core::time::Duration;

/// The number of RTOs in which symbols were sent and none arrived that is no longer bad luck, nor the queue
/// of many senders to one receiver.
const PERSISTENT: u32 = 5;
/// An endless burst has no RTOs: this many times the source symbols of the message count as one.
const MUCH: usize = 4;

/// How long symbols have vanished.
///
/// Answers alone are no evidence to the contrary: probes and trimmed symbols are answered, and so is a
/// receiver's stall by another PULL, whatever becomes of the symbols.
#[derive(Debug, Default)]
pub(super) struct Vanishing {
    /// RTOs since the last symbol is known to have arrived, in which more were sent.
    rtos: u32,
    /// When another RTO may count.
    next_at: Instant,
    /// Symbols sent since an RTO was last counted.
    sent: usize,
}

impl Vanishing {
    /// Handles `packets` symbols of a message of `source_symbols`.
    pub(super) const fn on_sent(&mut self, packets: usize, source_symbols: usize) {
        self.sent += packets;
        if self.sent > MUCH * source_symbols + 128 {
            self.rtos += 1;
            self.sent = 0;
        }
    }

    /// Handles a timeout, or a report that no symbol has arrived since the last one.
    pub(super) fn on_nothing_arrived(&mut self, now: Instant, rto: Duration) {
        if self.sent > 0 && now >= self.next_at {
            self.rtos += 1;
            self.next_at = now + rto;
            self.sent = 0;
        }
    }

    /// Handles the report that a symbol has arrived.
    pub(super) const fn on_arrival(&mut self) {
        self.rtos = 0;
        self.sent = 0;
    }

    /// Whether symbols have vanished for long.
    pub(super) const fn is_persistent(&self) -> bool {
        self.rtos >= PERSISTENT
    }
}
