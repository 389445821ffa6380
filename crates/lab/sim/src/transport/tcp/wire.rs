//! The meaning of packet fields in TCP.
//!
//! | field | in a data packet | in an ACK |
//! |---|---|---|
//! | `sequence` | its number | the number of the acknowledged packet |
//! | `acknowledged` | | the first packet that has not arrived |
//! | `remaining` | subflow << 24 | subflow << 24, and the length of the SACK block, which ends with `sequence` |
//! | `sent` | when it was sent | when the acknowledged packet was sent |
//! | `ecn` | capable, or marked | whether the acknowledged packet was marked |
//!
//! ACKs are not ECN-capable, so that switches leave their codepoint alone.

use crate::engine::{Ecn, Packet, Time};
use core::ops::Range;

/// The maximum length of a SACK block, which makes up for seven lost ACKs in a row.
pub(super) const BLOCK: u32 = 8;

const SUBFLOW: u32 = 24;

/// The subflow of a packet or ACK.
pub(super) const fn subflow(packet: &Packet) -> u8 {
    (packet.remaining >> SUBFLOW) as u8
}

/// `remaining` of a packet of `subflow`; `count` is 0 in data packets.
pub(super) const fn remaining(subflow: u8, count: u32) -> u32 {
    (subflow as u32) << SUBFLOW | count
}

/// An ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    /// The first packet that has not arrived.
    pub(super) next: u32,
    /// The packet that it acknowledges.
    pub(super) sequence: u32,
    /// The length of the SACK block, which ends with that packet.
    pub(super) count: u32,
    /// When that packet was sent.
    pub(super) sent: Time,
    /// Whether it was marked.
    pub(super) is_marked: bool,
}

impl Ack {
    pub(super) fn of(packet: &Packet) -> Self {
        Self {
            next: packet.acknowledged,
            sequence: packet.sequence,
            count: packet.remaining & ((1 << SUBFLOW) - 1),
            sent: packet.sent,
            is_marked: packet.ecn == Ecn::Marked,
        }
    }

    /// The SACK block. It may begin before [`next`](Self::next).
    pub(super) const fn block(&self) -> Range<u32> {
        self.sequence + 1 - self.count..self.sequence + 1
    }
}
