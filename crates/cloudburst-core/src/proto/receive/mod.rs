//! Decodes messages, delivers each once, and sends STOP (section III-B).

mod admission;
mod answers;
mod counters;
mod deadlines;
mod delivery;
mod elsewhere;
mod handshake;
mod inbox;
mod incoming;
mod invariants;
mod peers;
mod pool;
mod probes;
mod progress;
mod pulling;
mod pulls;
mod quota;
mod recycler;
mod round_robin;
mod routes;
mod session;
mod symbols;
#[cfg(test)]
mod tests;
mod trimmed;
mod turns;
mod window;

use self::answers::Outbound;
pub use self::counters::ReceiverCounters;
use self::handshake::{HandshakeReply, Unconfirmed};
use self::inbox::Inbox;
use self::peers::Host;
use self::pool::Pool;
use self::pulls::PullQueue;
use self::quota::{HostKey, Usage};
use self::recycler::Recycler;
use self::round_robin::RoundRobin;
use self::session::Session;
use super::indexed::Indexed;
use super::limits::{MAX_ANSWERS, MAX_REPLIES};
use super::session::{HalfOpen, Identity};
use super::stats::ReceivedFrom;
use crate::config::Parameters;
use crate::id::{Incarnation, MessageId, SessionId};
use crate::latency::LatencyHistogram;
use crate::path::{PathResolver, Via};
use crate::proto::observe::Observing;
use crate::rate::Pacer;
use crate::rng::Ratchet;
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A message, delivered once.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The sender's address, at which it accepts messages. A sender behind an address translator
    /// has none of its own; this is then an alias ([`is_alias`](crate::naming::is_alias)), which is
    /// valid while its session lasts.
    pub peer: SocketAddr,
    /// The incarnation of the sender: another may have its address by now.
    pub(in crate::proto) incarnation: Incarnation,
    /// The id that the sender gave the message.
    pub id: MessageId,
    /// Whether it is a request, a response or neither.
    pub role: Role,
    /// When the symbol that completed it arrived.
    pub arrived_at: Instant,
    /// The bytes, as they were sent.
    pub bytes: Bytes,
}

/// Shows the length of the payload, not the payload.
impl core::fmt::Debug for Message {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { peer, incarnation: _, id, role, arrived_at, bytes } = self;
        let mut shown = f.debug_struct("Message");
        shown.field("peer", peer).field("id", id).field("role", role);
        shown.field("arrived_at", arrived_at).field("len", &bytes.len()).finish()
    }
}

impl From<Message> for Bytes {
    fn from(message: Message) -> Self {
        message.bytes
    }
}

/// An event for the driver of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReceiverEvent {
    /// Another message of this role is in the application's queue: see [`Receiver::recv`].
    Readable(Role),
    /// A response has arrived, for the call that waits for it.
    Response(Message),
    /// The caller of a request has withdrawn it.
    Withdrawal(Message),
}

/// The receiving half of an endpoint.
pub(crate) struct Receiver {
    config: Parameters,
    identity: Identity,
    sessions: HashMap<SessionId, Session>,
    /// Handshakes, half-open or recently confirmed.
    half_open: HalfOpen<Unconfirmed>,
    opened: u64,
    /// Secrets of the keys in ACCEPTs.
    ephemeral: Ratchet,
    /// By role, so that an application that takes no requests still gets its messages. Those of
    /// responses and withdrawals stay empty.
    inboxes: [Inbox; Role::COUNT],
    hosts: HashMap<HostKey, Host>,
    /// The state held for all sessions.
    usage: Usage,
    /// Hosts with a message that waits for shared capacity, in turn.
    admission_queue: Indexed<HostKey, u64>,
    /// How many messages have begun.
    begun: u64,
    recycler: Recycler,
    pulls: PullQueue,
    /// The number of the last answer to a handshake, which selects its return path.
    return_path: u8,
    /// Pending answers to handshakes, by the address that the handshakes came from.
    replies: RoundRobin<IpAddr, (Via, HandshakeReply)>,
    /// Whether the next transmit opportunity is for `replies`.
    replies_are_next: bool,
    /// The paths that answers may take if the path of their cause seems to be dead in reverse.
    pub(in crate::proto) resolver: Arc<dyn PathResolver>,
    // In one queue for all, thousands of answers to one peer displaced those to others.
    answers: RoundRobin<SessionId, Outbound>,
    /// Whether a batch of symbols has left since answers began to wait.
    overdue: bool,
    /// Keeps answers from exceeding the rate of the link.
    pacer: Pacer,
    /// Events for the driver.
    pub(in crate::proto) events: VecDeque<ReceiverEvent>,
    /// Deadlines of messages.
    timers: Indexed<(SessionId, MessageId), Instant>,
    /// Sessions of which no message is being received, by when they were last heard from.
    idle: Indexed<SessionId, Instant>,
    last_symbol: Option<Instant>,
    closing: bool,
    /// Whether the sessions have ended. Answers to handshakes would say that they are alive.
    ended: bool,
    pub(in crate::proto) counters: ReceiverCounters,
    /// The claimed source of the last handshake under none of this endpoint's keys.
    pub(in crate::proto) refused_from: Option<SocketAddr>,
    /// How long delivered messages took, from the first symbol to the one that completed them.
    // One for all peers: a histogram has 27 KB, and there may be 4,096 peers.
    pub(in crate::proto) latencies: LatencyHistogram,
    pub(in crate::proto) observer: Observing,
}

impl Receiver {
    pub(super) fn new(
        config: Parameters,
        identity: Identity,
        ephemeral: Ratchet,
        resolver: Arc<dyn PathResolver>,
    ) -> Self {
        let pacer = Pacer::new(config.capacity, config.rate);
        Self {
            resolver,
            recycler: Recycler { pool: Pool::new(&config), messages: Vec::new() },
            pulls: PullQueue::new(&config),
            config,
            identity,
            sessions: HashMap::new(),
            half_open: HalfOpen::default(),
            opened: 0,
            ephemeral,
            inboxes: Default::default(),
            hosts: HashMap::new(),
            usage: Usage::default(),
            admission_queue: Indexed::default(),
            begun: 0,
            return_path: 0,
            replies: RoundRobin::new(MAX_REPLIES),
            replies_are_next: true,
            answers: RoundRobin::new(MAX_ANSWERS),
            overdue: false,
            pacer,
            events: VecDeque::new(),
            timers: Indexed::default(),
            idle: Indexed::default(),
            last_symbol: None,
            closing: false,
            ended: false,
            counters: ReceiverCounters::default(),
            refused_from: None,
            latencies: LatencyHistogram::default(),
            observer: None,
        }
    }

    /// Stops accepting requests, and plain messages that have not begun to arrive.
    pub(crate) fn close(&mut self) {
        self.closing = true;
        self.refuse(|role| role == Role::Request);
    }

    /// Stops accepting anything. Peers are told that messages not yet delivered will not be, and that
    /// their sessions have ended.
    pub(in crate::proto) fn stop(&mut self) {
        self.closing = true;
        self.refuse(|_| true);
        self.end_sessions();
        self.ended = true;
    }

    /// Whether there are messages of which symbols are missing.
    pub(crate) fn is_receiving(&self) -> bool {
        self.usage.memory > self.usage.backlog.iter().sum()
    }

    /// When the last symbol arrived that is not of a refused message.
    pub(crate) const fn last_symbol(&self) -> Option<Instant> {
        self.last_symbol
    }

    /// The traffic received in each session that is held, with its peer, in no particular order.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (SocketAddr, ReceivedFrom)> {
        self.sessions.values().map(|session| (session.peer, session.received()))
    }

    /// Bytes that messages being received may take at this moment.
    pub(crate) const fn memory(&self) -> usize {
        self.usage.memory
    }

    /// Whether there are events for the driver.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
}

impl core::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Receiver")
            .field("incarnation", &self.identity.incarnation)
            .field("sessions", &self.sessions.len())
            .field("half_open", &self.half_open.len())
            .field("memory", &self.usage.memory)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
