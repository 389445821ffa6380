//! One endpoint and its application.
//!
//! Only this file knows the driving contract of [`Transceiver`]: one input, then all outputs.

use crate::clock::Clock;
use crate::recipe::Recipe;
use bytes::Bytes;
use cloudburst_core::error::CallFailure;
use cloudburst_core::error::{Outcome, Rejection};
use cloudburst_core::id::{ConnectId, MessageId};
use cloudburst_core::path::Via;
use cloudburst_core::proto::{
    CallId, Event, IncomingRequest, Message, RequestId, Transceiver, TransceiverCounters, Transmit,
};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A host of the world.
#[derive(Debug)]
pub struct Host {
    /// The endpoint. A caller that hands it an input must drain the host afterwards.
    pub endpoint: Transceiver,
    /// Plain messages that entered the application's queue, in order, taken or not.
    pub inbox: Vec<Message>,
    /// Requests that the application has taken.
    pub requests: Vec<IncomingRequest>,
    /// The results of calls.
    pub answers: BTreeMap<CallId, Result<Bytes, CallFailure>>,
    /// Requests that the application has taken and whose callers no longer wait.
    pub withdrawn: Vec<RequestId>,
    /// The outcomes of sends.
    pub outcomes: BTreeMap<MessageId, Outcome>,
    /// The results of connects.
    pub connects: BTreeMap<ConnectId, Result<(), Rejection>>,
    /// Whether the application takes each message at once.
    pub takes: bool,
    /// Its clock. All methods take the world's time; the endpoint is given what this clock shows.
    pub clock: Clock,
    recipe: Recipe,
    /// The number of the process, from 0.
    life: u8,
    /// The number of the latest process.
    latest: u8,
    /// The process that has handed over its socket. It is stopped.
    former: Option<Box<Host>>,
    /// Messages and requests that the application has not taken yet, in order.
    untaken: VecDeque<Untaken>,
    alive: bool,
    paused: bool,
    /// Packets that arrived while it was paused.
    waiting: VecDeque<(Via, Vec<u8>)>,
}

/// A message or request that is ready for the application.
#[derive(Debug)]
enum Untaken {
    /// A plain message, as it stood in the queue.
    Plain(Message),
    Request,
}

/// A datagram that a host has put on the wire.
#[derive(Clone, Debug)]
pub struct Departure {
    /// The number of the host.
    pub from: usize,
    /// The address that it left from.
    pub source: SocketAddr,
    /// The batch that it was in.
    pub transmit: Transmit,
    /// Its bytes.
    pub packet: Vec<u8>,
}

/// A sink for outgoing datagrams, each with the batch that it is in.
pub type Out<'a> = dyn FnMut(Transmit, &[u8]) + 'a;

impl Host {
    /// A host in its first life.
    ///
    /// # Panics
    ///
    /// If the endpoint refuses the configuration.
    pub fn new(recipe: Recipe) -> Self {
        Self::live(recipe, 0)
    }

    fn live(recipe: Recipe, life: u8) -> Self {
        let mut secret = recipe.secret;
        secret[1] = life;
        let seed = Seed::new(secret);
        let map = Box::new(recipe.paths());
        let config = recipe.config.clone();
        let endpoint = Transceiver::new(config, recipe.listen, &recipe.security, seed, map);
        Self {
            endpoint: endpoint.expect("the configuration is in its ranges"),
            inbox: Vec::new(),
            requests: Vec::new(),
            answers: BTreeMap::new(),
            withdrawn: Vec::new(),
            outcomes: BTreeMap::new(),
            connects: BTreeMap::new(),
            takes: true,
            clock: Clock::default(),
            recipe,
            life,
            latest: life,
            former: None,
            untaken: VecDeque::new(),
            alive: true,
            paused: false,
            waiting: VecDeque::new(),
        }
    }

    /// Kills the host and starts it again, as a new incarnation. Its state is lost, but its clock goes
    /// on.
    pub fn restart(&mut self) {
        let clock = self.clock;
        *self = Self::live(self.recipe.clone(), self.latest.wrapping_add(1));
        self.clock = clock;
    }

    /// Stops the process and hands its socket to the one that had it before or, if there is none, to a
    /// new incarnation.
    pub(crate) fn hand_over(&mut self) {
        let next = self.former.take().map(|former| *former);
        let next =
            next.unwrap_or_else(|| Self::live(self.recipe.clone(), self.latest.wrapping_add(1)));
        let before = core::mem::replace(self, next);
        self.clock = before.clock;
        self.latest = self.latest.max(before.latest);
        self.former = Some(Box::new(before));
    }

    /// Kills the host for good: it sends nothing more, and packets to it are lost.
    pub fn kill(&mut self) {
        self.alive = false;
    }

    /// Stops the process. Packets that arrive wait in its sockets.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Resumes the process, and returns the packets that waited. Hand each of them to
    /// [`handle`](Self::handle), and then call [`handle_timeout`](Self::handle_timeout).
    pub fn resume(&mut self) -> VecDeque<(Via, Vec<u8>)> {
        self.paused = false;
        core::mem::take(&mut self.waiting)
    }

    /// Hands in a packet, which waits if the host is paused. The outputs go to `out`.
    pub fn handle(&mut self, now: Instant, via: Via, mut packet: Vec<u8>, out: &mut Out<'_>) {
        if self.paused {
            self.waiting.push_back((via, packet));
        } else if self.alive {
            self.endpoint.handle_datagram(self.clock.read(now), via, &mut packet);
            self.drain(now, out);
        }
    }

    /// Handles the timeouts of the endpoint that are due. The outputs go to `out`.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Out<'_>) {
        if self.is_running() {
            self.endpoint.handle_timeout(self.clock.read(now));
            self.drain(now, out);
        }
    }

    /// Drains all outputs: packets to `out`, the rest to the application.
    pub fn drain(&mut self, now: Instant, out: &mut Out<'_>) {
        if !self.is_running() {
            return;
        }
        let mut buffer = Vec::new();
        loop {
            while let Some(event) = self.endpoint.poll_event() {
                self.handle_event(event);
            }
            let shown = self.clock.read(now);
            while let Some(transmit) = self.endpoint.poll_transmit(shown, &mut buffer) {
                assert_eq!(buffer.len(), transmit.len, "{transmit:?}");
                buffer.chunks(transmit.segment_size).for_each(|packet| out(transmit, packet));
                buffer.clear();
            }
            let announced = !self.untaken.is_empty() || self.endpoint.queued().next().is_none();
            assert!(announced, "a message is in the queue, but the application was not notified");
            // Taking messages is an input as well, so more outputs may follow.
            if !self.takes || self.untaken.is_empty() {
                return;
            }
            self.take_all(now);
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Ended(id, outcome) => {
                assert!(self.outcomes.insert(id, outcome).is_none(), "{id} ended twice");
            }
            Event::Connected(id, result) => {
                assert!(self.connects.insert(id, result).is_none(), "{id:?} ended twice");
            }
            Event::Answered(call, answer) => {
                assert!(self.answers.insert(call, answer).is_none(), "{call:?} ended twice");
            }
            Event::Withdrawn(request) => self.withdrawn.push(request),
            Event::Readable(role) => {
                self.untaken.push_back(match role {
                    Role::Plain => {
                        let is_known = |message: &&Message| {
                            let is_it =
                                |of: &Untaken| matches!(of, Untaken::Plain(known) if known == *message);
                            self.untaken.iter().any(is_it)
                        };
                        let message = self.endpoint.queued().find(|message| !is_known(message));
                        let message = message.expect("it is in the queue").clone();
                        self.inbox.push(message.clone());
                        Untaken::Plain(message)
                    }
                    Role::Request => Untaken::Request,
                    other => panic!("unexpected role of a message: {other:?}"),
                });
            }
            other => panic!("unexpected event: {other:?}"),
        }
    }

    /// Takes a message that is left for the application. Returns whether there was one.
    ///
    /// # Panics
    ///
    /// If the endpoint yields a message other than the oldest in the queue from its host.
    pub fn take(&mut self, now: Instant) -> bool {
        match self.untaken.front() {
            None => return false,
            Some(Untaken::Request) => {
                self.untaken.pop_front();
                self.requests.extend(self.endpoint.recv_request(self.clock.read(now)));
            }
            Some(Untaken::Plain(_)) => {
                // Hosts take turns, so it is the oldest of its host.
                let taken = self.endpoint.recv().expect("a message is in the queue");
                let host = taken.peer.ip().to_canonical();
                let is_of_host = |of: &Untaken| matches!(of, Untaken::Plain(queued) if queued.peer.ip().to_canonical() == host);
                let at = self.untaken.iter().position(is_of_host);
                let oldest = at.and_then(|at| self.untaken.remove(at));
                let is_it = matches!(&oldest, Some(Untaken::Plain(oldest)) if *oldest == taken);
                assert!(is_it, "{} was taken instead of {oldest:?}", taken.id);
            }
        }
        true
    }

    /// Takes all messages that are left for the application.
    pub fn take_all(&mut self, now: Instant) {
        while self.take(now) {}
    }

    /// Plain messages that the application has not taken, and their bytes.
    pub fn untaken(&self) -> (usize, usize) {
        let lengths = self.endpoint.queued().map(|message| message.bytes.len());
        lengths.fold((0, 0), |(messages, bytes), len| (messages + 1, bytes + len))
    }

    /// When the endpoint's next timeout is due; `None` unless the host is running.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = self.is_running().then(|| self.endpoint.poll_timeout()).flatten()?;
        self.clock.when(due)
    }

    /// The recipe of the host, its addresses included.
    pub const fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The number of the process that has the socket: the latest, unless it was handed back.
    pub const fn life(&self) -> u8 {
        self.life
    }

    /// The number of the latest process: how often one was started besides the first.
    pub(crate) const fn lives(&self) -> u8 {
        self.latest
    }

    /// Whether it has not been killed.
    pub const fn is_alive(&self) -> bool {
        self.alive
    }

    /// Whether it is alive and not paused.
    pub const fn is_running(&self) -> bool {
        self.alive && !self.paused
    }

    /// The counters of its endpoint.
    pub fn counters(&self) -> TransceiverCounters {
        self.endpoint.counters()
    }

    /// The number of sends that were delivered.
    pub fn delivered(&self) -> usize {
        self.outcomes.values().filter(|o| matches!(o, Outcome::Delivered(_))).count()
    }
}
