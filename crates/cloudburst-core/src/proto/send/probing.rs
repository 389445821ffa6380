//! Probing: what a silent peer is sent, and what continues when it answers.

use super::recovery::probes;
use super::silence::GoOn;
use super::{Outgoing, Sender};
use crate::id::MessageId;
use crate::time::Instant;
use std::net::SocketAddr;

impl Sender {
    /// Holds all messages to a peer that has not answered for long: they wait for probes from now
    /// on.
    pub(super) fn hold_all_of(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.silence.set_lasting();
        for id in peer.unfinished() {
            self.hold(now, address, id);
        }
    }

    /// Holds a message, which waits for probes from now on.
    pub(super) fn hold(&mut self, now: Instant, address: SocketAddr, id: MessageId) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(Outgoing { leg, .. }) = self.messages.get_mut(&id) else { return };
        leg.hold();
        peer.silence.push(now, &mut leg.probe_key, id);
        self.reschedule(id);
    }

    /// Gives the peer's credit for probes to the messages that have waited for it longest.
    pub(super) fn probe_peer(&mut self, now: Instant, address: SocketAddr) {
        while let Some(peer) = self.peers.get_mut(&address) {
            let (wait, paths) = (peer.rtt.rto(), peer.paths.len());
            let Some((id, credit)) = peer.silence.next_probe(now, wait, paths) else { break };
            let Some(Outgoing { leg, .. }) = self.messages.get_mut(&id) else { break };
            peer.silence.remove(&mut leg.probe_key, id);
            let granted = leg.probe(now, peer.paths.all_well(), credit, probes(paths));
            peer.silence.on_granted(granted);
            self.reschedule(id);
        }
        self.reschedule_peer(address);
    }

    /// Continues the messages that waited for this peer, which was heard from.
    pub(super) fn go_on(&mut self, now: Instant, address: SocketAddr, which: GoOn) {
        if which == GoOn::None {
            return;
        }
        if which == GoOn::All {
            self.end_connects_to(address);
        }
        let Some(peer) = self.peers.get(&address) else { return };
        let all_well = peer.paths.all_well();
        let ids = match which {
            GoOn::None => Vec::new(),
            GoOn::Waiting(ids) => ids,
            GoOn::All => peer.unfinished(),
        };
        for id in ids {
            if let Some(Outgoing { leg, .. }) = self.messages.get_mut(&id) {
                leg.go_on(now, all_well);
            }
            self.reschedule(id);
        }
    }
}
