//! All parts in one, for drivers with one thread: tests, fuzzers, simulators.

use super::Identity;
use super::coupling::{self, Parts};
use super::stats::{PeerStats, merge};
use super::{
    CallCounters, CallFailure, CallId, Calls, Message, Prepared, Receiver, ReceiverCounters,
    Request, SendOptions, Sender, SenderCounters, Transmit, response,
};
use crate::config::{Config, ConfigError, Security};
use crate::error::{LocalError, Outcome, SendError};
use crate::id::MessageId;
use crate::latency::LatencyHistogram;
use crate::path::{OrderError, PathMap, PathStats, Via};
use crate::rng::Seed;
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::ops::DerefMut;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

/// Sends and receives messages.
///
/// See the [module](super) for how to drive it.
#[derive(Debug)]
pub struct Endpoint {
    sender: Sender,
    receiver: Receiver,
    calls: Calls,
    busy_poll: Duration,
}

/// What the application should know.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// One message more of this role is in the application's queue: see [`Endpoint::recv`] and
    /// [`Endpoint::recv_request`].
    Readable(Role),
    /// A send ended; or that of a request or a response, which no caller needs to know of.
    Ended(MessageId, Outcome),
    /// A call ended.
    Answered(CallId, Result<Bytes, CallFailure>),
}

/// What an endpoint has done and seen since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// The sending half.
    pub sender: SenderCounters,
    /// The receiving half.
    pub receiver: ReceiverCounters,
    /// Calls.
    pub calls: CallCounters,
}

/// How long an endpoint's messages took.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Latencies {
    /// Messages sent: from the call to STOP ([`Receipt::total`](crate::error::Receipt::total)), of
    /// those that were delivered.
    pub sent: LatencyHistogram,
    /// Messages received: from the first symbol to the one that made the message whole.
    pub received: LatencyHistogram,
}

impl Endpoint {
    /// A new life of an endpoint.
    ///
    /// `seed` must come from the operating system's generator, and must never be used again:
    /// two endpoints of one seed would repeat nonces.
    ///
    /// # Errors
    ///
    /// The configuration's first field that is out of its range.
    pub fn new(
        config: Config,
        security: &Security,
        seed: Seed,
        path_map: Box<dyn PathMap>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let calls = Calls::new(seed.clone(), config.deadline);
        let identity = Identity::new(security, seed);
        let path_map: Arc<dyn PathMap> = path_map.into();
        Ok(Self {
            busy_poll: config.busy_poll,
            sender: Sender::new(config.clone(), identity.clone(), path_map.clone()),
            receiver: Receiver::new(config, identity, path_map),
            calls,
        })
    }

    /// The parts, for threads that lock them one by one.
    pub(crate) fn split(self) -> (Sender, Receiver, Calls) {
        (self.sender, self.receiver, self.calls)
    }

    /// How long a thread that drives this should busy-poll before it sleeps.
    pub(crate) const fn busy_poll(&self) -> Duration {
        self.busy_poll
    }

    /// Takes a message to burst to `peer`.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then.
    pub fn send(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        bytes: Bytes,
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        self.sender.send(now, peer, Role::Plain, bytes, options)
    }

    /// A request with `bytes`, of a call that may take `patience`; `None`: as long as messages may
    /// that do not say so themselves.
    pub fn prepare(&mut self, patience: Option<Duration>, bytes: &[u8]) -> Prepared {
        self.calls.prepare(patience, bytes)
    }

    /// Sends a request to `peer`; how its call ends is an [`Event::Answered`].
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then, and the request can be tried again.
    pub fn call(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        call: &Prepared,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        coupling::call(self, now, peer, call, options)
    }

    /// Forgets a call, and stops the burst of its request. A response that comes later is dropped.
    pub fn hang_up(&mut self, call: CallId) {
        coupling::hang_up(self, call);
    }

    /// Sends the response to a request; `None`: there is none, and the caller should know.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then.
    pub fn reply(
        &mut self,
        now: Instant,
        request: &Request,
        bytes: Option<&[u8]>,
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        let frame = response(request.call, bytes);
        self.sender.send(now, request.peer, Role::Response, frame, options)
    }

    /// Stops the burst of a message at once.
    pub fn cancel(&mut self, id: MessageId) {
        self.sender.cancel(id);
    }

    /// The application takes the next message from its queue.
    pub fn recv(&mut self) -> Option<Message> {
        self.receiver.recv(Role::Plain)
    }

    /// The plain messages in the application's queue, oldest first.
    pub fn queued(&self) -> impl Iterator<Item = &Message> {
        self.receiver.queued(Role::Plain)
    }

    /// The application takes the next request from its queue. Those whose callers have given up are
    /// dropped, and counted.
    pub fn recv_request(&mut self, now: Instant) -> Option<Request> {
        core::iter::from_fn(|| self.receiver.recv(Role::Request))
            .find_map(|message| self.calls.accept(now, message))
    }

    /// Uses other paths from now on: those that a peer no longer has get no more packets, and new ones
    /// get theirs. What is under way to a peer that has no path any more stays on the old ones; new
    /// messages to it are refused.
    ///
    /// # Errors
    ///
    /// The order does not fit them; nothing has changed then.
    pub fn set_path_map(&mut self, path_map: Arc<dyn PathMap>) -> Result<(), OrderError> {
        self.sender.set_path_map(path_map.clone())?;
        self.receiver.set_path_map(path_map);
        Ok(())
    }

    /// Takes no new messages, neither to send nor to receive; what is under way goes on.
    pub fn close(&mut self) {
        self.sender.close();
        self.receiver.close();
    }

    /// Takes a datagram that came in by `via`. Its bytes are garbled afterwards.
    pub fn handle_datagram(&mut self, now: Instant, via: Via, packet: &mut [u8]) {
        coupling::handle_datagram(self, now, via, packet);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
        self.calls.handle_timeout(now);
    }

    /// Fills `buffer`, which must be empty, with the next datagrams for one path.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        coupling::poll_transmit(self, now, buffer)
    }

    /// [`poll_transmit`](Self::poll_transmit) without answers by themselves: for a driver whose
    /// application has something new to read, and may respond at once.
    pub fn poll_symbols(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        coupling::poll_symbols(self, now, buffer)
    }

    /// The host has not taken what `transmit` was. To the protocol that is a loss like any other; if
    /// nothing was sent since when a message fails, its caller is told.
    pub fn not_sent(&mut self, transmit: &Transmit, error: LocalError) {
        self.sender.not_sent(transmit, error);
    }

    /// The next thing that the application should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        coupling::poll_event(self)
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let parts =
            [self.sender.poll_timeout(), self.receiver.poll_timeout(), self.calls.poll_timeout()];
        parts.into_iter().flatten().min()
    }

    /// Asserts what must hold between two inputs, for tests and fuzzers.
    ///
    /// # Panics
    ///
    /// When the state machines contradict themselves.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.sender.check_invariants();
        self.receiver.check_invariants();
        self.calls.check_invariants();
    }

    /// What was done and seen so far.
    pub fn counters(&self) -> Counters {
        Counters {
            sender: *self.sender.counters(),
            receiver: *self.receiver.counters(),
            calls: self.calls.counters(),
        }
    }

    /// How long messages took so far: a copy of about 54 KB.
    pub fn latencies(&self) -> Latencies {
        let (sent, received) = (self.sender.latencies(), self.receiver.latencies());
        Latencies { sent: sent.clone(), received: received.clone() }
    }

    /// What passed between this endpoint and each peer that it remembers, by address.
    pub fn peers(&self) -> Vec<PeerStats> {
        merge(self.sender.peers().collect(), self.receiver.peers().collect())
    }

    /// Bytes that messages being received may take at this moment.
    pub fn receive_memory(&self) -> usize {
        self.receiver.memory()
    }

    /// Peers, sessions and messages that were looked at so far: what events cost, for tests.
    #[doc(hidden)]
    pub fn visits(&self) -> u64 {
        self.sender.visits()
    }

    /// Messages that are waiting to be sent or under way.
    pub fn unfinished(&self) -> usize {
        self.sender.unfinished()
    }

    /// Live counts of the paths to `peer`, by path number.
    pub fn paths(&self, peer: SocketAddr) -> &[PathStats] {
        self.sender.paths(peer)
    }
}

impl Parts for Endpoint {
    fn calls(&mut self) -> impl DerefMut<Target = Calls> {
        &mut self.calls
    }

    fn sender(&mut self) -> impl DerefMut<Target = Sender> {
        &mut self.sender
    }

    fn receiver(&mut self) -> impl DerefMut<Target = Receiver> {
        &mut self.receiver
    }

    fn calls_and_sender(
        &mut self,
    ) -> (impl DerefMut<Target = Calls>, impl DerefMut<Target = Sender>) {
        (&mut self.calls, &mut self.sender)
    }

    fn halves(&mut self) -> (impl DerefMut<Target = Sender>, impl DerefMut<Target = Receiver>) {
        (&mut self.sender, &mut self.receiver)
    }

    fn answering(&mut self) -> Option<impl DerefMut<Target = Receiver>> {
        Some(&mut self.receiver)
    }
}
