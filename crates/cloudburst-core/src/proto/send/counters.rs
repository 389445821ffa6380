//! The counters of a sender.

counters! {
/// Counters of what a sender has done and seen since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderCounters {
    /// HELLO and OPEN packets, of handshakes and of checks.
    pub handshakes_sent: u64,
    /// Sessions that became active: by a handshake, or adopted from the receiving half.
    pub sessions_opened: u64,
    /// SYMBOL packets.
    pub symbols_sent: u64,
    /// The UDP payload of SYMBOL packets, in bytes.
    pub symbol_bytes_sent: u64,
    /// Probes, which `symbols_sent` and `symbol_bytes_sent` do not count.
    pub probes_sent: u64,
    /// Messages that were delivered, of all roles.
    pub delivered: u64,
    /// The bytes of these messages.
    pub bytes_delivered: u64,
    /// The source symbols of these messages: the packets that a network without loss needs.
    pub source_symbols: u64,
    /// Messages that were certainly not delivered, for whatever reason.
    pub rejected: u64,
    /// Messages that may or may not have been delivered, for whatever reason.
    pub unknown: u64,
    /// STOP reports, of a block or a message, late and false ones among them.
    pub stops_received: u64,
    /// NACK reports, late ones among them.
    pub nacks_received: u64,
    /// PULL reports, late ones among them.
    pub pulls_received: u64,
    /// BUSY reports, late ones among them.
    pub busy_received: u64,
    /// Reports by which more symbols of a message had arrived that was not complete by then.
    pub progress_reports: u64,
    /// STOP reports whose digest is not that of the block or the message.
    pub false_stops: u64,
    /// Reports on messages that are not under way, and answers to handshakes that nobody waits for.
    pub late_answers: u64,
    /// Packets for the sending half whose shape is wrong.
    pub malformed: u64,
    /// ANSWER packets of a session that is not in use.
    pub unknown_session: u64,
    /// Answers that are not authentic.
    pub forged: u64,
    /// ANSWER packets whose number was seen before or is older than the window.
    pub replayed: u64,
    /// How often packets to a peer became shorter, because the path proved to carry less.
    pub mtu_lowered: u64,
    /// Not a count: the present rate, in bits per second.
    pub rate: u64,
    /// How often the rate was lowered (`Rate::Adaptive`).
    pub rate_lowered: u64,
}
}
