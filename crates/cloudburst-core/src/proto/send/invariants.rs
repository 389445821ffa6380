//! Invariants that hold between any two calls of a sender.

use super::hellos::HelloOf;
use super::peer::Peer;
use super::transfer::Transfer;
use super::waiting::Ticket;
use super::{Outgoing, Sender, Timer};
use crate::id::{ConnectId, MessageId};
use crate::naming::address_of;
use crate::time::Instant;
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
        self.connects.iter().for_each(|(&id, &address)| self.check_connect(id, address));
        self.check_line();
        self.check_checks();
    }

    fn check_checks(&self) {
        assert!(self.checks.are_found(), "each check is found by its nonce");
        for (&id, check) in &self.checks.under_way {
            let session = self.peers.get(&id.peer).and_then(|peer| peer.session.as_ref());
            assert!(session.is_some(), "{id:?}: no session");
            let is_due = self.hellos.due.contains(HelloOf::Check(id));
            let waits = self.timers.contains(Timer::Check(id));
            assert!(is_due != waits, "{id:?}: {check:?} is either to be sent or waits");
        }
        for (&at, peer) in &self.peers {
            for purpose in peer.mtu.pending() {
                let mut checks = self.checks.of(at);
                let is_under_way = checks.any(|(_, check)| check.purpose == purpose);
                assert!(is_under_way, "{at}: nothing will end its {purpose:?}");
            }
        }
    }

    fn check_totals(&self) {
        let bytes: usize = self.messages.values().map(|message| message.source.len()).sum();
        assert_eq!(self.bytes, bytes, "bytes of all messages");
        let of_peers: usize = self.peers.values().map(|peer| peer.unfinished().len()).sum();
        assert_eq!(of_peers, self.messages.len(), "messages that peers know of");
        let of_peers: usize = self.peers.values().map(|peer| peer.bytes).sum();
        assert_eq!(of_peers, bytes, "bytes of the messages to each peer");
        let of_peers: usize = self.peers.values().map(|peer| peer.connects.len()).sum();
        assert_eq!(of_peers, self.connects.len(), "connects that peers know of");
        let peers = |has: fn(&Peer) -> bool| self.peers.values().filter(|peer| has(peer)).count();
        assert_eq!(self.sessions.len(), peers(|peer| peer.session.is_some()), "sessions");
        assert_eq!(self.by_incarnation.len(), self.sessions.len(), "incarnations with a session");
        assert_eq!(self.openings.len(), peers(|peer| peer.opening.is_some()), "handshakes");
        let sends_hello = |peer: &Peer| peer.liveness.attempt_to_send().is_some();
        let due = self.hellos.due.iter().filter(|(of, _)| matches!(of, HelloOf::Handshake(_)));
        assert_eq!(due.count(), peers(sends_hello), "HELLOs due");
        assert_eq!(self.idle.len(), peers(|peer| peer.is_idle()), "idle peers");
        let bursts = |transfer: &Transfer| self.peers[&transfer.peer].lets_burst(transfer);
        let transfers = self.messages.values().map(|message| &message.transfer);
        let ready = transfers.filter(|transfer| bursts(transfer) && transfer.is_ready()).count();
        assert_eq!(self.schedule.ranked.len(), ready, "messages that are scheduled");
        for (timer, _) in self.timers.iter() {
            let exists = match timer {
                Timer::Message(id) => {
                    let ticket = Ticket::Message(id);
                    self.messages.contains_key(&id) || self.line.get(ticket).is_some()
                }
                Timer::Peer(address) => self.peers.contains_key(&address),
                Timer::Connect(id) => {
                    let ticket = Ticket::Connect(id);
                    self.connects.contains_key(&id) || self.line.get(ticket).is_some()
                }
                Timer::Check(id) => self.checks.under_way.contains_key(&id),
            };
            assert!(exists, "{timer:?}: it has ended");
        }
    }

    fn check_peer(&self, at: SocketAddr, peer: &Peer) {
        if let Some(due) = peer.liveness.wake_at(peer.rtt.rto()) {
            let timer = self.timers.rank(Timer::Peer(at));
            assert!(timer.is_some_and(|timer| timer <= due), "{at}: nothing wakes it at {due:?}");
        }
        peer.mtu.check_invariants();
        let is_at_name = peer.by_routes || peer.address.ip() == address_of(at).ip();
        assert!(is_at_name || peer.session.is_some(), "{at}: moved without a session");
        assert_eq!(self.idle.rank(at), peer.forget_at(), "{at}: when it is forgotten");
        let attempt = self.hellos.due.rank(HelloOf::Handshake(at)).map(|rank| rank.attempt);
        assert_eq!(attempt, peer.liveness.attempt_to_send(), "{at}: pending HELLOs");
        if let Some(opening) = &peer.opening {
            assert_eq!(self.openings.get(&opening.nonce), Some(&at), "{at}: handshake not found");
        }
        if let Some(session) = &peer.session {
            let of = self.sessions.get(&session.opener.session());
            assert_eq!(of, Some(&at), "{at}: session not found");
            let known = self.by_incarnation.contains(&(session.remote, at));
            assert!(known, "{at}: not found by its incarnation");
        }
        let verified = peer.liveness.is_verified();
        assert!(peer.session.is_some() || !verified, "{at}: verified without a session");
        let may_retry = peer.liveness.is_unresponsive() && peer.liveness.may_retry();
        assert!(!may_retry || self.retries_due.contains(at), "{at}: its retry is not in the queue");
        let is_sought = verified || peer.opening.is_some() || peer.is_idle();
        assert!(is_sought, "{at}: something waits for a session without a handshake");
        if peer.hands_over() && verified {
            let begun = |id| self.messages[&id].transfer.has_begun();
            let waits = peer.unfinished().into_iter().any(begun)
                || self.timers.rank(Timer::Peer(at)) == Some(Instant::ZERO);
            assert!(waits, "{at}: nothing is under way to it, and it is not left");
        }
        for id in peer.unfinished() {
            let known = self.messages.get(&id).is_some_and(|message| message.transfer.peer == at);
            assert!(known, "{at}: message {id:?} is not under way to it");
        }
        let unfinished = peer.unfinished();
        let mut waiting = peer.liveness.waiting.iter();
        assert!(waiting.all(|(id, _)| unfinished.contains(&id)), "{at}: a retry of nothing");
        let mut retries = peer.liveness.waiting.iter();
        let has_begun = |id| self.messages[&id].transfer.has_begun();
        assert!(retries.all(|(id, _)| has_begun(id)), "{at}: a retry of what has not begun");
    }

    fn check_message(&self, id: MessageId, Outgoing { source, transfer }: &Outgoing) {
        assert_eq!(source.id, id, "{id:?}: a message under another's id");
        let Some(peer) = self.peers.get(&transfer.peer) else {
            panic!("{id:?}: its peer is forgotten")
        };
        let bursts = peer.lets_burst(transfer);
        let wake_at = transfer.wake_at(!bursts || peer.liveness.waiting.contains(id));
        assert_eq!(
            self.timers.rank(Timer::Message(id)),
            Some(wake_at),
            "{id:?}: its timer is not set to when it needs attention"
        );
        assert!(wake_at <= transfer.deadline, "{id:?}: nothing ends it at its deadline");
        let rank = (bursts && transfer.is_ready()).then(|| transfer.rank());
        assert_eq!(self.schedule.ranked.rank(id), rank, "{id:?}: its rank in the schedule");
        assert!(transfer.is_probed(), "{id:?}: it is paused and has no block to probe for");
        assert!(transfer.blocks().eq(source.blocks()), "{id:?}: blocks under way");
    }

    fn check_line(&self) {
        self.line.check_invariants();
        for ticket in self.line.tickets() {
            let deadline = self.line.get(ticket).map(|waiting| waiting.deadline());
            assert_eq!(self.timers.rank(ticket.timer()), deadline, "{ticket:?}: its deadline");
        }
        for (ticket, id) in &self.line.started {
            let started = self.messages.get(id).and_then(|message| message.transfer.ticket);
            assert_eq!(started, Some(*ticket), "{ticket:?}: it has started as another message");
        }
        let waited = self.messages.values().filter(|message| message.transfer.ticket.is_some());
        assert_eq!(self.line.started.len(), waited.count(), "messages that have waited");
    }

    fn check_connect(&self, id: ConnectId, address: SocketAddr) {
        let Some(peer) = self.peers.get(&address) else { panic!("{id:?}: its peer is forgotten") };
        assert!(peer.connects.contains(&id), "{id:?}: its peer does not know of it");
        assert!(!peer.is_connected(), "{id:?}: it waits for a session that may be used");
        assert!(
            self.timers.contains(Timer::Connect(id)),
            "{id:?}: nothing ends it at its deadline"
        );
    }
}
