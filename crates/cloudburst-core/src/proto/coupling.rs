//! Couples the halves of an endpoint: relays information between them and orders their output.

use super::calls::{Prepared, refusal, response, withdrawal};
use super::{
    CallId, Departure, Event, Finding, ReceiverEvent, SendOptions, Sender, SenderEvent,
    Transceiver, Transmit,
};
use crate::error::{Indeterminate, StartError};
use crate::path::Via;
use crate::time::Instant;
use crate::wire::{Kind, Role, WireError};
use core::time::Duration;
use std::net::SocketAddr;

/// The maximum time for which a withdrawal is sent.
// A withdrawal precedes everything else and takes the capacity of a message, but only saves work
// for the callee: a callee that does not answer needs no withdrawal.
const WITHDRAW_FOR: Duration = Duration::from_secs(1);

impl Transceiver {
    /// Handles a datagram that arrived by `via`. The contents of `packet` are unspecified
    /// afterwards.
    pub fn handle_datagram(&mut self, now: Instant, via: Via, packet: &mut [u8]) {
        self.handle_arrival(now, via, false, packet);
    }

    /// [`handle_datagram`](Self::handle_datagram) for a datagram that arrived with a CE mark (RFC
    /// 3168).
    pub fn handle_marked(&mut self, now: Instant, via: Via, packet: &mut [u8]) {
        self.handle_arrival(now, via, true, packet);
    }

    /// Handles a datagram that arrived by `via`; `ce` says whether it had a CE mark.
    ///
    /// When this returns, a peer that one half has met is known to the other. This holds before a
    /// symbol of a newly opened session can leave, and so before its peer can answer in the other
    /// direction; and before the application can take a message of that session, and so reply to it.
    pub(crate) fn handle_arrival(&mut self, now: Instant, via: Via, ce: bool, packet: &mut [u8]) {
        let Self { sender, receiver, .. } = self;
        match Kind::of(packet) {
            Ok(Kind::Hello) => {
                if let Some(found) = receiver.handle_hello(now, via, packet) {
                    sender.learn(now, found);
                }
            }
            Ok(Kind::Retry) => sender.handle_retry(now, packet),
            Ok(Kind::Open) => receiver.handle_open(now, via, packet),
            Ok(Kind::Accept) => {
                if let Some(peering) = sender.handle_accept(now, packet) {
                    receiver.adopt(now, peering);
                }
            }
            Ok(Kind::Symbol) => {
                if let Some(found) = receiver.handle_symbol(now, via, ce, packet) {
                    sender.learn(now, found);
                }
            }
            Ok(Kind::Answer) => sender.handle_answer(now, packet),
            Err(WireError::Version { got: 0, .. }) => sender.handle_versions(packet),
            Err(WireError::Version { .. }) => receiver.handle_other_version(via, packet),
            // A datagram of no known kind.
            Err(_) => receiver.counters.malformed += 1,
        }
        self.relay(now);
    }

    /// Handles an ICMP message which says that nothing listens at `to`, and quotes the beginning of a packet
    /// that was sent there. Connects and calls to a closed port end, if the message shows that its sender has
    /// seen packets of their handshake.
    pub fn handle_refused(&mut self, now: Instant, to: SocketAddr, quoted: &[u8]) {
        self.sender.handle_refused(now, to, quoted);
        self.relay(now);
    }

    /// Acts on what the sending half has found out about peers.
    // Nearly all packets lead to none.
    #[inline]
    pub(super) fn relay(&mut self, now: Instant) {
        while let Some(finding) = self.sender.poll_finding() {
            self.on_finding(now, finding);
        }
    }

    #[cold]
    fn on_finding(&mut self, now: Instant, finding: Finding) {
        match finding {
            Finding::Departed(departure) => self.on_departed(now, departure),
            Finding::Located(located) => {
                if let Some(routes) = self.receiver.locate(now, located) {
                    self.sender.learn_routes_of_moved(located.peer, routes);
                }
            }
            Finding::Unresponsive(peer) => {
                let vias = self.receiver.alternates(peer);
                self.sender.check_alternates(now, peer, vias);
            }
        }
    }

    /// Watches the peers that calls depend on, if that is due.
    pub(super) fn watch(&mut self, now: Instant) {
        let Some(peers) = self.calls.watch(now) else { return };
        self.sender.watch(now, peers);
        self.relay(now);
        let receiver = &self.receiver;
        self.calls.end_replaced(now, |peer, incarnation| receiver.last_heard(peer, incarnation));
    }

    fn on_departed(&mut self, now: Instant, departure: Departure) {
        let Departure { peer, incarnation, why, may_answer } = departure;
        if let Some(incarnation) = incarnation
            && why == Indeterminate::PeerRestarted
            && !may_answer
        {
            self.receiver.on_left(peer, incarnation);
        }
        let queued = self.receiver.withdraw_all(peer, incarnation);
        let is_under_way = |request| self.sender.is_under_way(request);
        self.calls.on_departed(now, departure, queued, is_under_way);
    }

    /// Shows peers where this endpoint is now, after its own addresses have changed: those that it has
    /// work with, and those that may still hold a session. Each is sent a HELLO, within the share of
    /// repeated ones, until it answers or has not for some seconds.
    pub fn announce(&mut self, now: Instant) {
        let heard = self.receiver.peers().map(|(peer, _)| peer).collect();
        self.sender.announce(now, &heard);
    }

    /// Fills `buffer`, which must be empty, with the next datagrams for one path.
    ///
    /// Answers yield to one batch of symbols, and one ANSWER leaves with it where possible (a
    /// piggybacked ACK). After that, they leave on their own. Answers to handshakes do not yield;
    /// while any are pending, they alternate with other answers.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if self.receiver.is_overdue()
            && let Some(answers) = self.receiver.poll_transmit(now, buffer)
        {
            return Some(answers);
        }
        self.poll_symbols(now, buffer).or_else(|| self.receiver.poll_transmit(now, buffer))
    }

    /// [`poll_transmit`](Self::poll_transmit) for symbols, handshakes and the answers that leave
    /// with them. Answers that would leave on their own are held back, for a driver whose
    /// application has something new to read and may respond at once.
    pub fn poll_symbols(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.start_waiting(now);
        let symbols = self.sender.poll_transmit(now, buffer)?;
        Some(self.receiver.poll_piggyback(now, symbols, buffer))
    }

    /// Starts what waits in line and has capacity now.
    pub(super) fn start_waiting(&mut self, now: Instant) {
        self.sender.start_waiting(now, self.calls.waiting());
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.next_event();
        if let Some(Event::Withdrawn(request)) = &event {
            self.calls.release_withdrawn(*request);
        }
        event
    }

    /// [`poll_event`](Self::poll_event) for a driver whose application releases each request that it
    /// has taken, also those that were withdrawn.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let Self { sender, receiver, calls, .. } = self;
        match sender.poll_event() {
            Some(SenderEvent::Ended(id, role, outcome)) => {
                if role == Role::Request {
                    calls.on_request_ended(id, &outcome);
                }
                return Some(Event::Ended(id, outcome));
            }
            Some(SenderEvent::Connected(id, result)) => return Some(Event::Connected(id, result)),
            None => {}
        }
        while let Some(event) = receiver.events.pop_front() {
            match event {
                ReceiverEvent::Response(message) => calls.on_response(message),
                ReceiverEvent::Withdrawal(message) => {
                    if let Some(request) = calls.withdrawn_by(&message) {
                        let was_queued = receiver.withdraw(request);
                        calls.on_withdrawn(request, was_queued);
                    }
                }
                ReceiverEvent::Readable(role) => return Some(Event::Readable(role)),
            }
        }
        let ended = calls.poll_ended().map(|(call, result)| Event::Answered(call, result));
        ended.or_else(|| calls.poll_withdrawn().map(Event::Withdrawn))
    }

    /// Sends a request to `peer`, perhaps after waiting in line as a message does. An
    /// [`Event::Answered`] reports how its call ends. The deadline is that of the call, whatever
    /// `options` say.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent.
    pub fn call(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        call: &Prepared,
        options: &SendOptions,
    ) -> Result<(), StartError> {
        // The request is not burst for longer than its caller waits, and a service need not begin
        // what nobody waits for.
        let options = SendOptions { deadline: Some(call.timeout), ..*options };
        let frame = call.frame.clone();
        let request = self.send_as(now, peer, Role::Request, frame, &options)?;
        self.calls.enter(now, peer, call, request);
        Ok(())
    }

    /// Forgets a call, and stops the burst of its request. If the callee may have the request, it is
    /// told that the caller no longer waits. A response that arrives later is dropped.
    pub fn cancel_call(&mut self, now: Instant, call: CallId) {
        let Some(cancelled) = self.calls.forget(call) else { return };
        // A callee that has the request before its STOP arrives would go on with it.
        let may_have_arrived = || self.sender.may_have_arrived(cancelled.request);
        let delivered = cancelled.delivered.unwrap_or_else(may_have_arrived);
        self.sender.cancel(cancelled.request);
        if delivered {
            withdraw(&mut self.sender, now, call, cancelled.callee, cancelled.until);
        }
    }

    /// Stops accepting connects and new messages, both to send and to receive. Those under way
    /// continue, what waits in line does not, and the requests that the application has taken can be
    /// replied to. Requests that it has not taken are refused, as far as there is capacity for the
    /// refusals. Another call refuses those that are left and those that have arrived since.
    pub fn close(&mut self, now: Instant) {
        let Self { sender, receiver, calls, .. } = self;
        sender.close();
        receiver.close();
        let len = Role::Response.header_len();
        loop {
            let next = receiver.queued(Role::Request).next();
            if next.is_none_or(|next| !sender.has_capacity(next.peer, len)) {
                return;
            }
            let Some(message) = receiver.recv(Role::Request) else { return };
            let Some(request) = calls.refuse(now, message) else { continue };
            let bytes = refusal(request.id().call);
            sender.send_call_ending(now, request.peer, Role::Response, bytes, request.deadline);
        }
    }

    /// Stops everything except the packets that tell peers so: see
    /// [`poll_transmit`](Self::poll_transmit). Requests that the application has taken can no
    /// longer be replied to.
    ///
    /// Peers are told that messages not yet delivered will not be, that there will be no responses
    /// to the requests that the application still has or whose responses are cut off here, and that
    /// nobody waits for the responses to this endpoint's calls. The messages that say so are ready
    /// to be sent or under way; all other bursts have stopped.
    pub fn stop(&mut self, now: Instant) {
        // Also those whose requests have been delivered, but whose calls have not learned of it.
        let at_callees = self.calls.waiting_at_callees(|request| self.sender.is_under_way(request));
        for (caller, call, deadline) in self.sender.cancel_all() {
            let bytes = response(call, None);
            self.sender.send_call_ending(now, caller, Role::Response, bytes, deadline);
        }
        self.close(now);
        // Drops the requests that there is no capacity to refuse: their callers' deadlines end
        // them.
        while self.receiver.recv(Role::Request).is_some() {}
        for (request, deadline) in self.calls.release_all() {
            let bytes = response(request.call, None);
            self.sender.send_call_ending(now, request.peer, Role::Response, bytes, deadline);
        }
        // Last, so that they take no capacity from what callers wait for.
        for (call, callee, until) in at_callees {
            withdraw(&mut self.sender, now, call, callee, until);
        }
        self.sender.stop();
        self.receiver.stop();
    }
}

/// Withdraws a request that `callee` has. The caller would have waited until `until`.
fn withdraw(sender: &mut Sender, now: Instant, call: CallId, callee: SocketAddr, until: Instant) {
    // Another session would be with another incarnation, which does not have the request.
    if sender.has_session(callee) {
        let until = until.min(now + WITHDRAW_FOR);
        sender.send_call_ending(now, callee, Role::Withdrawal, withdrawal(call), until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ListenPorts, Security};
    use crate::path::Egresses;
    use crate::rng::Seed;
    use bytes::Bytes;

    #[test]
    fn a_message_can_be_replied_to_as_soon_as_it_can_be_taken() {
        let address = |host: u8| SocketAddr::from(([10, 0, 0, host], 7));
        let endpoint = |host: u8| {
            let security = Security::pre_shared([7; 32]);
            let seed = Seed::new([host; 32]);
            let resolver = Box::new(Egresses(1));
            let ports = ListenPorts::one(7);
            let config = Config::default();
            Transceiver::new(config, ports, &security, seed, resolver).unwrap()
        };
        let mut now = Instant::ZERO;
        let [mut sender, mut receiver] = [endpoint(1), endpoint(2)];
        let one_symbol = Bytes::from_static(b"one symbol");
        sender.send(now, address(2), one_symbol, &SendOptions::default()).unwrap();
        let mut buffer = Vec::new();
        for _ in 0..10 {
            now += Duration::from_millis(10);
            sender.handle_timeout(now);
            buffer.clear();
            while let Some(sent) = sender.poll_transmit(now, &mut buffer) {
                let via = Via { remote: address(1), ..sent.via };
                for packet in buffer.chunks_mut(sent.segment_size) {
                    receiver.handle_datagram(now, via, packet);
                    if receiver.queued().next().is_some() {
                        let known = !receiver.paths(address(1)).is_empty();
                        assert!(known, "a message can be taken, and its sender is unknown");
                    }
                }
                buffer.clear();
            }
            let Some(sent) = receiver.poll_transmit(now, &mut buffer) else { continue };
            let via = Via { remote: address(2), ..sent.via };
            for packet in buffer.chunks_mut(sent.segment_size) {
                sender.handle_datagram(now, via, packet);
            }
        }
        assert_eq!(receiver.queued().count(), 1, "nothing was taken");
    }
}
