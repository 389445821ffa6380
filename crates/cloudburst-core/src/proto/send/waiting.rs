//! The waiting line: messages and connects for which there is no capacity yet.
//!
//! They start when there is, whether or not their callers are polled meanwhile: nobody is woken to take
//! capacity, so nobody who sleeps keeps it from others.

use super::peer::Peer;
use super::{NewMessage, Sender, SenderEvent, Timer};
use crate::error::{Outcome, Rejection, StartError};
use crate::id::{ConnectId, MessageId};
use crate::proto::calls::with_timeout;
use crate::proto::indexed::Indexed;
use crate::proto::limits::MESSAGE_WINDOW;
use crate::proto::share::share;
use crate::proto::steps::step;
use crate::time::Instant;
use crate::wire::Role;
use crate::wire::symbol::MAX_MESSAGE_ID;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How many flows that lack bytes are looked at in order of their turns. If none of their first
/// messages fits, the shortest of all does, if any.
// Otherwise a message that fits waits behind one that does not: 5.9 s instead of 0.3. The limit bounds
// the cost of a pass over the line.
// A long message can thus be passed until its deadline. Room kept for it would let a peer that does not
// answer, and so keeps bytes, hold up everybody else.
const IN_TURN: usize = 8;

/// What waits in line.
#[derive(Debug)]
pub(super) enum Waiting {
    Message(NewMessage),
    Connect { peer: SocketAddr, deadline: Instant },
}

/// The name by which its caller knows what waits in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Ticket {
    /// Beyond all ids on the wire, and known to the caller until the message ends. Its id on the wire
    /// is drawn when it starts, because those to one peer must rise in the order of starts.
    Message(MessageId),
    Connect(ConnectId),
}

/// What waits for one peer, in order of arrival. Flows take turns.
// Requests wait for calls in flight to end. In one flow with responses, the calls of two endpoints to
// each other could wait for responses behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Flow {
    pub(super) peer: SocketAddr,
    pub(super) kind: FlowKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FlowKind {
    /// Messages other than requests.
    Messages,
    Requests,
    Connects,
}

/// What a message or connect lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lack {
    /// As many messages and connects are under way as may be.
    Slot,
    /// As many calls are in flight as may be.
    Call,
    /// All peers that may be remembered are in use.
    Peer,
    /// As many messages to the peer as may be, counted from the oldest unfinished one, have started, or it
    /// has its share of what may be under way.
    Window,
    /// As many bytes are under way as may be.
    Bytes,
}

#[derive(Debug, Default)]
pub(super) struct Line {
    queues: HashMap<Flow, BTreeMap<Ticket, Waiting>>,
    flow_of: HashMap<Ticket, Flow>,
    /// The turns of flows, by what their first lacks, as far as is known: nothing, a call to end, a
    /// peer to become idle, a message to their peer to end, or bytes.
    ready: Indexed<Flow, u64>,
    for_call: Indexed<Flow, u64>,
    for_peer: Indexed<Flow, u64>,
    for_window: Indexed<Flow, u64>,
    for_bytes: Indexed<Flow, u64>,
    /// The lengths of the first messages of those that lack bytes.
    lengths: Indexed<Flow, usize>,
    /// Turns given so far.
    turns: u64,
    tickets: u64,
    requests: usize,
    /// The ids on the wire of messages under way that have waited, by their tickets.
    pub(super) started: HashMap<MessageId, MessageId>,
}

impl Waiting {
    pub(super) const fn flow(&self) -> Flow {
        match *self {
            Self::Message(NewMessage { peer, role, .. }) => Flow::of(peer, role),
            Self::Connect { peer, .. } => Flow { peer, kind: FlowKind::Connects },
        }
    }

    const fn len(&self) -> usize {
        match self {
            Self::Message(message) => message.bytes.len(),
            Self::Connect { .. } => 0,
        }
    }

    pub(super) const fn deadline(&self) -> Instant {
        match *self {
            Self::Message(NewMessage { deadline, .. }) | Self::Connect { deadline, .. } => deadline,
        }
    }
}

impl Flow {
    pub(super) const fn of(peer: SocketAddr, role: Role) -> Self {
        let is_request = matches!(role, Role::Request);
        Self { peer, kind: if is_request { FlowKind::Requests } else { FlowKind::Messages } }
    }
}

impl Ticket {
    /// The timer that ends what waits with it.
    pub(super) const fn timer(self) -> Timer {
        match self {
            Self::Message(id) => Timer::Message(id),
            Self::Connect(id) => Timer::Connect(id),
        }
    }
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.flow_of.len()
    }

    pub(super) fn next_ticket(&mut self) -> MessageId {
        self.tickets += 1;
        MessageId(MAX_MESSAGE_ID + self.tickets)
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Waiting> {
        self.queues.get(self.flow_of.get(&ticket)?)?.get(&ticket)
    }

    /// All tickets, in order.
    pub(super) fn tickets(&self) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> = self.flow_of.keys().copied().collect();
        // So that the order does not change from run to run.
        tickets.sort_unstable();
        tickets
    }

    pub(super) fn first_of(&self, flow: Flow) -> Option<Ticket> {
        self.queues.get(&flow)?.first_key_value().map(|(&ticket, _)| ticket)
    }

    fn push(&mut self, ticket: Ticket, waiting: Waiting) {
        let flow = waiting.flow();
        self.requests += usize::from(flow.kind == FlowKind::Requests);
        self.flow_of.insert(ticket, flow);
        if !self.queues.contains_key(&flow) {
            self.turns += 1;
            self.ready.set(flow, Some(self.turns));
        }
        self.queues.entry(flow).or_default().insert(ticket, waiting);
    }

    fn remove(&mut self, ticket: Ticket) -> Option<Waiting> {
        let flow = self.flow_of.remove(&ticket)?;
        self.requests -= usize::from(flow.kind == FlowKind::Requests);
        let queue = self.queues.get_mut(&flow)?;
        let is_first = queue.first_key_value().is_some_and(|(first, _)| *first == ticket);
        let waiting = queue.remove(&ticket);
        if queue.is_empty() {
            self.queues.remove(&flow);
            self.leave(flow);
        } else if is_first {
            self.set(flow, None);
        }
        waiting
    }

    /// Takes a flow out of the order. Returns its turn.
    fn leave(&mut self, flow: Flow) -> Option<u64> {
        self.lengths.remove(flow);
        let Self { ready, for_call, for_peer, for_window, for_bytes, .. } = self;
        let orders = [ready, for_call, for_peer, for_window, for_bytes];
        orders.into_iter().find_map(|flows| flows.remove(flow))
    }

    /// Records what keeps a flow from its turn.
    fn set(&mut self, flow: Flow, lack: Option<Lack>) {
        let turn = self.leave(flow);
        let flows = match lack {
            None | Some(Lack::Slot) => &mut self.ready,
            Some(Lack::Call) => &mut self.for_call,
            Some(Lack::Peer) => &mut self.for_peer,
            Some(Lack::Window) => &mut self.for_window,
            Some(Lack::Bytes) => {
                let first = self.queues.get(&flow).and_then(BTreeMap::first_key_value);
                self.lengths.set(flow, first.map(|(_, waiting)| waiting.len()));
                &mut self.for_bytes
            }
        };
        flows.set(flow, turn);
    }

    /// Lets the flows to a peer, of which a message has ended or which has a path again, have their
    /// turns.
    pub(super) fn reopen(&mut self, peer: SocketAddr) {
        for kind in [FlowKind::Messages, FlowKind::Requests, FlowKind::Connects] {
            let flow = Flow { peer, kind };
            if self.for_window.contains(flow) {
                self.set(flow, None);
            }
        }
    }

    /// Lets the flows that wait for a message to their peer to end, or for a path, have their turns.
    pub(super) fn reopen_all(&mut self) {
        while let Some(flow) = self.for_window.first() {
            self.set(flow, None);
        }
    }

    /// The roles of the messages that wait.
    pub(super) fn roles(&self) -> impl Iterator<Item = Role> {
        self.queues.values().flat_map(BTreeMap::values).filter_map(|waiting| match waiting {
            Waiting::Message(message) => Some(message.role),
            Waiting::Connect { .. } => None,
        })
    }

    /// Asserts that the parts agree with each other.
    pub(super) fn check_invariants(&self) {
        let Self { ready, for_call, for_peer, for_window, for_bytes, .. } = self;
        let orders = [ready, for_call, for_peer, for_window, for_bytes];
        assert_eq!(self.lengths.len(), for_bytes.len(), "flows that lack bytes");
        let ordered: usize = orders.into_iter().map(Indexed::len).sum();
        assert_eq!(ordered, self.queues.len(), "flows in order");
        for (flow, queue) in &self.queues {
            assert!(!queue.is_empty(), "{flow:?}: nothing waits in it");
            let has_turn = orders.into_iter().any(|flows| flows.contains(*flow));
            assert!(has_turn, "{flow:?}: it never has a turn");
            let first = queue.first_key_value().map(|(_, waiting)| waiting.len());
            let length = self.lengths.rank(*flow);
            assert!(
                length.is_none_or(|len| Some(len) == first),
                "{flow:?}: the length of its first"
            );
            for (ticket, waiting) in queue {
                assert_eq!(waiting.flow(), *flow, "{ticket:?}: it waits in another flow");
                assert_eq!(self.flow_of.get(ticket), Some(flow), "{ticket:?}: it is not found");
            }
        }
        let waiting: usize = self.queues.values().map(BTreeMap::len).sum();
        assert_eq!(waiting, self.len(), "what waits, and tickets");
        let requests = self.flow_of.values().filter(|flow| flow.kind == FlowKind::Requests);
        assert_eq!(self.requests, requests.count(), "requests that wait");
    }
}

impl Sender {
    /// Starts what waits in line and for which there is capacity, while `calls` have not ended: those
    /// whose requests wait are among them.
    pub(in crate::proto) fn start_waiting(&mut self, now: Instant, calls: usize) {
        while self.line.len() > 0 {
            step();
            let Some(flow) = self.next_flow(calls) else { return };
            let Some(ticket) = self.line.first_of(flow) else { return };
            let Some(waiting) = self.line.get(ticket) else { return };
            let lack = match self.lack(flow, waiting.len(), calls) {
                // Its timer is due.
                None if waiting.deadline() <= now => Some(Lack::Window),
                None => self.start_first(now, flow, ticket).err(),
                lack => lack,
            };
            match lack {
                None => {}
                Some(Lack::Slot) => return,
                Some(_) => self.line.set(flow, lack),
            }
        }
    }

    /// The flow that has the next turn, as far as is known.
    fn next_flow(&self, calls: usize) -> Option<Flow> {
        let Line { ready, for_call, for_peer, for_bytes, lengths, .. } = &self.line;
        let has_call = self.in_flight(calls) < self.config.limits.send_messages;
        let has_peer = self.has_place_for_peer();
        let fits = |flow: &Flow| lengths.rank(*flow).is_some_and(|len| self.fits(len));
        let in_turn = for_bytes.iter().take(IN_TURN).find(|(flow, _)| fits(flow));
        let shortest = || {
            let flow = lengths.first().filter(fits)?;
            Some((flow, for_bytes.rank(flow)?))
        };
        let candidates = [
            ready.iter().next(),
            for_call.iter().next().filter(|_| has_call),
            for_peer.iter().next().filter(|_| has_peer),
            in_turn.or_else(shortest),
        ];
        let next = candidates.into_iter().flatten().min_by_key(|&(_, turn)| turn);
        next.map(|(flow, _)| flow)
    }

    /// Starts the first of a flow, whose turn ends.
    fn start_first(&mut self, now: Instant, flow: Flow, ticket: Ticket) -> Result<(), Lack> {
        // If the path map no longer has a path to the peer, it waits until its deadline.
        self.enter_peer(now, flow.peer, None).map_err(|_| Lack::Window)?;
        match ticket {
            Ticket::Connect(id) => {
                if let Some(waiting) = self.dequeue(ticket) {
                    self.start_connect(now, id, flow.peer, waiting.deadline());
                }
            }
            Ticket::Message(name) => {
                let id = self.take_id().map_err(|_| Lack::Window)?;
                if let Some(Waiting::Message(mut message)) = self.dequeue(ticket) {
                    if message.role == Role::Request {
                        let left = message.deadline.saturating_since(now);
                        message.bytes = with_timeout(message.bytes, left);
                    }
                    self.line.started.insert(name, id);
                    self.start(now, id, message, Some(name));
                }
            }
        }
        if self.line.leave(flow).is_some() {
            self.line.turns += 1;
            self.line.ready.set(flow, Some(self.line.turns));
        }
        Ok(())
    }

    /// Whether what arrives now starts at once; otherwise, it waits in line.
    ///
    /// # Errors
    ///
    /// If it must not `wait` and there is no capacity, or the line is full, or there is no path.
    pub(super) fn starts_at_once(
        &mut self,
        now: Instant,
        flow: Flow,
        len: usize,
        calls: usize,
        wait: bool,
    ) -> Result<bool, StartError> {
        let is_behind = self.line.queues.contains_key(&flow);
        let lack = self.lack(flow, len, calls).or(is_behind.then_some(Lack::Slot));
        match lack {
            None => self.enter_peer(now, flow.peer, None).map(|()| true),
            Some(_) if wait && self.may_wait(flow.peer) => {
                match self.enter_peer(now, flow.peer, None) {
                    Ok(()) | Err(StartError::Full { .. }) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            Some(Lack::Call) => {
                Err(StartError::TooManyCalls { calls: self.config.limits.send_messages })
            }
            Some(_) => Err(self.full()),
        }
    }

    pub(super) fn enqueue(&mut self, ticket: Ticket, waiting: Waiting) {
        self.timers.set(ticket.timer(), Some(waiting.deadline()));
        self.line.push(ticket, waiting);
    }

    pub(super) fn dequeue(&mut self, ticket: Ticket) -> Option<Waiting> {
        let waiting = self.line.remove(ticket)?;
        self.timers.remove(ticket.timer());
        Some(waiting)
    }

    /// Ends what waits in line, of which nothing was sent. Does nothing if it does not wait.
    pub(super) fn end_waiting(&mut self, ticket: Ticket, rejection: Rejection) {
        match (ticket, self.dequeue(ticket)) {
            (Ticket::Message(id), Some(Waiting::Message(message))) => {
                self.reject(id, message.role, rejection);
            }
            (Ticket::Connect(id), Some(_)) => {
                self.events.push_back(SenderEvent::Connected(id, Err(rejection)));
            }
            _ => {}
        }
    }

    /// Ends a message that has not started.
    pub(super) fn reject(&mut self, id: MessageId, role: Role, rejection: Rejection) {
        self.counters.rejected += 1;
        self.events.push_back(SenderEvent::Ended(id, role, Outcome::Rejected(rejection)));
    }

    /// Calls whose requests have started and that have not ended, of `calls` that have not ended.
    fn in_flight(&self, calls: usize) -> usize {
        calls.saturating_sub(self.line.requests)
    }

    /// Whether one more may wait in line for this peer. One that does not answer must not fill it.
    fn may_wait(&self, peer: SocketAddr) -> bool {
        let kinds = [FlowKind::Messages, FlowKind::Requests, FlowKind::Connects];
        let queues = kinds.map(|kind| self.line.queues.get(&Flow { peer, kind }));
        let own = queues.into_iter().flatten().map(BTreeMap::len).sum::<usize>();
        own < share(self.config.limits.waiting, self.line.len() - own)
    }

    /// Whether a peer has its share of what may be under way, if `len` more bytes were.
    fn has_share(&self, peer: &Peer, len: usize) -> bool {
        let limits = &self.config.limits;
        let own = peer.started();
        let others = self.messages.len() + self.connects.len() - own;
        own > 0
            && (own >= share(limits.send_messages, others)
                || peer.bytes + len > share(limits.send_bytes, self.bytes - peer.bytes))
    }

    /// Whether `len` more bytes may be under way.
    fn fits(&self, len: usize) -> bool {
        self.messages.is_empty() || self.bytes + len <= self.config.limits.send_bytes
    }

    fn has_place_for_peer(&self) -> bool {
        self.peers.len() < self.config.limits.max_peers || self.idle.first().is_some()
    }

    /// What a message of `len` bytes, or a connect, lacks to start.
    pub(super) fn lack(&self, flow: Flow, len: usize, calls: usize) -> Option<Lack> {
        let limits = &self.config.limits;
        let peer = self.peers.get(&flow.peer);
        let is_request = flow.kind == FlowKind::Requests;
        let is_message = flow.kind != FlowKind::Connects;
        if is_request && self.in_flight(calls) >= limits.send_messages {
            Some(Lack::Call)
        } else if self.messages.len() + self.connects.len() >= limits.send_messages {
            Some(Lack::Slot)
        } else if peer.is_none() && !self.has_place_for_peer() {
            Some(Lack::Peer)
        } else if is_message
            && peer.is_some_and(|peer| peer.span() >= MESSAGE_WINDOW || self.has_share(peer, len))
        {
            Some(Lack::Window)
        } else if is_message && !self.fits(len) {
            Some(Lack::Bytes)
        } else {
            None
        }
    }
}
