//! Couples the parts of an endpoint: relays information between them and orders their output.
//!
//! Every driver goes through these functions: [`Transceiver`](super::Transceiver), which owns the parts,
//! and the threads of [`burst::Engine`](crate::burst::Engine), which lock them.

use super::calls::{CancelledCall, Prepared, overload, refusal, response, withdrawal};
use super::{
    CallId, CallTable, Event, Receiver, ReceiverEvent, RequestId, SendOptions, Sender, SenderEvent,
    Transmit,
};
use crate::error::StartError;
use crate::path::Via;
use crate::time::Instant;
use crate::wire::{Capabilities, Kind, Role, WireError};
use bytes::Bytes;
use core::ops::DerefMut;
use core::time::Duration;
use std::net::SocketAddr;

/// The maximum time for which a withdrawal is sent. A withdrawal precedes everything else and takes
/// the capacity of a message, but only saves work for the callee: a callee that does not answer needs
/// no withdrawal.
const WITHDRAW_FOR: Duration = Duration::from_secs(1);

/// The halves of an endpoint, independent of how they are guarded.
// Generic, so that the threads and a single owner run the same code: there were two ways to drive
// the state machines, and the defects lay where they differed.
pub(crate) trait Halves {
    fn sender(&mut self) -> impl DerefMut<Target = Sender>;
    fn receiver(&mut self) -> impl DerefMut<Target = Receiver>;
    fn both(&mut self) -> (impl DerefMut<Target = Sender>, impl DerefMut<Target = Receiver>);
}

/// All parts of an endpoint.
///
/// Callers that hold several guards take them in one order: calls, sender, receiver.
pub(crate) trait Parts: Halves {
    fn calls(&mut self) -> impl DerefMut<Target = CallTable>;
    fn calls_and_sender(
        &mut self,
    ) -> (impl DerefMut<Target = CallTable>, impl DerefMut<Target = Sender>);
    fn calls_and_receiver(
        &mut self,
    ) -> (impl DerefMut<Target = CallTable>, impl DerefMut<Target = Receiver>);
    fn all(
        &mut self,
    ) -> (
        impl DerefMut<Target = CallTable>,
        impl DerefMut<Target = Sender>,
        impl DerefMut<Target = Receiver>,
    );
    /// The receiver, if it may have output. A thread that sends symbols must not wait for a
    /// decoder.
    fn answering(&mut self) -> Option<impl DerefMut<Target = Receiver>>;
}

/// Handles a datagram that arrived by `via`; `ce` says whether it had a CE mark. The contents of
/// `packet` are unspecified afterwards.
///
/// When this returns, a peer that one half has met is known to the other. This holds before a
/// symbol of a newly opened session can leave, and so before its peer can answer in the other
/// direction; and before the application can take a message of that session, and so reply to it.
pub(crate) fn handle_datagram(
    parts: &mut impl Halves,
    now: Instant,
    via: Via,
    ce: bool,
    packet: &mut [u8],
) {
    match Kind::of(packet) {
        Ok(Kind::Hello) => {
            let found = parts.receiver().handle_hello(now, via, packet);
            if let Some(found) = found {
                parts.sender().learn(now, found);
            }
        }
        Ok(Kind::Retry) => parts.sender().handle_retry(now, packet),
        Ok(Kind::Open) => parts.receiver().handle_open(now, via, packet),
        Ok(Kind::Accept) => {
            let (mut sender, mut receiver) = parts.both();
            if let Some(peering) = sender.handle_accept(now, packet) {
                receiver.adopt(now, peering);
            }
        }
        Ok(Kind::Symbol) if parts.receiver().may_confirm(packet) => {
            let (mut sender, mut receiver) = parts.both();
            if let Some(found) = receiver.handle_symbol(now, via, ce, packet) {
                sender.learn(now, found);
            }
        }
        Ok(Kind::Symbol) => {
            let found = parts.receiver().handle_symbol(now, via, ce, packet);
            if let Some(found) = found {
                parts.sender().learn(now, found);
            }
        }
        Ok(Kind::Answer) => parts.sender().handle_answer(now, packet),
        Err(WireError::Version { got: 0, .. }) => parts.sender().handle_versions(packet),
        Err(WireError::Version { .. }) => parts.receiver().handle_other_version(via, packet),
        Err(_) => parts.receiver().handle_junk(),
    }
}

/// Fills `buffer`, which must be empty, with the next datagrams for one path.
///
/// Answers yield to one batch of symbols, and one ANSWER leaves with it where possible (a
/// piggybacked ACK). After that, they leave on their own. Answers to handshakes do not yield; while
/// any are pending, they alternate with other answers.
pub(crate) fn poll_transmit(
    parts: &mut impl Parts,
    now: Instant,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    if let Some(mut receiver) = parts.answering()
        && receiver.is_overdue()
        && let Some(answers) = receiver.poll_transmit(now, buffer)
    {
        return Some(answers);
    }
    poll_symbols(parts, now, buffer)
        .or_else(|| parts.answering().and_then(|mut receiver| receiver.poll_transmit(now, buffer)))
}

/// [`poll_transmit`] for symbols, handshakes and the answers that leave with them. Answers that
/// would leave on their own are held back, because the application may be about to respond.
pub(crate) fn poll_symbols(
    parts: &mut impl Parts,
    now: Instant,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    let symbols = parts.sender().poll_transmit(now, buffer)?;
    Some(match parts.answering() {
        Some(mut receiver) => receiver.poll_piggyback(now, symbols, buffer),
        None => symbols,
    })
}

/// The next event for the application.
pub(crate) fn poll_event(parts: &mut impl Parts) -> Option<Event> {
    let ended = parts.sender().poll_event();
    match ended {
        Some(SenderEvent::Ended(id, role, outcome)) => {
            if role == Role::Request {
                parts.calls().on_request_ended(id, &outcome);
            }
            return Some(Event::Ended(id, outcome));
        }
        Some(SenderEvent::Connected(id, result)) => return Some(Event::Connected(id, result)),
        None => {}
    }
    // Holds both guards: a call must not time out while its response is between the two parts.
    let (mut calls, mut receiver) = parts.calls_and_receiver();
    while let Some(event) = receiver.poll_event() {
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

/// Sends the request of `call`, which then waits for its response. The request has the deadline of
/// the call.
pub(crate) fn call(
    parts: &mut impl Parts,
    now: Instant,
    peer: SocketAddr,
    call: &Prepared,
    options: &SendOptions,
) -> Result<(), StartError> {
    // Holds both guards: the request must not end before its call is known.
    let (mut calls, mut sender) = parts.calls_and_sender();
    // A response is not burst for longer than its caller waits, and a service need not begin what
    // nobody waits for.
    let options = SendOptions { deadline: Some(call.timeout), ..*options };
    let request = sender.send(now, peer, Role::Request, call.frame.clone(), &options)?;
    calls.enter(now, peer, call, request);
    Ok(())
}

/// Forgets a call and stops the burst of its request. If the callee already has the request and
/// declares `CANCEL`, withdraws it.
pub(crate) fn cancel_call(parts: &mut impl Parts, now: Instant, call: CallId) {
    let Some(CancelledCall { request, delivered }) = parts.calls().forget(call) else { return };
    let mut sender = parts.sender();
    sender.cancel(request);
    // Only a request that is known to be delivered is withdrawn: the withdrawal then never
    // overtakes it, and requests that were never seen need no record.
    if let Some((peer, until)) = delivered {
        withdraw(&mut sender, now, call, peer, until);
    }
}

/// Withdraws a request that `callee` has, if it declares `CANCEL`. The caller would have waited
/// until `until`.
fn withdraw(sender: &mut Sender, now: Instant, call: CallId, callee: SocketAddr, until: Instant) {
    if sender.supports(callee, Capabilities::CANCEL) {
        let until = until.min(now + WITHDRAW_FOR);
        sender.send_call_ending(now, callee, Role::Withdrawal, withdrawal(call), until);
    }
}

/// The bytes of the response to a request on which the application has not acted, because it is
/// overloaded.
pub(crate) fn overload_response(halves: &mut impl Halves, request: RequestId) -> Bytes {
    refuse(&halves.sender(), request, overload)
}

/// The bytes of a response that refuses a request. A caller that does not declare `CANCEL` is told
/// that there is no response.
fn refuse(sender: &Sender, request: RequestId, refusal: fn(CallId) -> Bytes) -> Bytes {
    if sender.supports(request.peer, Capabilities::CANCEL) {
        refusal(request.call)
    } else {
        response(request.call, None)
    }
}

/// Begins to close. Messages under way continue, and so do the requests that the application has
/// taken. All other requests are refused, as far as there is capacity for the refusals. Another call
/// refuses those that are left and those that have arrived since.
pub(crate) fn close(parts: &mut impl Parts, now: Instant) {
    let (mut calls, mut sender, mut receiver) = parts.all();
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
        let bytes = refuse(&sender, request.id(), refusal);
        sender.send_call_ending(now, request.peer, Role::Response, bytes, request.deadline);
    }
}

/// Ends everything. Peers are told that messages not yet delivered will not be, that there will be
/// no responses to the requests that the application still has or whose responses are cut off here,
/// and that nobody waits for the responses to this endpoint's calls. The messages that say so are
/// ready to be sent or under way; all other bursts have stopped.
pub(crate) fn stop(parts: &mut impl Parts, now: Instant) {
    let (calls, mut sender) = parts.calls_and_sender();
    // Also those whose requests have been delivered, but whose calls have not learned of it.
    let at_callees = calls.waiting_without(|request| sender.is_under_way(request));
    drop(calls);
    for (caller, call, deadline) in sender.cancel_all() {
        sender.send_call_ending(now, caller, Role::Response, response(call, None), deadline);
    }
    drop(sender);
    close(parts, now);
    // Drops the requests that there is no capacity to refuse: the deadlines of their callers end them.
    while parts.receiver().recv(Role::Request).is_some() {}
    let open = parts.calls().release_all();
    for (request, deadline) in open {
        let bytes = response(request.call, None);
        parts.sender().send_call_ending(now, request.peer, Role::Response, bytes, deadline);
    }
    // Last, so that they take no capacity from what callers wait for.
    for (call, callee, until) in at_callees {
        withdraw(&mut parts.sender(), now, call, callee, until);
    }
    parts.sender().stop();
    parts.receiver().stop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ListenPorts, Security};
    use crate::path::Egresses;
    use crate::proto::Transceiver;
    use crate::rng::Seed;
    use core::ops::Deref;

    /// Halves whose application takes a message as soon as the receiver's guard is dropped.
    struct Eager {
        sender: Sender,
        receiver: Receiver,
        peer: SocketAddr,
    }

    struct Guard<'a>(&'a mut Eager);

    impl Deref for Guard<'_> {
        type Target = Receiver;

        fn deref(&self) -> &Receiver {
            &self.0.receiver
        }
    }

    impl DerefMut for Guard<'_> {
        fn deref_mut(&mut self) -> &mut Receiver {
            &mut self.0.receiver
        }
    }

    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            if self.0.receiver.queued(Role::Plain).next().is_some() {
                let paths = self.0.sender.paths(self.0.peer);
                assert!(!paths.is_empty(), "a message can be taken, and its sender is unknown");
            }
        }
    }

    impl Halves for Eager {
        fn sender(&mut self) -> impl DerefMut<Target = Sender> {
            &mut self.sender
        }

        fn receiver(&mut self) -> impl DerefMut<Target = Receiver> {
            Guard(self)
        }

        fn both(&mut self) -> (impl DerefMut<Target = Sender>, impl DerefMut<Target = Receiver>) {
            (&mut self.sender, &mut self.receiver)
        }
    }

    #[test]
    fn a_message_can_be_replied_to_as_soon_as_it_can_be_taken() {
        let address = |host: u8| SocketAddr::from(([10, 0, 0, host], 7));
        let endpoint = |host: u8| {
            let security = Security::pre_shared([7; 32]);
            let seed = Seed::new([host; 32]);
            let map = Box::new(Egresses(1));
            Transceiver::new(
                Instant::ZERO,
                Config::default(),
                ListenPorts::one(7),
                &security,
                seed,
                map,
            )
            .unwrap()
        };
        let mut now = Instant::ZERO;
        let mut sender = endpoint(1);
        let (eager, receiver, _) = endpoint(2).split();
        let mut eager = Eager { sender: eager, receiver, peer: address(1) };
        sender
            .send(now, address(2), Bytes::from_static(b"one symbol"), &SendOptions::default())
            .unwrap();
        let mut buffer = Vec::new();
        for _ in 0..10 {
            now += Duration::from_millis(10);
            sender.handle_timeout(now);
            buffer.clear();
            while let Some(sent) = sender.poll_transmit(now, &mut buffer) {
                let via = Via { remote: address(1), ..sent.via };
                for packet in buffer.chunks_mut(sent.segment_size) {
                    handle_datagram(&mut eager, now, via, false, packet);
                }
                buffer.clear();
            }
            let Some(sent) = eager.receiver.poll_transmit(now, &mut buffer) else { continue };
            let via = Via { remote: address(2), ..sent.via };
            for packet in buffer.chunks_mut(sent.segment_size) {
                sender.handle_datagram(now, via, packet);
            }
        }
        assert_eq!(eager.receiver.queued(Role::Plain).count(), 1, "nothing was taken");
    }
}
