//! Probing: what an unresponsive peer is sent, and what continues when it answers.

use super::liveness::Resume;
use super::recovery::probes;
use super::{Outgoing, Sender};
use crate::id::MessageId;
use crate::time::Instant;
use std::net::SocketAddr;

impl Sender {
    /// Pauses all messages to a peer that has not answered for long: they wait for probes from now
    /// on.
    pub(super) fn pause_all_of(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.liveness.set_unresponsive();
        for id in peer.unfinished() {
            self.pause(now, address, id);
        }
    }

    /// Pauses a message, which waits for probes from now on, unless its burst is endless.
    pub(super) fn pause(&mut self, now: Instant, address: SocketAddr, id: MessageId) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(Outgoing { transfer, .. }) = self.messages.get_mut(&id) else { return };
        if transfer.pause() {
            peer.liveness.waiting.set(id, Some(now));
        }
        self.reschedule(id);
    }

    /// Gives the peer's credit for probes to the messages that have waited for it longest.
    pub(super) fn probe_peer(&mut self, now: Instant, address: SocketAddr) {
        while let Some(peer) = self.peers.get_mut(&address) {
            let rto = peer.rtt.rto();
            let paths = peer.paths.len();
            let Some((id, credit)) = peer.liveness.next_probe(now, rto, paths) else { break };
            let Some(Outgoing { transfer, .. }) = self.messages.get_mut(&id) else { break };
            peer.liveness.waiting.remove(id);
            let granted = transfer.probe(now, peer.paths.all_healthy(), credit, probes(paths));
            peer.liveness.on_granted(granted);
            self.reschedule(id);
        }
        self.reschedule_peer(address);
    }

    /// Continues the messages that waited for this peer, which was heard from.
    pub(super) fn resume(&mut self, now: Instant, address: SocketAddr, which: Resume) {
        if which == Resume::None {
            return;
        }
        if which == Resume::All {
            self.end_connects_to(address);
        }
        let Some(peer) = self.peers.get(&address) else { return };
        let all_healthy = peer.paths.all_healthy();
        let ids = match which {
            Resume::None => Vec::new(),
            Resume::Waiting(ids) => ids,
            Resume::All => peer.unfinished(),
        };
        for id in ids {
            if let Some(Outgoing { transfer, .. }) = self.messages.get_mut(&id) {
                transfer.resume(now, all_healthy);
            }
            self.reschedule(id);
        }
    }
}
