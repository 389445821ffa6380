//! Both halves in one, for whoever drives them with one thread: tests, fuzzers, simulators.

use super::Transmit;
use super::receive::{Message, Receiver, ReceiverCounters, ReceiverEvent};
use super::send::{SendOptions, Sender, SenderCounters, SenderEvent};
use super::session::Identity;
use super::stats::{PeerStats, merge};
use crate::config::{Config, ConfigError, Security};
use crate::error::{LocalError, Outcome, SendError};
use crate::id::MessageId;
use crate::latency::LatencyHistogram;
use crate::path::{OrderError, PathMap, PathStats, Via};
use crate::rng::Seed;
use crate::time::Instant;
use crate::wire::{Kind, Role};
use bytes::Bytes;
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
    busy_poll: Duration,
}

/// What the application should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message came in. [Release](Endpoint::release) it when the application has taken it.
    Message(Message),
    /// A send ended.
    Ended(MessageId, Outcome),
}

/// What an endpoint has done and seen since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The sending half.
    pub sender: SenderCounters,
    /// The receiving half.
    pub receiver: ReceiverCounters,
}

/// How long an endpoint's messages took.
#[derive(Clone, Debug, Default, PartialEq)]
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
        let identity = Identity::new(security, seed);
        let path_map: Arc<dyn PathMap> = path_map.into();
        Ok(Self {
            busy_poll: config.busy_poll,
            sender: Sender::new(config.clone(), identity.clone(), path_map.clone()),
            receiver: Receiver::new(config, identity, path_map),
        })
    }

    /// The two halves, to be driven by two threads.
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    /// How long a thread that drives this should look for packets before it sleeps.
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
        self.send_as(now, peer, Role::Plain, bytes, options)
    }

    /// [`send`](Self::send) for a message that is a request or a response.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then.
    pub fn send_as(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        self.sender.send(now, peer, role, bytes, options)
    }

    /// Stops the burst of a message at once.
    pub fn cancel(&mut self, id: MessageId) {
        self.sender.cancel(id);
    }

    /// The application has taken a message of `bytes` bytes.
    pub fn release(&mut self, role: Role, bytes: usize) {
        self.receiver.release(role, bytes);
    }

    /// Uses other paths from now on. See [`Sender::set_path_map`].
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
        if is_for_receiver(packet) {
            self.receiver.handle_datagram(now, via, packet);
        } else {
            self.sender.handle_datagram(now, packet);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
    }

    /// Fills `buffer`, which must be empty, with the next datagrams for one path.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.receiver.poll_transmit(buffer).or_else(|| self.sender.poll_transmit(now, buffer))
    }

    /// The host has not taken what `transmit` was. See [`Sender::not_sent`].
    pub fn not_sent(&mut self, transmit: &Transmit, error: LocalError) {
        self.sender.not_sent(transmit, error);
    }

    /// The next thing that the application should know.
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        // What one half tells the other can make that one say more: ask again after each.
        loop {
            match self.sender.poll_event() {
                Some(SenderEvent::Ended(id, outcome)) => return Some(Event::Ended(id, outcome)),
                Some(SenderEvent::Opened(peering)) => {
                    self.receiver.adopt(now, peering);
                    continue;
                }
                None => {}
            }
            match self.receiver.poll_event()? {
                ReceiverEvent::Message(message) => return Some(Event::Message(message)),
                ReceiverEvent::Confirmed(peering) => self.sender.adopt(now, peering),
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.sender.poll_timeout(), self.receiver.poll_timeout()].into_iter().flatten().min()
    }

    /// What was done and seen so far.
    pub fn counters(&self) -> Counters {
        Counters { sender: *self.sender.counters(), receiver: *self.receiver.counters() }
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

    /// Messages that are waiting to be sent or under way.
    pub fn unfinished(&self) -> usize {
        self.sender.unfinished()
    }

    /// Live counts of the paths to `peer`, by path number.
    pub fn paths(&self, peer: SocketAddr) -> &[PathStats] {
        self.sender.paths(peer)
    }
}

/// Which half a datagram is for. Junk goes to the receiver, which counts it.
pub(crate) fn is_for_receiver(packet: &[u8]) -> bool {
    !matches!(
        Kind::of(packet),
        Ok(Kind::HelloAck
            | Kind::Stop
            | Kind::Status
            | Kind::Busy
            | Kind::Reject
            | Kind::Forgotten)
    )
}
