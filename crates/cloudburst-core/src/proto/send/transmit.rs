//! What goes on the wire, and in which order: handshakes at once, symbols in paced rounds.

use super::hellos::HelloRank;
use super::{Outgoing, Round, Sender};
use crate::error::LocalError;
use crate::id::{MessageId, SessionId};
use crate::path::{Turn, Via};
use crate::proto::{Contents, Transmit, marking};
use crate::time::Instant;
use crate::wire::{Hello, Kind, Prefix, SymbolHeader};
use core::time::Duration;
use std::net::SocketAddr;

/// Grants in a row without an answer that are no bad luck any more.
const LASTING: u32 = 3;

/// How long a round may take at the allowed rate, but for the turn that exceeds it: what comes up
/// meanwhile waits as long, behind it and in the queue of this host.
const ROUND_TIME: Duration = Duration::from_micros(200);

/// IP and UDP headers, which a packet on the wire has beside its payload.
const fn headers(via: &Via) -> usize {
    if via.remote.is_ipv4() { 28 } else { 48 }
}

impl Sender {
    /// Fills `buffer`, which must be empty, with the next datagrams for one path.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        debug_assert!(buffer.is_empty());
        // A round whose message has nothing more to send gives way to the next one.
        if let Some(round) = self.round.take()
            && let Some(transmit) = self.transmit_turn(now, round, buffer)
        {
            return Some(transmit);
        }
        if self.pacer.ready_at() > now {
            return None;
        }
        // HELLOs go first, but no two of them while symbols wait.
        if !self.hello_was_last
            && let Some(transmit) = self.transmit_hello(now, buffer)
        {
            self.hello_was_last = true;
            return Some(transmit);
        }
        self.hello_was_last = false;
        match self.begin_round() {
            Some(round) => self.transmit_turn(now, round, buffer),
            None => self.transmit_hello(now, buffer),
        }
    }

    /// The host has not taken what `transmit` was. To the protocol that is a loss like any other; if
    /// nothing was sent since when a message fails, its caller is told.
    pub fn not_sent(&mut self, transmit: &Transmit, error: LocalError) {
        match transmit.contents {
            Contents::Symbols(id) => {
                if let Some(message) = self.messages.get_mut(&id) {
                    message.leg.not_sent = Some((message.leg.packets, error));
                }
            }
            Contents::Hello(address) => {
                if let Some(peer) = self.peers.get_mut(&address) {
                    peer.not_sent = Some((peer.tally.hellos_sent, error));
                }
            }
            Contents::Answers => {}
        }
    }

    pub(super) fn transmit_turn(
        &mut self,
        now: Instant,
        round: Round,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let transmit = self.transmit_run(now, round.message, buffer)?;
        // A round that takes long on the wire gives way early, to whatever is more urgent by then.
        let is_long = self.pacer.ready_at() > now + ROUND_TIME;
        let turns = if is_long { 0 } else { round.turns - 1 };
        self.round = (turns > 0).then_some(Round { turns, ..round });
        Some(transmit)
    }

    pub(super) fn begin_round(&mut self) -> Option<Round> {
        let id = self.schedule.next_round()?;
        let Outgoing { leg, .. } = self.messages.get_mut(&id)?;
        self.schedule.passed(&mut leg.place, id);
        let peer = self.peers.get(&leg.peer)?;
        Some(Round { message: id, turns: peer.paths.len() })
    }

    /// One run of packets of `id` on the next path.
    pub(super) fn transmit_run(
        &mut self,
        now: Instant,
        id: MessageId,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let Outgoing { source, leg } = self.messages.get_mut(&id)?;
        let peer = self.peers.get_mut(&leg.peer)?;
        if !leg.is_ready() || !peer.usable {
            return None;
        }
        let (layout, code, role) = (source.layout, source.code, source.role);
        let length = layout.length() as u64;
        let floor = peer.floor().unwrap_or(id);
        let age = u32::try_from(id.0.saturating_sub(floor.0)).unwrap_or(u32::MAX);
        let symbol_size = layout.symbol_size();

        let session = peer.session.as_mut()?;
        let partial = leg.is_partial();
        // Until it is known that the receiver listens, others' packets go first (Aeolus).
        let marking = marking::symbols(&self.config, leg.answered);
        let held = leg.held();
        let block = leg.turn(source, &session.digest, peer.paths.len())?;
        let encoded = source.block(block.index)?;
        // A few symbols go over many paths rather than many over one, if that may be dead.
        let ready = block.recovery.allowance().min(held) as usize;
        let run = ready.min(self.config.run).max(1);
        let few = (ready / peer.paths.len()).clamp(1, run);
        // After silence, all that is known of the paths may be wrong; if it lasts, few may be
        // alive.
        let unanswered = block.recovery.unanswered();
        let turn = match unanswered {
            0 => peer.paths.take_turn(now, few, run),
            1..LASTING => peer.paths.take_any_turn(few),
            LASTING.. => peer.paths.take_hopeful_turn(few),
        };
        let Turn { path, via, packets: run, probe } = turn;
        if probe {
            block.recovery.spare();
        }
        let n = encoded.encoder.shape().source_symbols();
        let blank_index_set = &[0; 16][..code.index_set_len(n)];
        let mut asked = false;
        for _ in 0..run {
            let start = buffer.len();
            let number = session.sealer.next_number();
            let symbol = block.next_symbol();
            let prefix = Prefix {
                kind: Kind::Symbol,
                ask: block.recovery.requests_ack() || probe,
                partial,
                again: block.recovery.unanswered() >= LASTING,
                role,
                path,
                session: session.sealer.session(),
                number,
            };
            let header = SymbolHeader {
                message: id,
                length,
                age,
                block: block.index,
                symbol,
                symbol_size: symbol_size as u16,
                code: code.to_wire(),
                digest: encoded.digest,
            };
            header.write(&prefix, blank_index_set, buffer);
            let payload_at = buffer.len() - start;
            buffer.resize(buffer.len() + symbol_size, 0);
            let (head, payload) = buffer[start..].split_at_mut(payload_at);
            let index_set = &mut head[payload_at - blank_index_set.len()..];
            encoded.encoder.encode(symbol, index_set, payload);
            session.sealer.seal(buffer, start, payload_at);
            peer.rtt.on_sent(now, number, path);
            asked |= block.recovery.requests_ack();
            block.recovery.on_sent(now, number, peer.rtt.wait());
        }
        let segment_size = buffer.len() / run;
        leg.on_sent(now, path, run);
        peer.tally.symbols_sent += run as u64;
        peer.tally.retries += if unanswered > 0 { run as u64 } else { 0 };
        // An answer is due from the first question on.
        let newly_silent = asked && peer.silence.on_asked(now);
        let waits = leg.on_probed(run);
        if waits {
            peer.silence.push_again(now, &mut leg.probe_key, id);
        }
        let address = leg.peer;

        self.counters.symbols_sent += run as u64;
        self.counters.symbol_bytes_sent += buffer.len() as u64;
        let overhead = headers(&via) + self.path_map.overhead(via);
        self.pacer.charge(now, buffer.len() + run * overhead);
        self.reschedule(id);
        if newly_silent || waits {
            self.reschedule_peer(address);
        }
        Some(Transmit {
            contents: Contents::Symbols(id),
            via,
            segment_size,
            len: buffer.len(),
            marking,
        })
    }

    /// The peer whose HELLO may go now.
    fn next_hello(&mut self, now: Instant) -> Option<(HelloRank, SocketAddr)> {
        while self.hellos.ready_at()? <= now {
            let (rank, address) = self.hellos.next()?;
            let waited_for = self.peers.get(&address).is_some_and(|peer| !peer.is_idle());
            if waited_for || !rank.is_retry() {
                return Some((rank, address));
            }
            // Whoever wanted to talk to it has given up meanwhile.
            self.end_handshake(address);
        }
        None
    }

    pub(super) fn transmit_hello(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let (rank, address) = self.next_hello(now)?;
        let peer = self.peers.get_mut(&address)?;
        let opening = peer.opening.as_mut()?;
        // Each attempt takes another path: the last may have led through a black hole. Of
        // several ports only the first is asked: the peer may be back without the others.
        let port = peer.port;
        let first = |via: &Via| via.remote.port() == port;
        let Turn { path, mut via, .. } = peer.paths.take_any_turn_of(first);
        via.remote.set_port(opening.port);
        opening.on_sent(now, path);
        if opening.attempt_to_send().is_none() {
            self.hellos.set(&mut peer.hello_key, None, address);
        }
        let current = peer.session.as_ref().map_or(SessionId(0), |s| s.sealer.session());
        let hello = Hello {
            path,
            initiator: self.identity.incarnation,
            nonce: opening.nonce,
            port: self.config.port,
            current,
            more_ports: (self.config.ports - 1) as u8,
        };
        hello.write(&self.identity.hello_key, buffer);
        self.counters.hellos_sent += 1;
        peer.tally.hellos_sent += 1;
        let on_the_wire = buffer.len() + headers(&via) + self.path_map.overhead(via);
        self.pacer.charge(now, on_the_wire);
        self.hellos.on_sent(now, rank, on_the_wire);
        self.reschedule_peer(address);
        let (len, marking) = (buffer.len(), marking::control(&self.config));
        Some(Transmit { contents: Contents::Hello(address), via, segment_size: len, len, marking })
    }
}
