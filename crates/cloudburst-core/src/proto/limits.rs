//! Every limit of the protocol, once: what an endpoint remembers, and for how long.
//!
//! Limits that can be set are in [`Config`](crate::config::Config). Some are small with the feature
//! `small-limits`.

use core::time::Duration;

pub(super) use crate::config::{MAX_BLOCKS_IN_FLIGHT, MAX_PORTS};

/// Messages to one peer, from the oldest unfinished on. Bounds what the receiver must remember.
pub(super) const MESSAGE_WINDOW: usize = if cfg!(feature = "small-limits") { 16 } else { 65_536 };
/// Paths of one message whose arrivals a receiver counts; arrivals on others are counted nowhere.
pub(super) const MAX_COUNTED_PATHS: usize = 64;
/// Reverse paths that a receiver remembers of one peer.
pub(super) const MAX_ROUTES: usize = 256;

/// The receiver may have forgotten a session that idled for longer: its sender asks before it
/// uses the session again.
pub(super) const STALE_AFTER: Duration = Duration::from_secs(30);
/// The same for a session in which no symbol was answered yet, which receivers keep for a shorter
/// time ([`HALF_OPEN_FOR`]).
pub(super) const UNCONFIRMED_STALE_AFTER: Duration = Duration::from_secs(5);
/// How old a HELLO may be when its HELLO_ACK comes: the responder may have forgotten since what it said.
/// A handshake that takes longer begins anew.
pub(super) const HANDSHAKE_FOR: Duration = Duration::from_secs(5);
/// How long a handshake may be without a first symbol.
pub(super) const HALF_OPEN_FOR: Duration = Duration::from_secs(20);
/// For how long its session is said to be alive: whoever is told so, which takes at most
/// [`HANDSHAKE_FOR`], relies on it for [`UNCONFIRMED_STALE_AFTER`].
pub(super) const HALF_OPEN_ALIVE_FOR: Duration = Duration::from_secs(10);
const _: () = assert!(
    HALF_OPEN_ALIVE_FOR.as_secs() + HANDSHAKE_FOR.as_secs() + UNCONFIRMED_STALE_AFTER.as_secs()
        <= HALF_OPEN_FOR.as_secs()
);
/// How many handshakes may be without a first symbol. Strangers who replay handshakes push out
/// those of others only if they are faster than these two limits allow.
pub(super) const MAX_HALF_OPEN: usize = if cfg!(feature = "small-limits") { 8 } else { 4096 };
/// A receiver says that a session is alive until this long after its last authentic symbol.
pub(super) const ALIVE_FOR: Duration = Duration::from_secs(120);
/// A receiver forgets a session that idled for this long: whoever was told that it is alive relies on
/// it for [`STALE_AFTER`].
pub(super) const IDLE_AFTER: Duration = Duration::from_secs(155);
const _: () = assert!(
    ALIVE_FOR.as_secs() + HANDSHAKE_FOR.as_secs() + STALE_AFTER.as_secs() <= IDLE_AFTER.as_secs()
);

/// How long a session that was said to be alive gives way to no other: until its peer, which has
/// [`HANDSHAKE_FOR`] to hear of it, has used it or asks again.
pub(super) const KEPT_FOR: Duration =
    Duration::from_secs(HANDSHAKE_FOR.as_secs() + UNCONFIRMED_STALE_AFTER.as_secs());
/// Handshakes between two symbols of a session that keep it so: a stranger may repeat old ones.
pub(super) const MAX_KEEPING: usize = 4;

/// HELLO_ACKs that wait to be sent, shared out among their initiators.
pub(super) const MAX_ACKS: usize = 256;
/// Answers that wait to be sent, shared out among their sessions; older ones give way, for the next
/// symbol asks again.
pub(super) const MAX_ANSWERS: usize = 4096;

/// What remembering the ending of one message takes, about.
pub(super) const ENDING_BYTES: usize = 64;
/// Of the memory for messages being received, a peer's and everybody's, the whole messages of one role
/// that wait for the application may take one part of so many, and what the last of them is longer:
/// so responses get through even if nobody takes plain messages nor requests.
pub(super) const BACKLOG_SHARE: usize = 4;
/// Messages that may begin while an older one waits for the room that they take.
pub(super) const MAX_OVERTAKEN: u64 = 16;
/// How long room is kept for a message that its sender does not ask after: it asks each 100 ms.
pub(super) const WAITER_PATIENCE: Duration = Duration::from_secs(1);
/// Endings of a peer that are always remembered, whatever others do.
pub(super) const MODEST_ENDINGS: usize = 256;
/// Messages whose arrivals are remembered after their delivery, in one session.
pub(super) const KEPT_ARRIVALS: usize = 32;
/// How often blocks of a message may decode to something else than their digests say.
pub(super) const MAX_CORRUPT: u8 = 2;

/// A receiver that forgets a message more often than this is not believed: the deadline will do.
pub(super) const MAX_RESTARTS: u32 = 8;
/// Packets to one peer whose sending times are remembered: at first, and at most, where more are
/// under way at a time.
pub(super) const SENT_TIMES: usize = 256;
pub(super) const MAX_SENT_TIMES: usize = 16_384;
/// Transmit opportunities of one message that may wait for account. The oldest give way, and are
/// never missed.
pub(super) const MAX_TURNS: usize = 128;
