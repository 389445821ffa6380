//! Decodes messages, delivers each once, and says STOP (section III-B).

mod answers;
#[cfg(test)]
mod costs;
mod deadlines;
mod handshake;
mod inbox;
mod incoming;
mod invariants;
mod peers;
mod room;
mod routes;
mod session;
mod steps;
mod symbols;
mod turns;
mod window;

use self::answers::Outbound;
use self::deadlines::MessageTimer;
use self::inbox::Inbox;
use self::incoming::Incoming;
use self::peers::{Held, Peer, PeerKey};
use self::room::RoomQueue;
use self::session::Session;
use self::turns::Turns;
use self::window::Ending;
use super::limits::{MAX_ACKS, MAX_ANSWERS};
use super::session::HalfOpen;
use super::session::Identity;
use super::stats::ReceivedFrom;
use super::timers::Timers;
use crate::config::Config;
use crate::id::{Incarnation, MessageId, SessionId};
use crate::latency::LatencyHistogram;
use crate::path::{Pacer, PathMap, Via};
use crate::time::Instant;
use crate::wire::answer::NONE_ACKNOWLEDGED;
use crate::wire::symbol::SYMBOL_OVERHEAD;
use crate::wire::{Answer, HelloAck, Kind, Role, Verdict};
use bytes::Bytes;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// A message, delivered once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where the sender takes messages itself: answers go there.
    pub peer: SocketAddr,
    /// The sender's name for the message.
    pub id: MessageId,
    /// Whether it is a request, a response or neither.
    pub role: Role,
    /// When the symbol came that made it whole.
    pub arrived_at: Instant,
    /// The bytes, as they were sent.
    pub bytes: Bytes,
}

/// What a receiver tells its driver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReceiverEvent {
    /// One message more of this role is in the application's queue: see [`Receiver::recv`].
    Readable(Role),
    /// A response has come, for the call that waits for it.
    Response(Message),
}

/// What a receiver has done and seen since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each name says it; docs/spec.md lists them")]
#[non_exhaustive]
pub struct ReceiverCounters {
    pub symbols_received: u64,
    pub useful_symbols: u64,
    pub late_symbols: u64,
    pub messages_delivered: u64,
    pub bytes_delivered: u64,
    pub sessions_confirmed: u64,
    pub stops_sent: u64,
    pub statuses_sent: u64,
    pub busies_sent: u64,
    pub rejects_sent: u64,
    pub forgottens_sent: u64,
    pub answers_dropped: u64,
    pub decoders_expired: u64,
    pub messages_dropped: u64,
    pub corrupt_blocks: u64,
    pub nonsense: u64,
    pub malformed: u64,
    pub unknown_session: u64,
    pub forged: u64,
    pub replayed: u64,
    pub refused_hellos: u64,
    pub peers_refused: u64,
}

/// The receiving half of an endpoint.
pub(crate) struct Receiver {
    config: Config,
    identity: Identity,
    sessions: HashMap<SessionId, Session>,
    /// Handshakes without a symbol so far.
    half_open: HalfOpen,
    opened: u64,
    /// By role, so that an application which takes no requests still gets its messages. Those of
    /// responses stay empty.
    inboxes: [Inbox; 3],
    peers: HashMap<PeerKey, Peer>,
    /// What all sessions remember.
    held: Held,
    room_queue: RoomQueue,
    /// HELLO_ACKs to be sent, by initiator.
    acks: Turns<Incarnation, (Via, HelloAck)>,
    /// The next transmission is theirs to have.
    acks_turn: bool,
    /// The paths that answers may leave by, where the way that their causes came seems not to do.
    path_map: Arc<dyn PathMap>,
    answers: Turns<SessionId, Outbound>,
    /// A batch of symbols has left since answers began to wait.
    overdue: bool,
    /// Answers do not exceed the rate of the link either.
    pacer: Pacer,
    events: VecDeque<ReceiverEvent>,
    /// Deadlines of messages.
    timers: Timers<MessageTimer>,
    /// Sessions of which no message is being received, by when they were heard last.
    quiet: Timers<SessionId>,
    last_symbol: Option<Instant>,
    closing: bool,
    counters: ReceiverCounters,
    latencies: LatencyHistogram,
}

impl ReceiverCounters {
    const fn on_answer(&mut self, kind: Kind) {
        let sent = match kind {
            Kind::Stop => &mut self.stops_sent,
            Kind::Status => &mut self.statuses_sent,
            Kind::Busy => &mut self.busies_sent,
            Kind::Forgotten => &mut self.forgottens_sent,
            _ => &mut self.rejects_sent,
        };
        *sent += 1;
    }
}

impl Receiver {
    pub(super) fn new(config: Config, identity: Identity, path_map: Arc<dyn PathMap>) -> Self {
        let pacer = Pacer::new(config.capacity, config.rate);
        Self {
            path_map,
            config,
            identity,
            sessions: HashMap::new(),
            half_open: HalfOpen::default(),
            opened: 0,
            inboxes: Default::default(),
            peers: HashMap::new(),
            held: Held::default(),
            room_queue: RoomQueue::default(),
            acks: Turns::new(MAX_ACKS),
            acks_turn: true,
            answers: Turns::new(MAX_ANSWERS),
            overdue: false,
            pacer,
            events: VecDeque::new(),
            timers: Timers::default(),
            quiet: Timers::default(),
            last_symbol: None,
            closing: false,
            counters: ReceiverCounters::default(),
            latencies: LatencyHistogram::new(),
        }
    }

    /// Counts a datagram of no kind that there is.
    pub(in crate::proto) fn handle_junk(&mut self) {
        self.counters.malformed += 1;
    }

    /// The application takes the next message of `role` from its queue, which has room for another
    /// then. Responses are no messages of their own: see [`ReceiverEvent::Response`].
    pub(crate) fn recv(&mut self, role: Role) -> Option<Message> {
        let message = self.inboxes[role as usize].pop()?;
        self.deliver_waiting(role);
        Some(message)
    }

    /// The messages of `role` in the application's queue, oldest first.
    pub(crate) fn queued(&self, role: Role) -> impl Iterator<Item = &Message> {
        self.inboxes[role as usize].messages()
    }

    /// How many messages of `role` are in the application's queue.
    pub(crate) fn readable(&self, role: Role) -> usize {
        self.inboxes[role as usize].len()
    }

    /// Delivers the messages that wait and for which there is room, oldest first.
    fn deliver_waiting(&mut self, role: Role) {
        while let Some((session, id)) = self.inboxes[role as usize].first_waiting() {
            let length = self.sessions.get(&session).and_then(|s| s.window.whole_length(id));
            if !length.is_some_and(|length| self.has_room(role, length)) {
                break;
            }
            // The symbol that completed the message was answered by BUSY long ago; this is for
            // the sender to know without asking.
            if let Some(verdict) = self.deliver(session, id) {
                let answer =
                    Answer { message: id, block: 0, acknowledged: NONE_ACKNOWLEDGED, verdict };
                self.answer(session, None, answer, SYMBOL_OVERHEAD);
            }
        }
    }

    /// Has answers leave by other paths from now on, where the ways of their causes seem not to do.
    pub(crate) fn set_path_map(&mut self, path_map: Arc<dyn PathMap>) {
        self.path_map = path_map;
    }

    /// Takes no messages that have not begun to arrive.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// When the last symbol came, of whatever message.
    pub(crate) const fn last_symbol(&self) -> Option<Instant> {
        self.last_symbol
    }

    /// What was done and seen so far.
    pub(crate) const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// How long delivered messages took, from the first symbol to the one that made them whole.
    pub(crate) const fn latencies(&self) -> &LatencyHistogram {
        &self.latencies
    }

    /// What came in each session that is held, with its peer, in no order.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (SocketAddr, ReceivedFrom)> {
        self.sessions.values().map(|session| (session.peer, session.tally))
    }

    /// Bytes that messages being received may take at this moment.
    pub(crate) const fn memory(&self) -> usize {
        self.held.memory
    }

    /// The next thing that the driver should know.
    pub(crate) fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    /// Whether there is something that the driver should know.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Somebody waits for a response, or nobody does: either way no queue holds it.
    fn has_room(&self, role: Role, length: usize) -> bool {
        let Config { receive_messages, receive_bytes, .. } = self.config;
        role == Role::Response
            || self.inboxes[role as usize].has_room(length, receive_messages, receive_bytes)
    }

    /// Whether no message of `role` waits that came before.
    fn is_next(&self, role: Role) -> bool {
        self.inboxes[role as usize].first_waiting().is_none()
    }

    /// Puts a message that is whole into the application's queue; returns what to say of it. From
    /// then on the claim of its STOP is true, whenever that leaves.
    fn deliver(&mut self, name: SessionId, id: MessageId) -> Option<Verdict> {
        let session = self.sessions.get_mut(&name)?;
        let digest = session.window.held_message(id)?.digest(id, &session.digest);
        let peer = session.peer;
        let incoming = self.end(name, id, Ending::Delivered(digest))?;
        let arrivals = incoming.arrivals.clone();
        self.latencies.record(incoming.took());
        if let Some(session) = self.sessions.get_mut(&name) {
            session.keep_arrivals(id, arrivals.clone());
            session.tally.delivered += 1;
            session.tally.bytes_delivered += incoming.length() as u64;
        }
        let (role, arrived_at) = (incoming.role, incoming.last_progress);
        let bytes = incoming.into_bytes();
        self.counters.messages_delivered += 1;
        self.counters.bytes_delivered += bytes.len() as u64;
        tracing::debug!(%peer, id = id.0, bytes = bytes.len(), "message received");
        let message = Message { peer, id, role, arrived_at, bytes };
        self.events.push_back(if role == Role::Response {
            ReceiverEvent::Response(message)
        } else {
            self.inboxes[role as usize].push(message);
            ReceiverEvent::Readable(role)
        });
        Some(Verdict::Delivered { digest, arrivals })
    }

    fn end(&mut self, name: SessionId, id: MessageId, ending: Ending) -> Option<Incoming> {
        let mut incoming = self.update(name, |session| session.window.end(id, ending))??;
        self.detach(name, id, &mut incoming);
        Some(incoming)
    }

    /// A message that is whole waits until the application has taken others.
    fn wait_for_room(&mut self, role: Role, name: SessionId, id: MessageId) {
        let session = self.sessions.get_mut(&name);
        if let Some(whole) = session.and_then(|session| session.window.whole(id)) {
            whole.place = Some(self.inboxes[role as usize].wait(name, id));
        }
    }

    /// A message is held no more: nor are its deadline, and its place among those that wait.
    fn detach(&mut self, name: SessionId, id: MessageId, incoming: &mut Incoming) {
        self.timers.set(&mut incoming.timer, None, MessageTimer(name, id));
        if let Some(place) = incoming.place.take() {
            self.inboxes[incoming.role as usize].remove(place);
        }
    }
}

impl core::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Receiver")
            .field("incarnation", &self.identity.incarnation)
            .field("sessions", &self.sessions.len())
            .field("half_open", &self.half_open.len())
            .field("memory", &self.held.memory)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
