//! Packet traces.
//!
//! | file | trace |
//! |---|---|
//! | `text` | text: a line for each packet at each port |
//! | `capture` | pcapng, for Wireshark |

mod capture;
mod text;

pub use capture::Capture;
pub use text::Text;

use crate::engine::{Packet, Time};
use std::io;

/// Where a packet is observed. Ports are indices into [`Clos::ports`](crate::fabric::Clos::ports).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A port sends it, at once or behind the packets in its queue.
    Sent(usize),
    /// The queue of a port drops it.
    Dropped(usize),
    /// The link of a port loses it.
    Lost(usize),
    /// It has arrived at its destination.
    Arrived,
}

/// An observer of all packets, at every port and at their destination.
pub trait Tap {
    /// Observes a packet. `bytes` is an IPv4 packet, or empty if the transport sends no bytes.
    fn see(&mut self, now: Time, point: Point, packet: &Packet, bytes: &[u8]);

    /// Whether it has failed, which ends the simulation. [`finish`](Self::finish) returns the error.
    fn has_failed(&self) -> bool {
        false
    }

    /// Flushes the trace. Must be called once, after the simulation.
    ///
    /// # Errors
    ///
    /// The first write error. Nothing was written after it.
    fn finish(&mut self) -> io::Result<Written> {
        Ok(Written::default())
    }
}

/// The size of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Observations written.
    pub packets: u64,
    /// Observations skipped because the packets carry no bytes.
    pub left_out: u64,
}

/// Counts observations, up to the first error.
#[derive(Debug, Default)]
struct Log {
    written: Written,
    error: Option<io::Error>,
}

impl Log {
    /// Notes the result of writing a packet.
    fn note(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => self.written.packets += 1,
            Err(error) => self.error = Some(error),
        }
    }

    /// Flushes and returns the counts, or the first error.
    fn finish(&mut self, flush: impl FnOnce() -> io::Result<()>) -> io::Result<Written> {
        match self.error.take() {
            Some(error) => Err(error),
            None => flush().map(|()| self.written),
        }
    }
}
