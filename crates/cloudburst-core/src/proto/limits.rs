//! The limits of the protocol that several modules depend on, and those of what an endpoint
//! remembers. A limit of one algorithm alone is in its file. `docs/spec.md`, section 9, lists those
//! that a peer can observe.
//!
//! Limits that follow from the configuration are in [`Limits`](crate::config::Limits). The feature
//! `small-limits` lowers some of the limits here.

use core::time::Duration;

pub(super) use crate::config::{MAX_BLOCKS_IN_FLIGHT, MAX_PORTS};

/// Messages to one peer, counted from the oldest unfinished one. Bounds the state that the receiver
/// must remember.
// No test has 65,536 messages under way: random worlds with small limits reach this one.
pub(super) const MESSAGE_WINDOW: usize = if cfg!(feature = "small-limits") { 16 } else { 65_536 };
/// Paths of one message whose arrivals a receiver counts; arrivals on others are not counted.
pub(super) const MAX_COUNTED_PATHS: usize = 64;
/// Reverse paths to one peer that a receiver remembers.
pub(super) const MAX_ROUTES: usize = 256;

/// Idle time after which the receiver may have forgotten a session. Its sender checks the session
/// before it uses it again.
pub(super) const STALE_AFTER: Duration = Duration::from_secs(30);
/// The same for a session in which nothing has been answered yet. Receivers keep such a session
/// for a shorter time ([`HALF_OPEN_FOR`]).
pub(super) const UNCONFIRMED_STALE_AFTER: Duration = Duration::from_secs(5);
/// Maximum age of a handshake when it is answered. After that, the responder may have forgotten its
/// reply, so the handshake starts over.
pub(super) const HANDSHAKE_FOR: Duration = Duration::from_secs(5);
/// How long a handshake is remembered without a first packet of its session.
pub(super) const HALF_OPEN_FOR: Duration = Duration::from_secs(20);
const _: () =
    assert!(HANDSHAKE_FOR.as_secs() + UNCONFIRMED_STALE_AFTER.as_secs() <= HALF_OPEN_FOR.as_secs());
/// How many handshakes are remembered, confirmed ones included. Only holders of a key can push out
/// those of others.
pub(super) const MAX_HALF_OPEN: usize = if cfg!(feature = "small-limits") { 8 } else { 4096 };
/// Idle time after which a receiver forgets a session, and a sender a peer. A sender relies on the session
/// for [`STALE_AFTER`], and then checks within [`HANDSHAKE_FOR`] whether it is still held. With the session,
/// a receiver forgets how its messages ended, so messages survive outages that are shorter.
pub(super) const IDLE_AFTER: Duration = Duration::from_secs(600);
const _: () = assert!(STALE_AFTER.as_secs() + HANDSHAKE_FOR.as_secs() <= IDLE_AFTER.as_secs());
/// The same for a peer that has left: it may have been alive for as long as it relied on the session.
pub(super) const LEFT_FOR: Duration = Duration::from_secs(40);
const _: () = assert!(STALE_AFTER.as_secs() + HANDSHAKE_FOR.as_secs() < LEFT_FOR.as_secs());

/// Pending answers to handshakes, divided among the addresses that the handshakes came from.
pub(super) const MAX_REPLIES: usize = 256;
/// Pending answers, divided among their sessions. The oldest are dropped first, because the next
/// symbol requests another.
pub(super) const MAX_ANSWERS: usize = 4096;

/// Approximate bytes that remembering the ending of one message takes.
pub(super) const ENDING_BYTES: usize = 64;
/// Divisor of the memory for messages being received, both a peer's and the shared memory. Complete
/// messages of one role that wait for the application may take one such part, which the last of
/// them may exceed. Responses therefore get through even if the application takes no plain messages
/// or requests.
// Without a share, requests that nobody serves would hold the memory that plain messages need.
// Fixed shares from the start would cost applications that use one role most of the memory.
pub(super) const BACKLOG_SHARE: usize = 4;
/// Messages that may begin ahead of an older one that waits for their capacity.
// Memory freed bit by bit goes to short messages: of 5,000 after one of 10 KB, all passed it. To
// reserve it from the start would help a sender that may have given up.
pub(super) const MAX_OVERTAKEN: u64 = 16;
/// How long capacity is kept for a message after its sender's last request. Senders repeat the
/// request at least once every [`MAX_PAUSE`].
pub(super) const WAITER_TIMEOUT: Duration = Duration::from_secs(1);
/// Endings of a peer that are always remembered, whatever other peers do.
pub(super) const MODEST_ENDINGS: usize = 256;
/// Messages of one session whose arrivals are remembered after delivery. The receiver remembers the
/// most recent ones, the sender the most recent ones with missing packets.
pub(super) const KEPT_ARRIVALS: usize = 32;
/// Digest mismatches of decoded blocks after which a message is rejected.
pub(super) const MAX_CORRUPT: u8 = 2;

/// The longest backoff of a sender that gets no answer: the longest RTO, and the longest time
/// between retries to a peer that is unresponsive.
pub(crate) const MAX_BACKOFF: Duration = Duration::from_millis(100);
/// The longest pause of a message for which its receiver has no capacity. Two must fit into
/// [`WAITER_TIMEOUT`], since one probe may be lost.
pub(super) const MAX_PAUSE: Duration = Duration::from_millis(400);
const _: () = assert!(2 * MAX_PAUSE.as_millis() <= WAITER_TIMEOUT.as_millis());
/// The longest pause of a message that its receiver holds, which says itself when it is delivered. Two must
/// fit into `decode_timeout`.
pub(super) const MAX_HELD_PAUSE: Duration = Duration::from_secs(5);
/// How many times a receiver may forget a message. After that, the sender stops believing it and
/// waits for the deadline.
pub(super) const MAX_RESTARTS: u32 = 8;
/// Packets to one peer whose send times are remembered, initially.
pub(super) const SENT_TIMES: usize = 256;
/// The maximum number of such packets, reached while as many are under way.
pub(super) const MAX_SENT_TIMES: usize = 16_384;
/// Packet trains of one message that may await accounting. The oldest are dropped, and their
/// packets never count as missing.
pub(super) const MAX_SENT_TRAINS: usize = 128;

/// The smallest MTU that a path is taken to have: that of IPv6 (RFC 8200, section 5).
pub(super) const MIN_MTU: usize = 1_280;
/// Bytes of an ANSWER that every path carries, beside the longest headers.
pub(super) const MAX_ANSWER: usize = MIN_MTU - 48 - 20;
