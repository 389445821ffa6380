//! A packet train: packets of equal length, back to back on one path. They are symbols of one
//! message, or of several to the same peer.

use super::probe::ProbeDue;
use crate::config::Parameters;
use crate::id::PathId;
use crate::path::{Opportunity, SHORTEST_TRAIN, Via};
use crate::proto::observe::Observation;
use crate::proto::send::Outgoing;
use crate::proto::send::peer::Peer;
use crate::proto::send::recovery::PERSISTENT;
use crate::proto::send::source::SourceBlock;
use crate::proto::{Class, Marking};
use crate::time::Instant;
use crate::wire::keys::HeaderKey;
use crate::wire::seal::Sealer;
use crate::wire::{Capabilities, Kind, Prefix, SymbolHeader};

/// The path of a train, and what all of its packets have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    path: PathId,
    pub(super) via: Via,
    /// Bytes of each packet.
    pub(super) packet_len: usize,
    pub(super) marking: Marking,
    /// The number of packets that it still has capacity for.
    pub(super) capacity: usize,
    /// The peer's capabilities beyond this version.
    capabilities: Capabilities,
}

/// Symbols of one block in a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    block: u32,
    pub(super) packets: usize,
    /// Whether they follow an RTO, or the peer is unresponsive.
    is_retry: bool,
    /// Whether they probe the path, besides the symbols that the block was granted.
    probe: bool,
    /// Whether the last one requests a report for the rate's sake.
    report: bool,
}

/// How long a train may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrainLimits {
    pub(super) packets: usize,
    /// Bytes of all its packets.
    pub(super) bytes: usize,
}

impl Train {
    /// The next train of a message, and its first part. Begins a block if necessary.
    pub(super) fn begin(
        now: Instant,
        Outgoing { source, transfer }: &mut Outgoing,
        peer: &mut Peer,
        limits: TrainLimits,
        marking: Marking,
        report: bool,
    ) -> Option<(Self, Part)> {
        let retry = !peer.lets_burst(transfer);
        let session = peer.session.as_ref()?;
        let capabilities = session.capabilities;
        let digest = &session.digest;
        let index = transfer.block_to_send(source, digest, &peer.paths)?.index;
        let packet_len = transfer.packet_len(source, index, capabilities)?;
        let block = transfer.block_mut(index)?;
        let longest = (limits.bytes / packet_len).clamp(1, limits.packets);
        let ready = if retry { 1 } else { block.recovery.allowance() as usize };
        let unanswered = block.recovery.unanswered();
        let Opportunity { path, via, packets, capacity, probe } =
            take_opportunity(now, peer, ready, longest, unanswered);
        if probe {
            // On top of the block's symbols, so that a message of one packet is not lost with its
            // path. It requests an ACK, so that the path's fate does not wait for the message.
            block.recovery.grant_extra();
        }
        // Packets that follow an RTO are sent alone, because little is known of the path.
        let is_retry = retry || unanswered > 0;
        let capacity = if is_retry { 0 } else { capacity };
        let part = Part { block: block.index, packets, is_retry, probe, report };
        Some((Self { path, via, packet_len, marking, capacity, capabilities }, part))
    }

    /// Its class, counted from the most urgent class of symbols.
    const fn level(&self) -> u8 {
        self.marking.class.0 - Class::DATA.0
    }

    /// Whether packets of a message are as long as those of the train.
    pub(super) fn fits(&self, Outgoing { source, transfer }: &Outgoing) -> bool {
        // Checked without beginning a block, because a block that has begun must be sent in this
        // session.
        let block = transfer.next_block();
        block.and_then(|block| transfer.packet_len(source, block, self.capabilities))
            == Some(self.packet_len)
    }

    /// What a message that [fits](Self::fits) adds to the train. Begins a block if necessary.
    pub(super) fn join(
        &mut self,
        Outgoing { source, transfer }: &mut Outgoing,
        peer: &mut Peer,
    ) -> Option<Part> {
        let key = &peer.session.as_ref()?.digest;
        let block = transfer.block_to_send(source, key, &peer.paths)?;
        let packets = self.capacity.min(block.recovery.allowance() as usize);
        self.capacity -= packets;
        peer.paths.charge_more(self.path, packets);
        Some(Part { block: block.index, packets, is_retry: false, probe: false, report: false })
    }

    /// Puts the sealed packets of a part into `buffer`. Returns whether any of them requests an ACK
    /// for the block.
    pub(super) fn fill(
        &self,
        now: Instant,
        part: Part,
        Outgoing { source, transfer }: &mut Outgoing,
        peer: &mut Peer,
        buffer: &mut Vec<u8>,
    ) -> Option<bool> {
        let low_watermark = peer.low_watermark().unwrap_or(source.id);
        let partial = transfer.is_partial();
        let block = transfer.block_mut(part.block)?;
        let encoded = source.block(part.block)?;
        let session = peer.session.as_mut()?;
        let mut header = source.symbol_header(encoded, low_watermark);
        let mut requested = false;
        for place in 1..=part.packets {
            let number = session.sealer.next_number();
            header.symbol = block.next_symbol();
            header.path_number = peer.paths.next_number(self.path, self.level());
            let unscheduled = block.recovery.unscheduled();
            header.unscheduled = unscheduled.unwrap_or(0).try_into().unwrap_or(u16::MAX);
            let requests_ack = block.recovery.on_sent(now, number, peer.rtt.rto());
            requested |= requests_ack;
            // Receivers that pull report without requests.
            let reports = part.report && place == part.packets && unscheduled.is_none();
            let prefix = Prefix {
                kind: Kind::Symbol,
                ack_request: requests_ack || part.probe || reports,
                partial,
                again: block.recovery.unanswered() >= PERSISTENT,
                pulled: unscheduled.is_some(),
                probe: false,
                is_final: false,
                role: source.role,
                class: self.marking.class.0,
                path: self.path,
                session: session.sealer.session(),
                number,
            };
            let key = session.header_key.as_ref();
            seal(buffer, &prefix, &header, key, encoded, &mut session.sealer);
            peer.rtt.on_sent(now, number, self.path);
        }
        Some(requested)
    }

    /// The observation of a part that was put into the train.
    pub(super) fn observation(
        &self,
        part: Part,
        Outgoing { source, transfer }: &mut Outgoing,
    ) -> Observation {
        let next = transfer.block_mut(part.block).map_or(0, |block| block.next_symbol());
        Observation::TrainSent {
            peer: transfer.peer,
            message: source.id,
            block: part.block,
            path: self.path,
            first_symbol: next.wrapping_sub(part.packets as u32),
            packets: part.packets,
            retry: part.is_retry,
        }
    }

    /// The probe that follows this part, if the part ends the opening of a block.
    pub(super) fn probe_due(
        &self,
        config: &Parameters,
        part: Part,
        Outgoing { source, transfer }: &mut Outgoing,
    ) -> Option<ProbeDue> {
        let ends = transfer.block_mut(part.block)?.recovery.ends_opening(config.probe);
        let Self { path, via, .. } = *self;
        ends.then_some(ProbeDue { message: source.id, block: part.block, path, via })
    }

    /// Records a part with its message and its peer. `requested` says that it requests an ACK.
    /// Returns whether the peer must be woken at another time because of it.
    pub(super) fn account_for(
        &self,
        now: Instant,
        part: Part,
        Outgoing { transfer, .. }: &mut Outgoing,
        peer: &mut Peer,
        requested: bool,
    ) -> bool {
        let next = peer.session.as_ref().map_or(0, |session| session.sealer.next_number());
        transfer.on_sent(now, self.path, self.level(), part.packets, next);
        peer.counts.symbols_sent += part.packets as u64;
        peer.counts.retries += if part.is_retry { part.packets as u64 } else { 0 };
        // An answer is due from the first ACK request on.
        requested && peer.liveness.on_ack_request(now)
    }
}

/// The path that a train takes, and how many of the `ready` packets it carries.
fn take_opportunity(
    now: Instant,
    peer: &mut Peer,
    ready: usize,
    longest: usize,
    unanswered: u32,
) -> Opportunity {
    // A few symbols take many paths rather than one, which may be dead.
    let few = (ready / peer.paths.len()).clamp(1, SHORTEST_TRAIN.min(longest));
    // After an RTO, all that is known of the paths may be wrong; after several, few may be alive.
    match unanswered {
        0 => peer.paths.take_opportunity(now, few, ready, longest),
        1..PERSISTENT => peer.paths.take_any_opportunity(few),
        PERSISTENT.. => peer.paths.take_recent_opportunity(few),
    }
}

/// Appends one packet to `buffer`: header, index set and payload, sealed.
fn seal(
    buffer: &mut Vec<u8>,
    prefix: &Prefix,
    header: &SymbolHeader,
    header_key: Option<&HeaderKey>,
    block: &SourceBlock,
    sealer: &mut Sealer,
) {
    let start = buffer.len();
    let n = block.encoder.shape().source_symbols();
    let blank_index_set = &[0; 16][..block.encoder.code().index_set_len(n)];
    header.write(prefix, header_key, blank_index_set, buffer);
    let payload_at = buffer.len() - start;
    buffer.resize(buffer.len() + usize::from(header.symbol_size), 0);
    let (head, payload) = buffer[start..].split_at_mut(payload_at);
    let index_set = &mut head[payload_at - blank_index_set.len()..];
    block.encoder.encode(header.symbol, index_set, payload);
    sealer.seal(buffer, start, payload_at);
}
