//! What goes on the wire, and in which order: HELLOs, and symbols in paced scheduling quanta.

mod hello;
mod probe;
mod train;

pub(super) use self::probe::ProbeDue;
use self::probe::begins_paused;
use self::train::{Part, Train, TrainLimits};
use super::hellos::CheckId;
use super::{Outgoing, Quantum, Sender};
use crate::config::Parameters;
use crate::error::LocalError;
use crate::id::MessageId;
use crate::path::{SHORTEST_TRAIN, Via};
use crate::proto::observe::emit;
use crate::proto::{Contents, Marking, Transmit, marking};
use crate::time::Instant;
use core::time::Duration;
use std::net::SocketAddr;

/// How long a scheduling quantum may take at the allowed rate, except for the train that exceeds
/// it. Packets that become ready in the meantime wait that long, behind it and in the queue of this
/// host.
// With one train on each of 8 paths, whatever its time, a quantum is 3.8 ms at 100 Mb/s: p99 of 5
// KB is 8.9 ms under the paper's workload, and 6.2 with this limit.
const QUANTUM_TIME: Duration = Duration::from_micros(200);
/// The maximum number of bytes in a train: what one system call takes (a UDP datagram), less an
/// answer that leaves with it.
const MAX_TRAIN_BYTES: usize = 65_507 - 1_472;
/// The number of parts of trains that are remembered, in case the host does not take a train: those
/// of at least eight trains.
pub(super) const MAX_PARTS: usize = 512;
/// At a lowered rate, the least number of packets between two that request reports.
const REPORT_PACKETS: usize = 16;
/// Messages that are examined for one that fits a train.
const SEARCH_LIMIT: usize = 32;

/// Bytes of the IP and UDP headers that a packet on the wire has besides its payload.
pub(in crate::proto) const fn headers(via: &Via) -> usize {
    headers_to(&via.remote)
}

/// [`headers`] of a packet to, or from, an address.
pub(in crate::proto) const fn headers_to(remote: &SocketAddr) -> usize {
    if remote.is_ipv4() { 28 } else { 48 }
}

/// The marking of the packets that a message sends next.
fn marking_of(config: &Parameters, Outgoing { transfer, .. }: &Outgoing) -> Marking {
    marking::symbols(config, transfer.level(&config.classes), transfer.answered)
}

impl Sender {
    /// Fills `buffer`, which must be empty, with the next datagrams for one path.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        debug_assert!(buffer.is_empty());
        if let Some(transmit) = self.transmit_probe_due(now, buffer) {
            return Some(transmit);
        }
        // A quantum whose message has nothing more to send gives way to the next one.
        if let Some(quantum) = self.quantum.take()
            && let Some(transmit) = self.transmit_opportunity(now, quantum, buffer)
        {
            return Some(transmit);
        }
        if self.pacer.ready_at() > now {
            return None;
        }
        // HELLOs and retries go first, but not two in a row while other symbols wait.
        if !self.symbols_are_next
            && let Some(transmit) = self.transmit_liveness(now, buffer)
        {
            self.symbols_are_next = true;
            return Some(transmit);
        }
        self.symbols_are_next = false;
        match self.begin_quantum() {
            Some(quantum) => self.transmit_opportunity(now, quantum, buffer),
            None => self.transmit_liveness(now, buffer),
        }
    }

    /// Writes a packet that checks whether a peer answers: a HELLO, or a retry to an unresponsive
    /// peer.
    fn transmit_liveness(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.transmit_hello(now, buffer).or_else(|| self.transmit_retry(now, buffer))
    }

    /// Bytes on the wire that a packet by `via` has besides its payload.
    pub(super) fn overhead(&self, via: &Via) -> usize {
        headers(via) + self.resolver.overhead(*via)
    }

    /// Records that the host did not take `transmit`. To the protocol, this is a loss like any
    /// other. If a message fails and nothing was sent since, its caller learns of the error.
    pub(crate) fn not_sent(&mut self, transmit: &Transmit, error: LocalError) {
        match transmit.contents {
            Contents::Symbols { train } => {
                let mut too_long = None;
                for (_, id) in self.parts_sent.iter().filter(|(of, _)| *of == train) {
                    if let Some(Outgoing { transfer, .. }) = self.messages.get_mut(id)
                        && transfer.last_train == train
                    {
                        transfer.not_sent = Some((transfer.packets, error));
                        too_long = (error == LocalError::TooLarge).then_some(transfer.peer);
                    }
                }
                if let Some(peer) = too_long {
                    self.on_too_long(peer);
                }
            }
            Contents::Handshake(address) => {
                if let Some(peer) = self.peers.get_mut(&address) {
                    peer.not_sent = Some((peer.counts.handshakes_sent, error));
                }
            }
            Contents::Check { peer, nonce } => {
                if error == LocalError::TooLarge {
                    self.on_check_too_long(CheckId { peer, nonce });
                }
            }
            Contents::Answers => {}
        }
    }

    /// Writes the next train of a quantum.
    fn transmit_opportunity(
        &mut self,
        now: Instant,
        quantum: Quantum,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if !self.schedule.ranked.contains(quantum.message) {
            return None;
        }
        let transmit = self.transmit_train(now, quantum.message, buffer)?;
        // A quantum that takes long on the wire ends early, because other messages may be more
        // urgent by then.
        let is_long = self.pacer.ready_at() > now + QUANTUM_TIME;
        let trains = if is_long { 0 } else { quantum.trains - 1 };
        self.quantum = (trains > 0).then_some(Quantum { trains, ..quantum });
        Some(transmit)
    }

    /// Begins a quantum of the message that the schedule chooses.
    fn begin_quantum(&mut self) -> Option<Quantum> {
        let id = self.schedule.next()?;
        self.schedule.served(id);
        let Outgoing { transfer, .. } = self.messages.get(&id)?;
        let peer = self.peers.get(&transfer.peer)?;
        Some(Quantum { message: id, trains: peer.paths.len() })
    }

    /// Writes a train of `id` on the next path, with packets of other messages to the same peer if
    /// it has capacity.
    pub(super) fn transmit_train(
        &mut self,
        now: Instant,
        id: MessageId,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let report = self.limit_train(now, id);
        let limits = self.train_limits();
        let message = self.messages.get_mut(&id)?;
        let address = message.transfer.peer;
        let peer = self.peers.get_mut(&address)?;
        if message.transfer.is_busy() || begins_paused(message, peer) {
            return self.transmit_pause_probe(now, id, buffer);
        }
        // Until it is known that the receiver is listening, packets of other messages take
        // precedence (Aeolus).
        let marking = marking_of(&self.config, message);
        let (mut train, first) = Train::begin(now, message, peer, limits, marking, report)?;
        self.trains += 1;
        let mut wakes_peer = self.put_part(now, &train, first, id, buffer)?;
        while train.capacity > 0
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

    /// Applies the rate limit to a train of a message. Returns whether the train must request a report.
    fn limit_train(&mut self, now: Instant, id: MessageId) -> bool {
        let Some(limit) = &mut self.limit else { return false };
        let Some(Outgoing { transfer, .. }) = self.messages.get_mut(&id) else { return false };
        let Some(peer) = self.peers.get_mut(&transfer.peer) else { return false };
        let round_trip = peer.rtt.smoothed().unwrap_or_default();
        let begins = limit.on_train(now, peer.rtt.shortest());
        let report = limit.wants_reports() && transfer.report_at <= now;
        if report {
            let few = self.pacer.time_of(REPORT_PACKETS * self.config.usual_mtu());
            transfer.report_at = now + round_trip.max(few);
        }
        self.follow_limit(now);
        if begins {
            // Handshakes just before do not count.
            self.pacer.fill(now);
        }
        report
    }

    /// Remembers that the last train has packets of a message, in case the host does not take it.
    fn remember_part(&mut self, id: MessageId) {
        if self.parts_sent.len() == MAX_PARTS {
            self.parts_sent.pop_front();
        }
        self.parts_sent.push_back((self.trains, id));
    }

    /// How long a train may be: what one system call carries, and no more than the link sends
    /// within [`QUANTUM_TIME`].
    fn train_limits(&self) -> TrainLimits {
        let in_time =
            self.pacer.bytes_within(QUANTUM_TIME).max(SHORTEST_TRAIN * self.config.usual_mtu());
        TrainLimits { packets: self.config.train, bytes: in_time.min(MAX_TRAIN_BYTES) }
    }

    /// The next message to `peer` that has packets for the train, of those that are the most urgent.
    fn next_part(&mut self, peer: SocketAddr, train: &mut Train) -> Option<(MessageId, Part)> {
        let messages = &self.messages;
        let config = &self.config;
        let to = self.peers.get(&peer)?;
        let fits = |id: &MessageId| {
            messages.get(id).is_some_and(|message| {
                message.transfer.peer == peer
                    && !begins_paused(message, to)
                    && marking_of(config, message) == train.marking
                    && train.fits(message)
            })
        };
        // Several messages in a train: under load, trains carry ten messages of 5 KB, and there is
        // one call for ten messages.
        let id = self.schedule.most_urgent().take(SEARCH_LIMIT).find(fits)?;
        let part = train.join(self.messages.get_mut(&id)?, self.peers.get_mut(&peer)?)?;
        Some((id, part))
    }

    /// Puts one part of a train into `buffer`. Returns whether the peer must be woken at another
    /// time.
    fn put_part(
        &mut self,
        now: Instant,
        train: &Train,
        part: Part,
        id: MessageId,
        buffer: &mut Vec<u8>,
    ) -> Option<bool> {
        let message = self.messages.get_mut(&id)?;
        let peer = self.peers.get_mut(&message.transfer.peer)?;
        let requested = train.fill(now, part, message, peer, buffer)?;
        emit(&self.observer, || train.observation(part, message));
        let wakes_peer = train.account_for(now, part, message, peer, requested);
        if let Some(probe) = train.probe_due(&self.config, part, message) {
            self.probes_due.push_back(probe);
        }
        message.transfer.last_train = self.trains;
        if message.transfer.vanishes() {
            self.watch_vanishing(now, id);
        }
        self.remember_part(id);
        self.reschedule(id);
        Some(wakes_peer)
    }
}
