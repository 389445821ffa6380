//! Time, packets, and the order of events. Independent of the network.

mod calendar;
mod packet;

pub(crate) use calendar::Calendar;
pub use packet::{Ecn, Handle, Kind, Packet, Packets};
pub(crate) use packet::{Event, NONE};

/// A point in time or a duration, in picoseconds. A byte takes a whole number of them at every rate used in data
/// centres (80 at 100 Gb/s), so completion times are exact.
pub type Time = u64;

/// A nanosecond.
pub const NS: Time = 1_000;
/// A microsecond.
pub const US: Time = 1_000 * NS;
/// A millisecond.
pub const MS: Time = 1_000 * US;
/// A second.
pub const SECOND: Time = 1_000 * MS;

/// How long a byte takes at `rate` bits per second.
pub(crate) const fn byte_time(rate: u64) -> Time {
    8 * SECOND / rate
}
