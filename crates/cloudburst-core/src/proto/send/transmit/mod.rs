//! What goes on the wire, and in which order: HELLOs, and symbols in paced scheduling quanta.

mod hello;
mod probe;
mod train;

pub(super) use self::probe::ProbeDue;
use self::train::{Limits, Part, Train};
use super::{Outgoing, Round, Sender};
use crate::config::Config;
use crate::error::LocalError;
use crate::id::MessageId;
use crate::path::{SHORTEST_TRAIN, Via};
use crate::proto::observe::tell;
use crate::proto::{Contents, Marking, Transmit, marking};
use crate::time::Instant;
use core::time::Duration;
use std::net::SocketAddr;

/// How long a scheduling quantum may take at the allowed rate, but for the train that exceeds it:
/// what comes up meanwhile waits as long, behind it and in the queue of this host.
const ROUND_TIME: Duration = Duration::from_micros(200);
/// Bytes in a train at most: what one system call takes (a UDP datagram), but for an answer that leaves
/// with it.
const MAX_TRAIN_BYTES: usize = 65_507 - 1_472;
/// Parts of trains that are remembered, for trains that the host does not take: those of eight trains at least.
pub(super) const MAX_PARTS: usize = 512;
/// Messages that are examined for one that goes with a train.
const LOOK_AHEAD: usize = 32;

/// IP and UDP headers, which a packet on the wire has beside its payload.
pub(in crate::proto) const fn headers(via: &Via) -> usize {
    headers_to(&via.remote)
}

/// [`headers`] of a packet to, or from, an address.
pub(in crate::proto) const fn headers_to(remote: &SocketAddr) -> usize {
    if remote.is_ipv4() { 28 } else { 48 }
}

/// The marking of what a message sends next.
fn marking_of(config: &Config, Outgoing { leg, .. }: &Outgoing) -> Marking {
    marking::symbols(config, leg.level(&config.classes), leg.answered)
}

impl Sender {
    /// Fills `buffer`, which must be empty, with the next datagrams for one path.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        debug_assert!(buffer.is_empty());
        if let Some(transmit) = self.transmit_probe_due(now, buffer) {
            return Some(transmit);
        }
        // A round whose message has nothing more to send gives way to the next one.
        if let Some(round) = self.round.take()
            && let Some(transmit) = self.transmit_turn(now, round, buffer)
        {
            return Some(transmit);
        }
        if self.pacer.ready_at() > now {
            return None;
        }
        // HELLOs and probes go first, but no two of them while other symbols wait.
        if !self.symbols_are_next
            && let Some(transmit) = self.transmit_liveness(now, buffer)
        {
            self.symbols_are_next = true;
            return Some(transmit);
        }
        self.symbols_are_next = false;
        match self.begin_round() {
            Some(round) => self.transmit_turn(now, round, buffer),
            None => self.transmit_liveness(now, buffer),
        }
    }

    /// What finds out whether a peer answers: a HELLO, or a probe of one that has not for long.
    fn transmit_liveness(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.transmit_hello(now, buffer).or_else(|| self.transmit_probe(now, buffer))
    }

    fn transmit_probe(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let id = self.schedule.next_probe()?;
        if self.probes.ready_at() > now {
            return None;
        }
        let transmit = self.transmit_train(now, id, buffer)?;
        let packets = transmit.len / transmit.segment_size;
        self.probes.charge(now, transmit.len + packets * self.overhead(&transmit.via));
        Some(transmit)
    }

    /// Bytes on the wire that a packet by `via` has beside its payload.
    fn overhead(&self, via: &Via) -> usize {
        headers(via) + self.path_map.overhead(*via)
    }

    /// The host has not taken what `transmit` was. To the protocol that is a loss like any other;
    /// if nothing was sent since when a message fails, its caller is told.
    pub(crate) fn not_sent(&mut self, transmit: &Transmit, error: LocalError) {
        match transmit.contents {
            Contents::Symbols { train } => {
                for (_, id) in self.parts_sent.iter().filter(|(of, _)| *of == train) {
                    if let Some(Outgoing { leg, .. }) = self.messages.get_mut(id)
                        && leg.last_train == train
                    {
                        leg.not_sent = Some((leg.packets, error));
                    }
                }
            }
            Contents::Hello(address) => {
                if let Some(peer) = self.peers.get_mut(&address) {
                    peer.not_sent = Some((peer.tally.handshakes_sent, error));
                }
            }
            Contents::Answers => {}
        }
    }

    /// The next train of a round.
    fn transmit_turn(
        &mut self,
        now: Instant,
        round: Round,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let transmit = self.transmit_train(now, round.message, buffer)?;
        // A round that takes long on the wire gives way early, to whatever is more urgent by then.
        let is_long = self.pacer.ready_at() > now + ROUND_TIME;
        let turns = if is_long { 0 } else { round.turns - 1 };
        self.round = (turns > 0).then_some(Round { turns, ..round });
        Some(transmit)
    }

    /// A round of the message whose turn it is.
    fn begin_round(&mut self) -> Option<Round> {
        let id = self.schedule.next_round()?;
        let Outgoing { leg, .. } = self.messages.get_mut(&id)?;
        self.schedule.passed(&mut leg.place, id);
        let peer = self.peers.get(&leg.peer)?;
        Some(Round { message: id, turns: peer.paths.len() })
    }

    /// A train of `id` on the next path, and of others to the same peer where it has room.
    fn transmit_train(
        &mut self,
        now: Instant,
        id: MessageId,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let limits = self.train_limits();
        let message = self.messages.get_mut(&id)?;
        let address = message.leg.peer;
        let peer = self.peers.get_mut(&address)?;
        // Until it is known that the receiver listens, others' packets go first (Aeolus).
        let marking = marking_of(&self.config, message);
        let (mut train, first) = Train::begin(now, message, peer, limits, marking)?;
        self.trains += 1;
        let mut wakes_peer = self.put_part(now, &train, first, id, buffer)?;
        while train.room > 0
            && let Some((next, part)) = self.next_part(address, &mut train)
        {
            wakes_peer |= self.put_part(now, &train, part, next, buffer)?;
        }
        let packets = buffer.len() / train.packet_len;
        self.counters.symbols_sent += packets as u64;
        self.counters.symbol_bytes_sent += buffer.len() as u64;
        self.pacer.charge(now, buffer.len() + packets * self.overhead(&train.via));
        if wakes_peer {
            self.reschedule_peer(address);
        }
        Some(Transmit {
            contents: Contents::Symbols { train: self.trains },
            via: train.via,
            segment_size: train.packet_len,
            len: buffer.len(),
            marking,
        })
    }

    /// How long a train may be: what one system call carries, and no more than the link sends meanwhile.
    fn train_limits(&self) -> Limits {
        let in_time = self.pacer.bytes_within(ROUND_TIME).max(SHORTEST_TRAIN * self.config.mtu);
        Limits { packets: self.config.train, bytes: in_time.min(MAX_TRAIN_BYTES) }
    }

    /// The next message to `peer` that has packets for the train, of those that are the most urgent.
    fn next_part(&mut self, peer: SocketAddr, train: &mut Train) -> Option<(MessageId, Part)> {
        let (messages, config) = (&self.messages, &self.config);
        let fits = |id: &MessageId| {
            messages.get(id).is_some_and(|message| {
                message.leg.peer == peer
                    && marking_of(config, message) == train.marking
                    && train.fits(message)
            })
        };
        let id = self.schedule.most_urgent().take(LOOK_AHEAD).find(fits)?;
        let part = train.join(self.messages.get_mut(&id)?, self.peers.get_mut(&peer)?)?;
        Some((id, part))
    }

    /// Puts one part of a train into `buffer`. Says whether the peer is to be woken at another time.
    fn put_part(
        &mut self,
        now: Instant,
        train: &Train,
        part: Part,
        id: MessageId,
        buffer: &mut Vec<u8>,
    ) -> Option<bool> {
        let message = self.messages.get_mut(&id)?;
        let peer = self.peers.get_mut(&message.leg.peer)?;
        let requested = train.fill(now, part, message, peer, buffer)?;
        tell(&self.observer, || train.observation(part, message));
        let wakes_peer = train.account_for(now, part, message, peer, requested);
        if let Some(probe) = train.probe_due(&self.config, part, message) {
            self.probes_due.push_back(probe);
        }
        message.leg.last_train = self.trains;
        if self.parts_sent.len() == MAX_PARTS {
            self.parts_sent.pop_front();
        }
        self.parts_sent.push_back((self.trains, id));
        self.reschedule(id);
        Some(wakes_peer)
    }
}
