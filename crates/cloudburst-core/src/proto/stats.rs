//! Traffic between an endpoint and each of its peers.

use crate::time::Instant;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Traffic between this endpoint and one peer.
///
/// A peer is forgotten when nothing has been heard from it for ten minutes, 40 s after it has left,
/// and, if it is idle, when another needs its place (`Limits::max_peers`). If it returns, its counts start
/// from zero. The endpoint's own counters never decrease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStats {
    /// The address at which it accepts messages, or its alias.
    pub peer: SocketAddr,
    /// Messages to it.
    pub sent: SentTo,
    /// Messages from it.
    pub received: ReceivedFrom,
}

/// Messages to one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentTo {
    /// Messages that ended Delivered.
    pub delivered: u64,
    /// Messages that ended Rejected, for whatever reason.
    pub rejected: u64,
    /// Messages that ended Unknown, for whatever reason.
    pub unknown: u64,
    /// Messages that are waiting or under way.
    pub unfinished: usize,
    /// Bytes in the messages that were delivered.
    pub bytes_delivered: u64,
    /// Source symbols of the messages that were delivered: packets that a loss-free link needs.
    pub source_symbols: u64,
    /// SYMBOL packets, of all messages.
    pub symbols_sent: u64,
    /// Those that were sent on a timeout, because no answer had arrived.
    pub retries: u64,
    /// HELLO and OPEN packets of handshakes: two HELLOs (one with a single path) and an OPEN each; the rest
    /// are retries. Checks (docs/spec.md, 6.10) do not count here.
    pub handshakes_sent: u64,
    /// Authentic ANSWER packets that arrived.
    pub answers_received: u64,
    /// Smoothed round-trip time, over all paths (RFC 6298, section 2); `None` before the first
    /// answer.
    pub round_trip: Option<Duration>,
    /// Bytes of the longest IP packets of messages to it: the MTU of the path, as far as discovered.
    pub mtu: usize,
    /// When the session in use was opened; `None` if there is none.
    pub session_since: Option<Instant>,
    /// When the last authentic packet of the peer's receiving half arrived.
    pub last_heard: Option<Instant>,
}

/// Messages from one peer, in the sessions that are remembered: several if it has restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedFrom {
    /// Messages that were put into the application's queue.
    pub delivered: u64,
    /// Their bytes.
    pub bytes_delivered: u64,
    /// Authentic SYMBOL packets.
    pub symbols_received: u64,
    /// Those that arrived after their message had ended.
    pub late_symbols: u64,
    /// Symbols that have not arrived although later ones on the same path have: they are lost or
    /// late.
    pub missing_symbols: u64,
    /// ANSWER packets that were sent back.
    pub answers_sent: u64,
    /// When the newest of the sessions was opened; `None` if there is none.
    pub session_since: Option<Instant>,
}

/// Merges the statistics of both halves, ordered by address.
pub(crate) fn merge(
    sent: Vec<(SocketAddr, SentTo)>,
    received: Vec<(SocketAddr, ReceivedFrom)>,
) -> Vec<PeerStats> {
    let stats = |peer, sent| PeerStats { peer, sent, received: ReceivedFrom::default() };
    let entry = |(peer, sent)| (peer, stats(peer, sent));
    let mut peers: BTreeMap<_, _> = sent.into_iter().map(entry).collect();
    for (peer, received) in received {
        let known = peers.entry(peer).or_insert_with(|| stats(peer, SentTo::default()));
        let sum = &mut known.received;
        sum.delivered += received.delivered;
        sum.bytes_delivered += received.bytes_delivered;
        sum.symbols_received += received.symbols_received;
        sum.late_symbols += received.late_symbols;
        sum.missing_symbols += received.missing_symbols;
        sum.answers_sent += received.answers_sent;
        sum.session_since = sum.session_since.max(received.session_since);
    }
    peers.into_values().collect()
}
