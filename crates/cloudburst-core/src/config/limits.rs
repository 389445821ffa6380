//! The limits of memory.

/// The limits of what an endpoint holds at a time, which follow from
/// [`Config::memory`](super::Config::memory): see there.
///
/// One peer takes at most seven eighths of what the others leave of `send_messages`, `send_bytes` and
/// `waiting`, and one host, which is an IPv4 address or a /64 of IPv6, of `decode_bytes` and of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Messages and connects that may be in flight, to all peers, and calls that may be in flight.
    pub send_messages: usize,
    /// Bytes that may be in flight, to all peers. A single message always fits.
    pub send_bytes: usize,
    /// Messages, calls and connects that may wait in line until these limits let them start. The bytes
    /// of messages stay where they are meanwhile, and do not count.
    pub waiting: usize,
    /// Delivered messages that the application has not taken yet; requests have a queue of the same
    /// length of their own.
    pub receive_messages: usize,
    /// Bytes of these messages; the queue of requests may hold as many again. A single message always fits.
    pub receive_bytes: usize,
    /// Bytes of messages being received from all peers.
    pub decode_bytes: usize,
    /// Bytes of messages being received from one peer.
    pub decode_bytes_per_peer: usize,
    /// Peers that each half, sending and receiving, remembers.
    pub max_peers: usize,
}

impl Limits {
    pub(super) const fn of_memory(memory: usize) -> Self {
        const KIB: usize = 1 << 10;
        Self {
            send_messages: memory / (10 * KIB),
            send_bytes: memory / 5 * 2,
            waiting: memory / (5 * KIB),
            receive_messages: memory / (640 * KIB),
            receive_bytes: memory / 10,
            decode_bytes: memory / 5 * 2,
            decode_bytes_per_peer: memory / 10,
            max_peers: memory / (160 * KIB),
        }
    }
}
