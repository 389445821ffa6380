//! Retries: what a peer that does not answer is sent, and what continues when it does.

use super::liveness::Resume;
use super::{Outgoing, Sender};
use crate::id::MessageId;
use crate::proto::Transmit;
use crate::time::Instant;
use std::net::SocketAddr;

impl Sender {
    /// Gives the credit of a peer that is late to the messages that have waited for it longest.
    pub(super) fn grant_retries(&mut self, now: Instant, address: SocketAddr) {
        while let Some(peer) = self.peers.get_mut(&address)
            && peer.liveness.is_responsive()
            && let Some((id, credit)) = peer.liveness.take_retry()
            && let Some(Outgoing { transfer, .. }) = self.messages.get_mut(&id)
        {
            let limit = credit.min(peer.grant_limit(transfer));
            let granted = transfer.on_timeout(now, peer.paths.all_healthy(), limit);
            peer.liveness.on_granted(granted);
            self.watch_vanishing(now, id);
            self.reschedule(id);
        }
        self.reschedule_peer(address);
    }

    /// Writes one symbol to an unresponsive peer that may be sent one.
    pub(super) fn transmit_retry(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        while self.retries.ready_at() <= now {
            let address = self.retries_due.pop_first()?;
            let transmit =
                self.next_retry(now, address).and_then(|id| self.transmit_train(now, id, buffer));
            // Peers take turns.
            self.reschedule_peer(address);
            if let Some(transmit) = transmit {
                self.retries.charge(now, transmit.len + self.overhead(&transmit.via));
                return Some(transmit);
            }
        }
        None
    }

    /// The message to an unresponsive peer that sends one symbol now. Messages take turns.
    fn next_retry(&mut self, now: Instant, address: SocketAddr) -> Option<MessageId> {
        let peer = self.peers.get_mut(&address).filter(|peer| peer.liveness.is_unresponsive())?;
        let (id, _) = peer.liveness.take_retry()?;
        let Outgoing { transfer, .. } = self.messages.get_mut(&id)?;
        // A message that bursts, or has nothing to send, as it waits for a PULL, waits no longer.
        if transfer.is_endless() || !transfer.has_retry(now) {
            self.reschedule(id);
            return None;
        }
        peer.liveness.on_granted(1);
        peer.liveness.waiting.push_back(id);
        self.watch_vanishing(now, id);
        Some(id)
    }

    /// Continues the messages that waited for this peer, which was heard from.
    pub(super) fn resume(&mut self, now: Instant, address: SocketAddr, which: Resume) {
        if matches!(&which, Resume::Waiting(ids) if ids.is_empty()) {
            // As with most answers.
            return;
        }
        let all = which == Resume::All;
        if all {
            self.end_connects_to(address);
        }
        let Some(peer) = self.peers.get(&address) else { return };
        let all_healthy = peer.paths.all_healthy();
        let ids = match which {
            Resume::Waiting(ids) => ids,
            Resume::All => peer.unfinished(),
        };
        for id in ids {
            if let Some(Outgoing { transfer, .. }) = self.messages.get_mut(&id) {
                if all {
                    transfer.resume(all_healthy);
                } else {
                    transfer.on_timeout(now, all_healthy, u32::MAX);
                }
            }
            self.watch_vanishing(now, id);
            self.reschedule(id);
        }
    }
}
