//! Bursts messages until the receiver says STOP (Algorithm 1, section III-B).

mod answers;
mod checks;
mod closed_ports;
mod connects;
#[cfg(test)]
mod costs;
mod counters;
mod endings;
mod handshake;
mod hellos;
mod invariants;
mod liveness;
mod moving;
mod options;
mod path_mtu;
mod peer;
mod peers;
mod recovery;
mod recycler;
mod retries;
mod rtt;
mod schedule;
mod sent_times;
mod source;
mod transfer;
mod transmit;
mod waiting;
mod watch;

use self::checks::Checks;
pub use self::counters::SenderCounters;
use self::hellos::CheckId;
use self::hellos::Hellos;
pub use self::options::SendOptions;
use self::peer::Peer;
use self::peers::{longest_headers, slots_and_paths, with_port};
use self::recovery::AnyPolicy;
use self::recycler::Recycler;
use self::schedule::Schedule;
use self::source::Source;
use self::transfer::Transfer;
use self::transmit::{MAX_PARTS, ProbeDue};
pub(super) use self::transmit::{headers, headers_to};
use self::waiting::{Flow, Line, Ticket, Waiting};
use super::indexed::Indexed;
use super::session::{Finding, Identity};
use super::stats::SentTo;
use super::steps::step;
use crate::config::Parameters;
use crate::error::{Outcome, Rejection, StartError};
use crate::id::{ConnectId, Incarnation, MessageId, SessionId};
use crate::latency::LatencyHistogram;
use crate::path::{OrderError, PathResolver, PathStats};
use crate::proto::observe::{Observation, Observing, emit};
use crate::rate::{HEADROOM, LIMITED_DEPTH, Pacer, RateLimit};
use crate::rng::{Ratchet, SplitMix64};
use crate::time::Instant;
use crate::wire::Role;
use crate::wire::symbol::MAX_MESSAGE_ID;
use bytes::Bytes;
use core::time::Duration;
use foldhash::{HashMap, HashMapExt};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Repeated HELLOs, and retries to unresponsive peers, may each use one part in
/// this many of the rate: even thousands of such peers leave the link to peers that answer.
const LIVENESS_SHARE: f64 = 16.0;

/// An event for the driver of a sender.
#[derive(Clone, Debug)]
pub(crate) enum SenderEvent {
    /// The send has ended, and nothing more of it will go on the wire.
    Ended(MessageId, Role, Outcome),
    /// The connect has ended: the session is ready for use, or was not established.
    Connected(ConnectId, Result<(), Rejection>),
}

/// The sending half of an endpoint.
pub(crate) struct Sender {
    config: Parameters,
    identity: Identity,
    resolver: Arc<dyn PathResolver>,
    rng: SplitMix64,
    peers: HashMap<SocketAddr, Peer>,
    /// The peer whose answers carry the session id.
    sessions: HashMap<SessionId, SocketAddr>,
    /// The peer of the handshake with the nonce.
    openings: HashMap<u64, SocketAddr>,
    /// Peers that nothing waits for, by when each is to be forgotten.
    idle: Indexed<SocketAddr, Instant>,
    messages: HashMap<MessageId, Outgoing>,
    recycler: Recycler,
    /// The peers of connects under way.
    connects: HashMap<ConnectId, SocketAddr>,
    /// Messages and connects that have not started, for lack of capacity.
    line: Line,
    /// Bytes of the messages that have started.
    bytes: usize,
    schedule: Schedule,
    timers: Indexed<Timer, Instant>,
    pacer: Pacer,
    /// The limit below the configured rate, if the configuration asks for one.
    limit: Option<Box<RateLimit>>,
    /// The share of the rate to which the pacer is limited.
    limited_to: f64,
    quantum: Option<Quantum>,
    /// The number of trains sent so far.
    trains: u64,
    /// The messages in the most recent trains.
    parts_sent: VecDeque<(u64, MessageId)>,
    /// Probes to be sent.
    probes_due: VecDeque<ProbeDue>,
    hellos: Hellos,
    checks: Checks,
    /// Peers that calls depend on.
    watched: BTreeSet<SocketAddr>,
    /// The interval of keep-alives, and when the next ones are due.
    keep_alive: Option<(Duration, Instant)>,
    /// What was found out about peers.
    findings: VecDeque<Finding>,
    /// The peers with a session, by incarnation.
    by_incarnation: BTreeSet<(Incarnation, SocketAddr)>,
    /// Unresponsive peers to which retries are due, in turn.
    retries_due: Indexed<SocketAddr, u64>,
    /// Spaces these retries.
    retries: Pacer,
    /// Whether a HELLO or such a retry was sent last: if other symbols are ready, they are next.
    symbols_are_next: bool,
    next_id: u64,
    next_connect: u64,
    handshakes: u64,
    /// The number of OPENs that were prepared.
    invitations: u64,
    /// Secrets of the keys in OPENs.
    ephemeral: Ratchet,
    accepts: Accepts,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
    latencies: LatencyHistogram,
    pub(in crate::proto) observer: Observing,
}

/// What a timer of a sender is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Timer {
    Message(MessageId),
    Peer(SocketAddr),
    Connect(ConnectId),
    Check(CheckId),
}

/// What a sender still accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Accepts {
    All,
    /// Responses, and withdrawals of requests.
    CallEndings,
    Nothing,
}

/// Whether a message of `role` is the last of a call.
const fn ends_call(role: Role) -> bool {
    matches!(role, Role::Response | Role::Withdrawal)
}

/// A message that has not started.
#[derive(Debug)]
struct NewMessage {
    peer: SocketAddr,
    role: Role,
    bytes: Bytes,
    options: SendOptions,
    accepted_at: Instant,
    deadline: Instant,
}

/// A message under way, with its receiver.
#[derive(Debug)]
struct Outgoing {
    source: Source,
    transfer: Transfer,
}

/// A scheduling quantum under way: one packet train on each path, all of one message.
#[derive(Debug)]
struct Quantum {
    message: MessageId,
    trains: usize,
}

impl Sender {
    pub(super) fn new(
        config: Parameters,
        identity: Identity,
        ephemeral: Ratchet,
        resolver: Arc<dyn PathResolver>,
    ) -> Self {
        let rng = SplitMix64::new(u64::from_be_bytes(identity.seed.derive("path order", 0)));
        let capacity = config.capacity;
        let mut pacer = Pacer::new(capacity, config.rate);
        let mut limit = None;
        if config.adaptive_rate {
            pacer = Pacer::new(capacity, config.rate * HEADROOM).with_depth(LIMITED_DEPTH);
            let rate = pacer.bits_per_second() as f64;
            limit = Some(Box::new(RateLimit::new(rate, config.usual_mtu())));
        }
        Self {
            pacer,
            limit,
            hellos: Hellos::new(capacity, config.rate / LIVENESS_SHARE),
            checks: Checks::default(),
            watched: BTreeSet::new(),
            keep_alive: None,
            findings: VecDeque::new(),
            by_incarnation: BTreeSet::new(),
            retries_due: Indexed::default(),
            retries: Pacer::new(capacity, config.rate / LIVENESS_SHARE),
            config,
            identity,
            resolver,
            rng,
            peers: HashMap::new(),
            sessions: HashMap::new(),
            openings: HashMap::new(),
            idle: Indexed::default(),
            messages: HashMap::new(),
            recycler: Recycler::default(),
            connects: HashMap::new(),
            line: Line::default(),
            bytes: 0,
            schedule: Schedule::default(),
            timers: Indexed::default(),
            limited_to: 1.0,
            quantum: None,
            trains: 0,
            parts_sent: VecDeque::with_capacity(MAX_PARTS),
            probes_due: VecDeque::new(),
            symbols_are_next: false,
            next_id: 0,
            next_connect: 0,
            handshakes: 0,
            invitations: 0,
            ephemeral,
            accepts: Accepts::All,
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            latencies: LatencyHistogram::default(),
            observer: None,
        }
    }

    /// Accepts a message to burst to `peer`, while `calls` have not ended.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        calls: usize,
    ) -> Result<MessageId, StartError> {
        match self.accepts {
            Accepts::All => {}
            Accepts::CallEndings if ends_call(role) => {}
            Accepts::CallEndings | Accepts::Nothing => return Err(StartError::Closing),
        }
        let len = bytes.len();
        let max = self.config.max_message;
        let header = role.header_len();
        if len > max {
            return Err(StartError::TooLarge {
                len: len - header,
                max: max.saturating_sub(header),
            });
        }
        options.check()?;
        if options.deadline == Some(Duration::ZERO) {
            let id = self.take_id()?;
            self.reject(id, role, Rejection::NotStarted);
            return Ok(id);
        }
        let starts = self.starts_at_once(now, Flow::of(peer, role), len, calls, options.wait)?;
        let options = *options;
        let deadline = now + options.deadline.unwrap_or(self.config.deadline);
        let message = NewMessage { peer, role, bytes, options, accepted_at: now, deadline };
        if starts {
            let id = self.take_id()?;
            self.start(now, id, message, None);
            return Ok(id);
        }
        let ticket = self.line.next_ticket();
        self.enqueue(Ticket::Message(ticket), Waiting::Message(message));
        Ok(ticket)
    }

    /// Starts a message to a peer that was entered.
    fn start(
        &mut self,
        now: Instant,
        id: MessageId,
        message: NewMessage,
        ticket: Option<MessageId>,
    ) {
        let NewMessage { peer, role, bytes, options, accepted_at, deadline } = message;
        let len = bytes.len();
        self.bytes += len;
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.bytes += len;
        }

        let code = options.code.unwrap_or(self.config.code);
        let policy = options.policy_for(len.saturating_sub(role.header_len()), &self.config);
        let policy = AnyPolicy::new(policy, code, self.config.capacity);
        let max_symbol = self.max_symbol(peer, code, &policy);
        let mut source = Source::new(id, role, bytes, code, max_symbol);
        let mut transfer = Transfer::new(
            accepted_at,
            deadline,
            peer,
            &source,
            policy,
            options.priority,
            &self.config,
        );
        transfer.ticket = ticket;
        if let Some(ended) = self.recycler.take(now) {
            source.reuse(ended.source);
            transfer.reuse(ended.transfer);
        }
        self.messages.insert(id, Outgoing { source, transfer });
        let started = || Observation::MessageStarted { peer, message: id, bytes: len, sends: true };
        emit(&self.observer, started);
        if let Some(limit) = &mut self.limit {
            limit.on_message(now, peer);
        }
        self.begin(now, peer, id);
    }

    fn take_id(&mut self) -> Result<MessageId, StartError> {
        let id = MessageId(self.next_id);
        if id.0 >= MAX_MESSAGE_ID {
            return Err(StartError::OutOfIds);
        }
        self.next_id += 1;
        Ok(id)
    }

    /// Enters a new message with its peer, after beginning a handshake if necessary.
    fn begin(&mut self, now: Instant, address: SocketAddr, id: MessageId) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.push_message(id);
        self.seek_session(now, address);
        self.reschedule(id);
    }

    /// Replaces the path map. Paths that a peer no longer has carry no more packets, and new ones
    /// take their share. Counts of paths that stay continue.
    ///
    /// If a peer has no path left, messages under way to it stay on the old paths, and new messages
    /// to it are refused.
    ///
    /// # Errors
    ///
    /// Returns an error if the order does not fit the paths to some peer. Nothing has changed then.
    pub(crate) fn set_path_resolver(
        &mut self,
        resolver: Arc<dyn PathResolver>,
    ) -> Result<(), OrderError> {
        let mut changed = Vec::new();
        // Sorted, so that neither the order nor the random draws change from run to run.
        let mut addresses: Vec<SocketAddr> = self.peers.keys().copied().collect();
        addresses.sort_unstable();
        for address in addresses {
            let Some(peer) = self.peers.get(&address) else { continue };
            if peer.by_routes {
                continue;
            }
            let to = with_port(peer.address, peer.port);
            let (slots, vias) =
                slots_and_paths(&*resolver, to, peer.ports, peer.local, peer.path_generation);
            let mut paths = peer.paths.clone();
            if !vias.is_empty() {
                paths.replace(&slots, &vias, self.config.order, self.rng.next_u64())?;
            }
            changed.push((address, paths, !vias.is_empty()));
        }
        for (address, paths, reachable) in changed {
            if let Some(peer) = self.peers.get_mut(&address) {
                peer.paths = paths;
                peer.reachable = reachable;
                peer.headers = longest_headers(&peer.paths, &*resolver);
            }
        }
        self.resolver = resolver;
        // Some may have had no path until now.
        self.line.reopen_all();
        Ok(())
    }

    /// Stops accepting connects, and all messages but responses and withdrawals. What waits in line
    /// ends, with the same exceptions.
    pub(crate) fn close(&mut self) {
        self.accepts = self.accepts.max(Accepts::CallEndings);
        for ticket in self.line.tickets() {
            let waiting = self.line.get(ticket);
            if !matches!(waiting, Some(Waiting::Message(message)) if ends_call(message.role)) {
                self.end_waiting(ticket, Rejection::Closing);
            }
        }
    }

    /// Stops accepting anything.
    pub(super) fn stop(&mut self) {
        self.accepts = Accepts::Nothing;
    }

    /// Whether there is a session with `peer`.
    pub(super) fn has_session(&self, peer: SocketAddr) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.session.is_some())
    }

    /// Sends the last message of a call to a peer that may wait for it until `until`. It precedes
    /// everything else. If there is no capacity for it before, the call ends at its deadline.
    pub(super) fn send_call_ending(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        until: Instant,
    ) {
        let deadline = Some(until.saturating_since(now).min(self.config.deadline));
        let priority = SendOptions::MAX_PRIORITY;
        let options = SendOptions { deadline, priority, ..SendOptions::default() };
        if let Err(error) = self.send(now, peer, role, bytes, &options, 0) {
            tracing::debug!(%peer, %error, "cannot tell a peer that a call has ended");
        }
    }

    /// Messages and connects that are waiting or under way.
    pub(crate) fn unfinished(&self) -> usize {
        self.messages.len() + self.connects.len() + self.line.len()
    }

    /// Whether a message waits in line.
    pub(crate) fn is_waiting(&self, id: MessageId) -> bool {
        self.line.get(Ticket::Message(id)).is_some()
    }

    /// Whether a message is waiting or under way.
    pub(super) fn is_under_way(&self, id: MessageId) -> bool {
        self.messages.contains_key(&id)
            || self.line.started.contains_key(&id)
            || self.is_waiting(id)
    }

    /// Withdrawals under way or in line.
    pub(crate) fn withdrawals(&self) -> usize {
        let under_way = self.messages.values().map(|message| message.source.role);
        let roles = under_way.chain(self.line.roles());
        roles.filter(|role| *role == Role::Withdrawal).count()
    }

    /// Whether there is capacity for a message of `len` bytes to `peer` that is no request.
    pub(super) fn has_capacity(&self, peer: SocketAddr, len: usize) -> bool {
        self.lack(Flow::of(peer, Role::Plain), len, 0).is_none()
    }

    fn full(&self) -> StartError {
        let messages = self.messages.len() + self.connects.len();
        StartError::Full { messages, bytes: self.bytes }
    }

    pub(crate) fn counters(&self) -> SenderCounters {
        SenderCounters {
            rate: self.pacer.bits_per_second(),
            rate_lowered: self.limit.as_ref().map_or(0, |limit| limit.lowered),
            ..self.counters
        }
    }

    /// How long delivered messages took, from when each was accepted to STOP.
    pub(crate) const fn latencies(&self) -> &LatencyHistogram {
        &self.latencies
    }

    /// The traffic sent to each peer that is remembered, in no particular order.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (SocketAddr, SentTo)> {
        self.peers.iter().map(|(&address, peer)| (address, peer.stats()))
    }

    /// Live counts of the paths to `peer`, by path number; empty if nothing was sent there.
    pub(crate) fn paths(&self, peer: SocketAddr) -> &[PathStats] {
        self.peers.get(&peer).map_or(&[], |peer| peer.paths.stats())
    }

    /// Handles everything that is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Message(id) => self.message_timeout(now, id),
                Timer::Peer(peer) => self.peer_timeout(now, peer),
                Timer::Connect(id) => self.connect_timeout(id),
                Timer::Check(id) => self.check_timeout(now, id),
            }
        }
        self.recycler.handle_timeout(now);
        self.keep_alive_timeout(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) or
    /// [`poll_transmit`](Self::poll_transmit) has something to do next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let symbols = (!self.schedule.ranked.is_empty()).then_some(Instant::ZERO);
        let retries = (!self.retries_due.is_empty()).then(|| self.retries.ready_at());
        let ready = [symbols, retries, self.hellos.ready_at()].into_iter().flatten().min();
        let transmit = ready.map(|at| at.max(self.pacer.ready_at()));
        let probe = (!self.probes_due.is_empty()).then_some(Instant::ZERO);
        [transmit, probe, self.next_timer()].into_iter().flatten().min()
    }

    /// When the next timer is due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let keep_alive = self.keep_alive.map(|(_, at)| at);
        let recycler = self.recycler.poll_timeout();
        let timers = [self.timers.first_rank(), recycler, keep_alive, self.idle.first_rank()];
        timers.into_iter().flatten().min()
    }

    /// The next thing found out about a peer.
    #[inline]
    pub(super) fn poll_finding(&mut self) -> Option<Finding> {
        self.findings.pop_front()
    }

    /// The next event for the driver.
    pub(crate) fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// Whether there are events for the driver.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn reschedule(&mut self, id: MessageId) {
        step();
        let Some(Outgoing { transfer, .. }) = self.messages.get(&id) else { return };
        let Some(peer) = self.peers.get(&transfer.peer) else { return };
        let bursts = peer.lets_burst(transfer);
        let ready = (bursts && transfer.is_ready()).then(|| transfer.rank());
        let wake_at = transfer.wake_at(!bursts || peer.liveness.waiting.contains(id));
        self.schedule.set(id, ready);
        self.timers.set(Timer::Message(id), Some(wake_at));
    }
}

impl core::fmt::Debug for Sender {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sender")
            .field("incarnation", &self.identity.incarnation)
            .field("peers", &self.peers.len())
            .field("messages", &self.messages.len())
            .field("connects", &self.connects.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
