//! The transceiver: both halves of an endpoint, and its calls.

use super::Identity;
use super::observe::Observer;
use super::stats::{PeerStats, merge};
use super::{
    CallCounters, CallTable, IncomingRequest, Message, Prepared, Receiver, ReceiverCounters,
    SendOptions, Sender, SenderCounters, Served, Transmit, overload, response,
};
use crate::config::{Config, ConfigError, ListenPorts, Parameters, Security};
use crate::error::{LocalError, StartError};
use crate::id::{ConnectId, MessageId};
use crate::latency::LatencyHistogram;
use crate::path::{OrderError, PathResolver, PathStats};
use crate::rng::{Ratchet, Seed};
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

/// Sends and receives messages.
///
/// See the [module](super) for how to drive it.
#[derive(Debug)]
pub struct Transceiver {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) calls: CallTable,
    busy_poll: Duration,
}

/// Counters of what an endpoint has done and seen since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransceiverCounters {
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
    /// Messages sent and delivered: from when the message was accepted to STOP
    /// ([`Receipt::total`](crate::error::Receipt::total)).
    pub sent: LatencyHistogram,
    /// Messages received: from the first symbol to the one that completed the message.
    pub received: LatencyHistogram,
    /// Calls that got an answer: from when the call was accepted to the last symbol of its response.
    pub calls: LatencyHistogram,
    /// Requests that the application answered: from when it took them to when it began to reply.
    pub requests: LatencyHistogram,
}

impl Transceiver {
    /// Creates a new incarnation of an endpoint.
    ///
    /// `seed` must come from the operating system's generator and must never be used again: two
    /// endpoints with the same seed would repeat nonces.
    ///
    /// # Errors
    ///
    /// Returns an error that names the first setting that is out of range.
    pub fn new(
        config: Config,
        ports: ListenPorts,
        security: &Security,
        seed: Seed,
        resolver: Box<dyn PathResolver>,
    ) -> Result<Self, ConfigError> {
        let parameters = Parameters::new(config, ports)?;
        let calls = CallTable::new(Seed::new(seed.derive("calls", 0)), parameters.deadline);
        let identity = Identity::new(security, &seed);
        let ephemeral = |half| Ratchet::new(seed.derive(half, 0));
        let resolver: Arc<dyn PathResolver> = resolver.into();
        Ok(Self {
            busy_poll: parameters.busy_poll,
            sender: Sender::new(
                parameters.clone(),
                identity.clone(),
                ephemeral("initiator's ephemeral keys"),
                resolver.clone(),
            ),
            receiver: Receiver::new(
                parameters,
                identity,
                ephemeral("responder's ephemeral keys"),
                resolver,
            ),
            calls,
        })
    }

    /// Reports the endpoint's work to `observer` from now on. Without an observer, the cost is a
    /// branch for each train, each answer and each change of a session or of a message.
    pub fn observe(&mut self, observer: Arc<dyn Observer>) {
        self.sender.observer = Some(observer.clone());
        self.receiver.observer = Some(observer);
    }

    /// How long a thread that drives this endpoint busy-polls before it sleeps.
    pub(crate) const fn busy_poll(&self) -> Duration {
        self.busy_poll
    }

    /// Opens a session with `peer` before there is a message for it. Of the `options`, the deadline
    /// counts, and whether it waits. An [`Event::Connected`](super::Event::Connected) reports the end.
    ///
    /// The handshake is the one that a message would begin. A connect ends once the peer is known
    /// to hold the session: immediately if it is and the peer has been heard from recently. It
    /// counts against [`Limits::send_messages`](crate::config::Limits::send_messages). An idle
    /// session is checked before use after 30 s, and forgotten by the peer after ten minutes.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, no connect was started.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: &SendOptions,
    ) -> Result<ConnectId, StartError> {
        self.start_waiting(now);
        self.sender.connect(now, peer, options)
    }

    /// Ends a connect before its deadline, with
    /// [`Rejection::Cancelled`](crate::error::Rejection::Cancelled). Does nothing if it has ended.
    /// The handshake continues only if something else waits for it.
    pub fn cancel_connect(&mut self, id: ConnectId) {
        self.sender.cancel_connect(id);
    }

    /// Accepts a message to burst to `peer`. If there is no capacity for it, it waits in line, unless
    /// `options` say otherwise: peers take turns, and messages to one start in order of arrival. Its
    /// id is 2^48 or more then, and on the wire it has another.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent.
    pub fn send(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        bytes: Bytes,
        options: &SendOptions,
    ) -> Result<MessageId, StartError> {
        self.send_as(now, peer, Role::Plain, bytes, options)
    }

    /// [`send`](Self::send) for a message of `role`.
    pub(crate) fn send_as(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
    ) -> Result<MessageId, StartError> {
        self.start_waiting(now);
        self.sender.send(now, peer, role, bytes, options, self.calls.waiting())
    }

    /// Prepares a request with `bytes` for a call that may take `timeout`. `None` stands for the
    /// default deadline of messages.
    pub fn prepare(&mut self, timeout: Option<Duration>, bytes: &[u8]) -> Prepared {
        self.calls.prepare(timeout, bytes)
    }

    /// Sends the response to a request. `None` tells the caller that there is no response.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent.
    pub fn reply(
        &mut self,
        now: Instant,
        request: &IncomingRequest,
        bytes: Option<&[u8]>,
        options: &SendOptions,
    ) -> Result<MessageId, StartError> {
        let frame = response(request.call, bytes);
        let id = self.send_as(now, request.peer, Role::Response, frame, options)?;
        let served = if bytes.is_some() { Served::Answered } else { Served::Dropped };
        self.calls.release(now, request, served);
        Ok(id)
    }

    /// Refuses a request on which the application has not acted, because it is overloaded. The call
    /// ends with [`CallFailure::Overloaded`](crate::error::CallFailure::Overloaded).
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent.
    pub fn refuse(
        &mut self,
        now: Instant,
        request: &IncomingRequest,
        options: &SendOptions,
    ) -> Result<MessageId, StartError> {
        let frame = overload(request.call);
        let id = self.send_as(now, request.peer, Role::Response, frame, options)?;
        self.calls.release(now, request, Served::Overloaded);
        Ok(id)
    }

    /// Stops the burst of a message at once. Threads that share an endpoint may already hold a
    /// batch of it, which they still send.
    pub fn cancel(&mut self, id: MessageId) {
        self.sender.cancel(id);
    }

    /// Takes the next message from the application's queue.
    pub fn recv(&mut self) -> Option<Message> {
        self.receiver.recv(Role::Plain)
    }

    /// The plain messages in the application's queue. The first is the one that is taken next; hosts take
    /// turns.
    pub fn queued(&self) -> impl Iterator<Item = &Message> {
        self.receiver.queued(Role::Plain)
    }

    /// Takes the next request from the application's queue. Requests whose callers have given up
    /// are dropped and counted. The endpoint remembers the request until it is replied to, or until
    /// an [`Event::Withdrawn`](super::Event::Withdrawn) says that its caller no longer waits for the
    /// response.
    pub fn recv_request(&mut self, now: Instant) -> Option<IncomingRequest> {
        core::iter::from_fn(|| self.receiver.recv(Role::Request))
            .find_map(|message| self.calls.accept(now, message))
    }

    /// Replaces the path map. Paths that a peer no longer has carry no more packets, and new ones
    /// take their share. If a peer has no path left, messages under way to it stay on the old
    /// paths, and new messages to it are refused.
    ///
    /// # Errors
    ///
    /// Returns an error if the configured order does not fit the new paths. Nothing has changed
    /// then.
    pub fn set_path_resolver(&mut self, resolver: Arc<dyn PathResolver>) -> Result<(), OrderError> {
        self.sender.set_path_resolver(resolver.clone())?;
        self.receiver.resolver = resolver;
        Ok(())
    }

    /// Sends a packet by each socket to each peer with a session at least once in `every`, counted as 1 s if it is
    /// shorter, so that translators and firewalls on the way do not forget the session while nothing is sent. A
    /// peer that has not answered for about a minute is left alone until it is heard from.
    pub fn set_keep_alive(&mut self, now: Instant, every: Duration) {
        self.sender.set_keep_alive(now, every);
    }

    /// Uses the keys of `security` in handshakes that begin from now on. Open sessions, and what is under way
    /// in them, go on.
    pub fn set_security(&mut self, now: Instant, security: &Security) {
        self.sender.set_security(now, security);
        self.receiver.set_security(security);
    }

    /// Handles everything that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
        self.relay(now);
        self.receiver.handle_timeout(now);
        self.receiver.forget_idle_sessions(now, |peer, incarnation| {
            self.sender.last_heard(peer, incarnation)
        });
        self.sender.forget_idle_peers(now, |peer| self.receiver.holds(peer));
        self.calls.handle_timeout(now);
        self.watch(now);
    }

    /// Reports that the host did not send `transmit`. To the protocol, this is a loss like any
    /// other. If a message fails and nothing was sent since, its caller learns of the error.
    pub fn not_sent(&mut self, transmit: &Transmit, error: LocalError) {
        self.sender.not_sent(transmit, error);
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) is next due, or
    /// [`poll_transmit`](Self::poll_transmit) has something to send.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout_without_answers().into_iter().chain(self.receiver.next_transmit()).min()
    }

    /// [`poll_timeout`](Self::poll_timeout) for a driver that holds answers back for a while.
    pub(crate) fn poll_timeout_without_answers(&self) -> Option<Instant> {
        let parts =
            [self.sender.poll_timeout(), self.receiver.next_timer(), self.calls.poll_timeout()];
        parts.into_iter().flatten().min()
    }

    /// Asserts the invariants that hold between two inputs, for tests and fuzzers.
    ///
    /// # Panics
    ///
    /// If the state machines contradict themselves.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.sender.check_invariants();
        self.receiver.check_invariants();
        self.calls.check_invariants();
    }

    /// The counters so far.
    pub fn counters(&self) -> TransceiverCounters {
        TransceiverCounters {
            sender: self.sender.counters(),
            receiver: self.receiver.counters,
            calls: self.calls.counters(),
        }
    }

    /// The claimed source of the last handshake under none of this endpoint's keys, for logging.
    /// The address is not verified, and nothing was sent to it.
    pub fn refused_from(&self) -> Option<SocketAddr> {
        self.receiver.refused_from
    }

    /// The latencies so far: a copy of about 108 KB.
    pub fn latencies(&self) -> Latencies {
        Latencies {
            sent: self.sender.latencies().clone(),
            received: self.receiver.latencies.clone(),
            calls: self.calls.answered.clone(),
            requests: self.calls.served.clone(),
        }
    }

    /// The traffic with each peer that this endpoint remembers, ordered by address.
    pub fn peers(&self) -> Vec<PeerStats> {
        merge(self.sender.peers().collect(), self.receiver.peers().collect())
    }

    /// Bytes that messages being received may take at this moment.
    pub fn receive_memory(&self) -> usize {
        self.receiver.memory()
    }

    /// Messages that are waiting to be sent or under way, and connects that have not ended.
    pub fn unfinished(&self) -> usize {
        self.sender.unfinished()
    }

    /// Live counts of the paths to `peer`, by path number.
    pub fn paths(&self, peer: SocketAddr) -> &[PathStats] {
        self.sender.paths(peer)
    }
}
