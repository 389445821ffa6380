//! Probes: packets without a symbol, which request a report on the symbols sent before them
//! (Aeolus), or ask a receiver that was busy whether it has capacity.

use crate::id::{MessageId, PathId};
use crate::path::{Opportunity, Via};
use crate::proto::observe::{Observation, emit};
use crate::proto::send::peer::Peer;
use crate::proto::send::{Outgoing, Sender, ends_call};
use crate::proto::{Contents, Transmit, marking};
use crate::time::Instant;
use crate::wire::{Kind, Prefix};

/// A probe that is to follow the last packets of a block.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto::send) struct ProbeDue {
    pub(super) message: MessageId,
    pub(super) block: u32,
    /// The path and the route of those packets.
    pub(super) path: PathId,
    pub(super) via: Via,
}

/// Whether a message to `peer` begins with a probe, because others wait until the peer has capacity.
// Its symbols would be refused as well. Responses and withdrawals never wait for the application.
pub(super) fn begins_paused(Outgoing { source, transfer }: &Outgoing, peer: &Peer) -> bool {
    !peer.paused.is_empty() && transfer.is_unbegun() && !ends_call(source.role)
}

impl Sender {
    /// Writes the next probe that is due. It does not wait for the pacer, because it belongs to
    /// packets that were just sent.
    pub(super) fn transmit_probe_due(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        while let Some(due) = self.probes_due.pop_front() {
            // The block may be done by now, or the session replaced.
            let sent = self.transmit_probe(now, due, buffer);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// Writes the probe of a paused message. Nothing else of it is sent.
    pub(super) fn transmit_pause_probe(
        &mut self,
        now: Instant,
        id: MessageId,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let Outgoing { source, transfer } = self.messages.get_mut(&id)?;
        let peer = self.peers.get_mut(&transfer.peer)?;
        if transfer.is_unbegun() {
            let key = &peer.session.as_ref()?.digest;
            transfer.block_to_send(source, key, &peer.paths)?;
            transfer.begin_paused(now);
            peer.paused.insert(id);
        }
        let block = transfer.take_probe();
        self.trains += 1;
        transfer.last_train = self.trains;
        let Opportunity { path, via, .. } = peer.paths.take_any_opportunity(1);
        self.remember_part(id);
        let due = block.map(|block| ProbeDue { message: id, block, path, via });
        let sent = due.and_then(|due| self.transmit_probe(now, due, buffer));
        self.reschedule(id);
        sent
    }

    fn transmit_probe(
        &mut self,
        now: Instant,
        due: ProbeDue,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.write_probe(now, due, buffer)?;
        let ProbeDue { message, block, path, via } = due;
        let len = buffer.len();
        self.counters.probes_sent += 1;
        if self.observer.is_some()
            && let Some(Outgoing { transfer, .. }) = self.messages.get(&message)
        {
            let probe = || Observation::ProbeSent { peer: transfer.peer, message, block, path };
            emit(&self.observer, probe);
        }
        self.pacer.charge(now, len + self.overhead(&via));
        let contents = Contents::Symbols { train: self.trains };
        let marking = marking::control(&self.config);
        Some(Transmit { contents, via, segment_size: len, len, marking })
    }

    fn write_probe(&mut self, now: Instant, due: ProbeDue, buffer: &mut Vec<u8>) -> Option<()> {
        let Outgoing { source, transfer } = self.messages.get_mut(&due.message)?;
        let peer = self.peers.get_mut(&transfer.peer).filter(|peer| peer.liveness.is_verified())?;
        let low_watermark = peer.low_watermark().unwrap_or(source.id);
        let session = peer.session.as_mut()?;
        let partial = transfer.is_partial();
        let is_final = transfer.is_given_up();
        let is_paused = transfer.is_busy();
        let block = transfer.block_mut(due.block)?;
        let number = session.sealer.next_number();
        let mut header = source.symbol_header(source.block(due.block)?, low_watermark);
        header.symbol = block.recovery.sent();
        let unscheduled = block.recovery.unscheduled();
        header.unscheduled = unscheduled.unwrap_or(0).try_into().unwrap_or(u16::MAX);
        let prefix = Prefix {
            kind: Kind::Symbol,
            ack_request: true,
            partial,
            again: false,
            pulled: unscheduled.is_some(),
            probe: true,
            is_final,
            role: source.role,
            class: marking::control(&self.config).class.0,
            path: due.path,
            session: session.sealer.session(),
            number,
        };
        header.write(&prefix, session.header_key.as_ref(), &[], buffer);
        let len = buffer.len();
        session.sealer.seal(buffer, 0, len);
        block.recovery.on_probe_sent(now, number);
        transfer.on_first_sent(now, number);
        if is_paused {
            // Its answer shows that the peer lives, which no answer to a symbol does.
            peer.rtt.on_sent(now, number, due.path);
        }
        let address = transfer.peer;
        if peer.liveness.on_ack_request(now) {
            self.reschedule_peer(address);
        }
        Some(())
    }
}
