//! Invariants that hold between any two calls of a sender.

use super::connects::Connect;
use super::peer::Peer;
use super::{Outgoing, Sender, Timer};
use crate::id::{ConnectId, MessageId};
use std::net::SocketAddr;

impl Sender {
    /// Checks what must hold between any two calls: that totals are the sums of their parts,
    /// that queues and maps agree with the messages, connects and peers in them, that each message
    /// that may be sent is scheduled, and that each one that waits, and each connect, has a timer.
    /// Takes time in proportion to all of them: for tests.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold; the message says which.
    pub(crate) fn check_invariants(&self) {
        self.check_totals();
        self.peers.iter().for_each(|(&address, peer)| self.check_peer(address, peer));
        self.messages.iter().for_each(|(&id, message)| self.check_message(id, message));
        self.connects.iter().for_each(|(&id, connect)| self.check_connect(id, connect));
    }

    fn check_totals(&self) {
        let bytes: usize = self.messages.values().map(|message| message.source.len()).sum();
        assert_eq!(self.bytes, bytes, "bytes of all messages");
        let of_peers: usize = self.peers.values().map(|peer| peer.unfinished().len()).sum();
        assert_eq!(of_peers, self.messages.len(), "messages that peers know of");
        let of_peers: usize = self.peers.values().map(|peer| peer.connects.len()).sum();
        assert_eq!(of_peers, self.connects.len(), "connects that peers know of");
        let peers = |has: fn(&Peer) -> bool| self.peers.values().filter(|peer| has(peer)).count();
        assert_eq!(self.sessions.len(), peers(|peer| peer.session.is_some()), "sessions");
        assert_eq!(self.openings.len(), peers(|peer| peer.opening.is_some()), "handshakes");
        assert_eq!(self.hellos.len(), peers(|peer| peer.hello_key.is_some()), "HELLOs due");
        assert_eq!(self.idle.len(), peers(|peer| peer.idle_key.is_some()), "idle peers");
        let transfers = || self.messages.values().map(|message| &message.transfer);
        let ready = transfers().filter(|transfer| transfer.schedule_key.is_some()).count();
        assert_eq!(self.schedule.len(), ready, "messages that are scheduled");
        let timers = transfers().filter(|transfer| transfer.timer_key.is_some()).count();
        let timers = timers + peers(|peer| peer.timer_key.is_some()) + self.connects.len();
        assert_eq!(self.timers.len(), timers, "timers");
    }

    fn check_peer(&self, at: SocketAddr, peer: &Peer) {
        let timer = Timer::Peer(at);
        assert!(self.timers.has(peer.timer_key, timer), "{at}: its timer is not in the queue");
        if let Some(due) = peer.liveness_at() {
            assert!(
                peer.timer_key.is_some_and(|key| key <= due),
                "{at}: nothing wakes it at {due:?}"
            );
        }
        assert_eq!(peer.idle_key, peer.idle_since(), "{at}: its key among idle peers");
        assert!(self.idle.has(peer.idle_key, at), "{at}: it is not among idle peers");
        assert!(self.hellos.has(peer.hello_key, at), "{at}: its HELLO is not in the queue");
        let attempt = peer.opening.as_ref().and_then(|opening| opening.attempt_to_send());
        assert_eq!(peer.hello_key.map(|rank| rank.attempt), attempt, "{at}: pending HELLOs");
        if let Some(opening) = &peer.opening {
            assert_eq!(self.openings.get(&opening.nonce), Some(&at), "{at}: handshake not found");
        }
        if let Some(session) = &peer.session {
            let of = self.sessions.get(&session.opener.session());
            assert_eq!(of, Some(&at), "{at}: session not found");
        }
        assert!(peer.session.is_some() || !peer.usable, "{at}: usable without a session");
        let is_sought = peer.usable || peer.opening.is_some() || peer.is_idle();
        assert!(is_sought, "{at}: something waits for a session without a handshake");
        assert_eq!(peer.stats().unfinished, peer.unfinished().len(), "{at}: unfinished messages");
        for id in peer.unfinished() {
            let known = self.messages.get(&id).is_some_and(|message| message.transfer.peer == at);
            assert!(known, "{at}: message {id:?} is not under way to it");
        }
        let waiting = peer.unfinished().into_iter().filter(|id| {
            self.messages.get(id).is_some_and(|message| message.transfer.probe_key.is_some())
        });
        assert_eq!(peer.liveness.waiting(), waiting.count(), "{at}: messages that wait for probes");
    }

    fn check_message(&self, id: MessageId, Outgoing { source, transfer }: &Outgoing) {
        assert_eq!(source.id, id, "{id:?}: a message under another's id");
        let Some(peer) = self.peers.get(&transfer.peer) else {
            panic!("{id:?}: its peer is forgotten")
        };
        let timer = Timer::Message(id);
        assert!(
            self.timers.has(transfer.timer_key, timer),
            "{id:?}: its timer is not in the queue"
        );
        assert_eq!(
            transfer.timer_key,
            Some(transfer.wake_at()),
            "{id:?}: its timer is not set to when it needs attention"
        );
        assert!(transfer.wake_at() <= transfer.deadline, "{id:?}: nothing ends it at its deadline");
        let rank = (peer.usable && transfer.is_ready()).then(|| transfer.rank());
        assert_eq!(
            transfer.schedule_key.map(|key| key.rank()),
            rank,
            "{id:?}: its rank in the schedule"
        );
        assert!(self.schedule.has(transfer.schedule_key, id), "{id:?}: it is not in the schedule");
        assert!(
            peer.liveness.has(transfer.probe_key, id),
            "{id:?}: it is not among those that wait for probes"
        );
        assert_eq!(
            transfer.is_paused(),
            peer.liveness.is_unresponsive(),
            "{id:?}: paused, and its peer unresponsive"
        );
        assert!(
            transfer.is_backoff_probed(),
            "{id:?}: it backs off and has no block to probe with"
        );
        assert!(transfer.blocks().eq(source.blocks()), "{id:?}: blocks under way");
    }

    fn check_connect(&self, id: ConnectId, connect: &Connect) {
        let Some(peer) = self.peers.get(&connect.peer) else {
            panic!("{id:?}: its peer is forgotten")
        };
        assert!(peer.connects.contains(&id), "{id:?}: its peer does not know of it");
        assert!(!peer.is_connected(), "{id:?}: it waits for a session that may be used");
        let is_timed = self.timers.is_set(connect.timer_key, Timer::Connect(id));
        assert!(is_timed, "{id:?}: nothing ends it at its deadline");
    }
}
