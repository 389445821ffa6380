//! The counters that prove which faults occurred.

/// The counters of a link, in packets, one per fault.
///
/// Every packet is accounted for: at any time
/// `sent + duplicated == delivered + lost + queue_dropped + selectively_dropped + too_long + blackholed +
/// in_flight`, where the last one is [`Link::in_flight`](super::Link::in_flight).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets given to the link, whatever their fate.
    pub sent: u64,
    /// Packets that came out at the far end, including copies and damaged ones.
    pub delivered: u64,
    /// Packets lost by [`LinkConfig::loss`](super::LinkConfig::loss).
    pub lost: u64,
    /// Packets dropped because the queue was full.
    pub queue_dropped: u64,
    /// Packets dropped because they are not ECN-capable, by [`LinkConfig::selective`](super::LinkConfig::selective).
    pub selectively_dropped: u64,
    /// Packets trimmed because the queue was full.
    pub trimmed: u64,
    /// Packets of which a second copy was made.
    pub duplicated: u64,
    /// Packets and copies that were held back, overtaken or not.
    pub reordered: u64,
    /// Packets and copies with flipped bits.
    pub corrupted: u64,
    /// Packets and copies that were truncated.
    pub truncated: u64,
    /// Packets and copies with appended bytes.
    pub extended: u64,
    /// Packets longer than the MTU.
    pub too_long: u64,
    /// Packets sent while the link was down.
    pub blackholed: u64,
}
