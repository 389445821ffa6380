//! How sends end: by an answer, at their deadline, or because the application cancels them.

use super::peer::Peer;
use super::waiting::{Ticket, Waiting};
use super::{Outgoing, Sender, SenderEvent, Timer};
use crate::error::{Indeterminate, Outcome, Rejection};
use crate::id::{ConnectId, MessageId};
use crate::proto::CallId;
use crate::proto::calls::answered;
use crate::proto::observe::{Observation, emit};
use crate::time::Instant;
use crate::wire::{RejectReason, Role};
use std::net::SocketAddr;

impl Sender {
    /// Ends a message that waits, or stops its burst, at once. Does nothing if it has ended.
    pub(crate) fn cancel(&mut self, name: MessageId) {
        let id = self.line.started.get(&name).copied().unwrap_or(name);
        let known = |message: &&Outgoing| message.transfer.ticket.unwrap_or(id) == name;
        match self.messages.get(&id).filter(known) {
            Some(message) => {
                let outcome = if self.is_ruled_out(message) {
                    Outcome::Rejected(Rejection::Cancelled)
                } else {
                    Outcome::Unknown(Indeterminate::Cancelled)
                };
                self.finish(id, outcome);
            }
            None => self.end_waiting(Ticket::Message(name), Rejection::Cancelled),
        }
    }

    /// Whether all of a message may have arrived, as far as this end knows before its end is reported.
    pub(in crate::proto) fn may_have_arrived(&self, name: MessageId) -> bool {
        let id = self.line.started.get(&name).copied().unwrap_or(name);
        match self.messages.get(&id) {
            Some(Outgoing { source, transfer }) => {
                transfer.may_be_whole() || source.has_earlier_cuts()
            }
            None => !self.is_waiting(name),
        }
    }

    /// Stops all bursts and connects at once, except messages that say that a call is over. Returns
    /// the calls whose responses this cut off, with their callers and the deadlines of the
    /// responses.
    pub(in crate::proto) fn cancel_all(&mut self) -> Vec<(SocketAddr, CallId, Instant)> {
        let mut messages: Vec<MessageId> = self.messages.keys().copied().collect();
        // Sorted, so that the order does not change from run to run.
        messages.sort_unstable();
        let mut cut_off = Vec::new();
        let mut ends = |peer, role, bytes: &[u8], deadline| match (role, answered(bytes)) {
            (Role::Response, None) | (Role::Withdrawal, _) => false,
            (Role::Response, Some(call)) => {
                cut_off.push((peer, call, deadline));
                true
            }
            (Role::Plain | Role::Request, _) => true,
        };
        for id in messages {
            let Some(Outgoing { source, transfer }) = self.messages.get(&id) else { continue };
            let name = transfer.ticket.unwrap_or(id);
            if ends(transfer.peer, source.role, source.bytes(), transfer.deadline) {
                self.cancel(name);
            }
        }
        for ticket in self.line.tickets() {
            let ends = match self.line.get(ticket) {
                Some(Waiting::Message(message)) => {
                    ends(message.peer, message.role, &message.bytes, message.deadline)
                }
                _ => true,
            };
            if ends {
                self.end_waiting(ticket, Rejection::Closing);
            }
        }
        let mut connects: Vec<ConnectId> = self.connects.keys().copied().collect();
        connects.sort_unstable();
        connects.into_iter().for_each(|id| self.cancel_connect(id));
        cut_off
    }

    pub(super) fn message_timeout(&mut self, now: Instant, id: MessageId) {
        let Some(Outgoing { source, transfer }) = self.messages.get_mut(&id) else {
            return self.end_waiting(Ticket::Message(id), Rejection::NotStarted);
        };
        if transfer.deadline <= now {
            let peer = self.peers.get(&transfer.peer);
            let is_answering = peer.is_some_and(|peer| peer.liveness.is_responsive());
            let is_ruled_out = peer.is_some_and(|peer| peer.rules_out(source.role, transfer));
            // Probes alone begin nothing.
            let has_begun = transfer.has_begun() && transfer.packets > 0;
            let outcome = match (has_begun, is_answering) {
                (true, _) if is_ruled_out => {
                    Outcome::Rejected(Rejection::ByPeer(RejectReason::Closing))
                }
                (true, _) => Outcome::Unknown(match transfer.local_error() {
                    Some(error) => Indeterminate::Local(error),
                    None if transfer.is_busy() => Indeterminate::Busy,
                    None if transfer.vanishes()
                        && let Some(mtu) = peer.and_then(Peer::too_narrow) =>
                    {
                        Indeterminate::Mtu(mtu)
                    }
                    None => Indeterminate::Deadline,
                }),
                (false, true) => Outcome::Rejected(Rejection::NotStarted),
                (false, false) => {
                    Outcome::Rejected(peer.map_or(Rejection::NoAnswer, Peer::unreached_reason))
                }
            };
            return self.finish(id, outcome);
        }
        let Some(peer) = self.peers.get_mut(&transfer.peer) else { return };
        let works_until = peer.is_working_until(transfer.last_number).filter(|until| *until > now);
        if let Some(until) = works_until.filter(|_| !transfer.is_busy()) {
            transfer.postpone(until);
        } else if peer.liveness.is_late(now, peer.rtt.rto()) {
            peer.liveness.waiting.push_back(id);
            let address = transfer.peer;
            self.peer_timeout(now, address);
        } else {
            let limit = peer.grant_limit(transfer);
            transfer.on_timeout(now, peer.paths.all_healthy(), limit);
        }
        self.watch_vanishing(now, id);
        self.reschedule(id);
    }

    /// Whether a message was certainly not delivered, and will not be.
    pub(super) fn is_ruled_out(&self, Outgoing { source, transfer }: &Outgoing) -> bool {
        let peer = self.peers.get(&transfer.peer);
        peer.map_or(!transfer.has_begun(), |peer| peer.rules_out(source.role, transfer))
    }

    /// Handles the peer's report that it will not deliver a message. If the reason is that another
    /// endpoint takes over from it, that one gets the message.
    pub(super) fn on_rejected(
        &mut self,
        now: Instant,
        address: SocketAddr,
        id: MessageId,
        reason: RejectReason,
    ) {
        if reason == RejectReason::Closing {
            self.on_closing(address);
        }
        let Some(Outgoing { source, transfer }) = self.messages.get_mut(&id) else { return };
        let Some(peer) = self.peers.get_mut(&address) else { return };
        // Those who wait for responses and withdrawals are at that peer.
        let moves = reason == RejectReason::Closing
            && peer.hands_over()
            && matches!(source.role, Role::Plain | Role::Request);
        if !moves {
            return self.finish(id, Outcome::Rejected(Rejection::ByPeer(reason)));
        }
        peer.liveness.waiting.remove(id);
        transfer.unsend(source);
        self.reschedule(id);
        self.hand_over(now, address);
    }

    pub(super) fn finish(&mut self, id: MessageId, outcome: Outcome) {
        let Some(mut message) = self.messages.remove(&id) else { return };
        let Outgoing { source, transfer } = &mut message;
        let name = transfer.ticket.unwrap_or(id);
        self.line.started.remove(&name);
        self.line.reopen(transfer.peer);
        self.schedule.set(id, None);
        self.timers.remove(Timer::Message(id));
        self.bytes -= source.len();
        if let Some(peer) = self.peers.get_mut(&transfer.peer) {
            peer.liveness.waiting.remove(id);
            peer.bytes -= source.len();
            peer.finish_message(id, &outcome);
            if let (Outcome::Delivered(_), Some((log, capacity))) =
                (&outcome, transfer.take_missing())
            {
                peer.keep_missing(id, log, capacity);
            }
            self.idle.set(transfer.peer, peer.forget_at());
            if peer.hands_over() {
                // It may have been the last one under way.
                self.timers.hasten(Timer::Peer(transfer.peer), Some(Instant::ZERO));
            }
        }
        let peer = transfer.peer;
        let end = &outcome;
        let ended = || Observation::SendEnded { peer, message: id, end: end.into() };
        emit(&self.observer, ended);
        match &outcome {
            Outcome::Delivered(receipt) => {
                self.counters.delivered += 1;
                self.counters.bytes_delivered += receipt.bytes as u64;
                self.counters.source_symbols += receipt.source_symbols as u64;
                self.latencies.record(receipt.total());
            }
            Outcome::Rejected(_) => self.counters.rejected += 1,
            Outcome::Unknown(_) => self.counters.unknown += 1,
        }
        self.events.push_back(SenderEvent::Ended(name, source.role, outcome));
        self.recycler.put(message);
    }
}
