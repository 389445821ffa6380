//! What the fields of packets mean to TCP.
//!
//! | field | in a data packet | in an ACK |
//! |---|---|---|
//! | `sequence` | its number | that of the packet that it answers |
//! | `acknowledged` | | the first packet that has not arrived |
//! | `remaining` | subflow << 24 | subflow << 24, and how many have arrived in a row up to `sequence` |
//! | `sent` | when it was sent | when the packet that it answers was sent |
//! | `ecn` | capable, or marked | whether the packet that it answers was marked |
//!
//! ACKs are not ECN-capable, so that switches leave their codepoint alone.

use crate::engine::{Ecn, Packet, Time};
use core::ops::Range;

/// How many packets a SACK block tells of at most: so many ACKs in a row may be lost without harm.
pub(super) const BLOCK: u32 = 8;

const SUBFLOW: u32 = 24;

/// Which subflow a packet or ACK is of.
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
    /// The packet that it answers.
    pub(super) sequence: u32,
    /// How many have arrived in a row up to that.
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

    /// The SACK block, of which those before [`next`](Self::next) are no news.
    pub(super) const fn block(&self) -> Range<u32> {
        self.sequence + 1 - self.count..self.sequence + 1
    }
}
