//! A packet train: symbols of one block, back to back on one path.

use crate::id::PathId;
use crate::path::{Opportunity, Via};
use crate::proto::marking::Class;
use crate::proto::send::Outgoing;
use crate::proto::send::leg::LegBlock;
use crate::proto::send::peer::Peer;
use crate::proto::send::source::{Source, SourceBlock};
use crate::time::Instant;
use crate::wire::seal::Sealer;
use crate::wire::symbol::NO_AGE;
use crate::wire::{Kind, Prefix, SymbolHeader};

/// Grants in a row without an answer that are no bad luck any more.
const LASTING: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    pub(super) path: PathId,
    pub(super) via: Via,
    pub(super) packets: usize,
    /// It follows a silence.
    is_retry: bool,
    block: u32,
    /// It finds out about a path, and is on top of what the block was granted.
    probe: bool,
}

impl Train {
    /// The next train of a message, of at most `longest` packets; begins a block where that is
    /// needed.
    pub(super) fn choose(
        now: Instant,
        Outgoing { source, leg }: &mut Outgoing,
        peer: &mut Peer,
        longest: usize,
    ) -> Option<Self> {
        if !leg.is_ready() || !peer.usable {
            return None;
        }
        let held = leg.held();
        let key = &peer.session.as_ref()?.digest;
        let block = leg.turn(source, key, peer.paths.len())?;
        let ready = block.recovery.allowance().min(held) as usize;
        let unanswered = block.recovery.unanswered();
        let opportunity = take_opportunity(now, peer, ready, longest, unanswered);
        if opportunity.probe {
            block.recovery.spare();
        }
        Some(Self {
            path: opportunity.path,
            via: opportunity.via,
            packets: opportunity.packets,
            is_retry: unanswered > 0,
            block: block.index,
            probe: opportunity.probe,
        })
    }

    /// Puts the sealed packets into `buffer`. Says whether any of them requests an ACK of the
    /// block.
    pub(super) fn fill(
        &self,
        now: Instant,
        Outgoing { source, leg }: &mut Outgoing,
        peer: &mut Peer,
        buffer: &mut Vec<u8>,
    ) -> Option<bool> {
        let low_watermark = peer.low_watermark().unwrap_or(source.id);
        let partial = leg.is_partial();
        let (block, encoded) = (leg.block_mut(self.block)?, source.block(self.block)?);
        let session = peer.session.as_mut()?;
        let mut header = header(source, encoded, low_watermark.0);
        let mut requested = false;
        for _ in 0..self.packets {
            let number = session.sealer.next_number();
            header.symbol = block.next_symbol();
            header.path_number = peer.paths.next_number(self.path);
            let prefix = self.prefix(source, block, &session.sealer, partial);
            seal(buffer, &prefix, &header, encoded, &mut session.sealer);
            requested |= block.recovery.requests_ack();
            peer.rtt.on_sent(now, number, self.path);
            block.recovery.on_sent(now, number, peer.rtt.rto());
        }
        Some(requested)
    }

    /// Books the train with its message and its peer; `requested`: it requests an ACK. Says whether
    /// the peer is to be woken at another time because of it.
    pub(super) fn account_for(
        &self,
        now: Instant,
        Outgoing { source, leg }: &mut Outgoing,
        peer: &mut Peer,
        requested: bool,
    ) -> bool {
        leg.on_sent(now, self.path, self.packets);
        peer.tally.symbols_sent += self.packets as u64;
        peer.tally.retries += if self.is_retry { self.packets as u64 } else { 0 };
        // An answer is due from the first question on.
        let falls_silent = requested && peer.silence.on_asked(now);
        let waits = leg.on_probed(self.packets);
        if waits {
            peer.silence.push_again(now, &mut leg.probe_key, source.id);
        }
        falls_silent || waits
    }

    fn prefix(&self, source: &Source, block: &LegBlock, sealer: &Sealer, partial: bool) -> Prefix {
        Prefix {
            kind: Kind::Symbol,
            ack_request: block.recovery.requests_ack() || self.probe,
            partial,
            again: block.recovery.unanswered() >= LASTING,
            role: source.role,
            class: Class::DATA.0,
            path: self.path,
            session: sealer.session(),
            number: sealer.next_number(),
        }
    }
}

/// The path that a train goes on, and how many packets of `ready` it has.
fn take_opportunity(
    now: Instant,
    peer: &mut Peer,
    ready: usize,
    longest: usize,
    unanswered: u32,
) -> Opportunity {
    // A few symbols go over many paths rather than many over one, if that may be dead.
    let many = ready.min(longest).max(1);
    let few = (ready / peer.paths.len()).clamp(1, many);
    // After silence, all that is known of the paths may be wrong; if it lasts, few may be alive.
    match unanswered {
        0 => peer.paths.take_opportunity(now, few, many),
        1..LASTING => peer.paths.take_any_opportunity(few),
        LASTING.. => peer.paths.take_hopeful_opportunity(few),
    }
}

/// What all symbols of a block have in common, where `low_watermark` is the oldest unfinished
/// message.
fn header(source: &Source, block: &SourceBlock, low_watermark: u64) -> SymbolHeader {
    let age = source.id.0.saturating_sub(low_watermark);
    SymbolHeader {
        path_number: 0,
        message: source.id,
        length: source.layout.length() as u32,
        age: u32::try_from(age).map_or(NO_AGE, |age| age.min(NO_AGE)),
        block: block.index,
        symbol: 0,
        symbol_size: source.layout.symbol_size() as u16,
        code: source.code.to_wire(),
    }
}

/// Appends one packet to `buffer`: header, index set and payload, sealed.
fn seal(
    buffer: &mut Vec<u8>,
    prefix: &Prefix,
    header: &SymbolHeader,
    block: &SourceBlock,
    sealer: &mut Sealer,
) {
    let start = buffer.len();
    let n = block.encoder.shape().source_symbols();
    let blank_index_set = &[0; 16][..block.encoder.code().index_set_len(n)];
    header.write(prefix, blank_index_set, buffer);
    let payload_at = buffer.len() - start;
    buffer.resize(buffer.len() + usize::from(header.symbol_size), 0);
    let (head, payload) = buffer[start..].split_at_mut(payload_at);
    let index_set = &mut head[payload_at - blank_index_set.len()..];
    block.encoder.encode(header.symbol, index_set, payload);
    sealer.seal(buffer, start, payload_at);
}
