//! The engine: its threads, and the operations that it offers.

use super::PacketIo;
use super::drive::Driven;
use super::role::Driving;
use super::sending::Flush;
use super::shared::{Shared, contain, lock, spawn};
use super::state::{OnAnswer, OnConnect, OnEnd, OnWithdrawn, State};
use crate::config::Security;
use crate::error::StartError;
use crate::id::{ConnectId, MessageId};
use crate::path::{OrderError, PathResolver, PathStats};
use crate::proto::{
    CallId, CallTable, IncomingRequest, Latencies, Message, PeerStats, Prepared, SendOptions,
    Served, Transceiver, TransceiverCounters,
};
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

/// An endpoint with its threads. Dropping it stops them, and every burst, at once.
#[derive(Debug)]
pub struct Engine<I: PacketIo> {
    pub(super) shared: Arc<Shared<I>>,
}

impl<I: PacketIo> Engine<I> {
    /// Starts the receiving thread; the sending thread starts when nobody drives the engine.
    /// `on_readable` is called when another message of a role is in the application's queue. It must
    /// not block, but may use the engine.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses to create a thread.
    pub fn start(
        endpoint: Transceiver,
        io: I,
        on_readable: impl Fn(Role) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let busy_poll = endpoint.busy_poll();
        let shared = Arc::new(Shared {
            io,
            state: Mutex::new(State::new(endpoint)),
            on_readable: Box::new(on_readable),
            driving: Driving::default(),
            threads: Mutex::new(Vec::new()),
            busy_poll,
            soon: AtomicBool::new(false),
            crowded_until: AtomicU64::new(0),
            pending_flush: AtomicBool::new(false),
            ended: Condvar::new(),
            closing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            drained: OnceLock::new(),
        });
        shared.plan();
        let engine = Self { shared: shared.clone() };
        let thread = spawn("cbrst-recv", move || shared.run_receiving())?;
        lock(&engine.shared.threads).push(thread);
        Ok(engine)
    }

    /// Opens a session with `peer` before there is a message for it. See [`Transceiver::connect`].
    /// `on_connect` is called when the connect has ended, perhaps before this returns, and dropped if
    /// the engine stops first. It must not block.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, no connect was started, and `on_connect` is dropped.
    pub fn connect(
        &self,
        peer: SocketAddr,
        options: &SendOptions,
        on_connect: OnConnect,
    ) -> Result<ConnectId, StartError> {
        let mut state = self.shared.lock();
        let id = state.endpoint.connect(self.shared.io.now(), peer, options)?;
        state.on_connect.insert(id, on_connect);
        drop(state);
        self.shared.report();
        self.shared.pump();
        Ok(id)
    }

    /// Ends a connect before its deadline. Does nothing if it has ended.
    pub fn cancel_connect(&self, id: ConnectId) {
        self.shared.lock().endpoint.cancel_connect(id);
        self.shared.report();
        self.shared.pump();
    }

    /// Bursts a message to `peer`. `on_end` is called when the send has ended, and dropped if the
    /// engine stops first. It must not block.
    ///
    /// Sends what may be sent before it returns, unless more than a few messages are under way: then it
    /// leaves at the next flush, in trains shared with the messages that follow. Returns whether the
    /// caller must [flush](Self::flush), once it has no more to send for the moment.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent, and `on_end` is dropped.
    pub fn send(
        &self,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        flush: Flush,
        on_end: OnEnd,
    ) -> Result<(MessageId, bool), StartError> {
        let kept = bytes.clone();
        let mut state = self.shared.lock();
        let id = state.endpoint.send_as(self.shared.io.now(), peer, role, bytes, options)?;
        state.on_end.insert(id, (on_end, kept));
        Ok((id, self.shared.on_begun(state, flush)))
    }

    /// Stops the burst of a message at once. Does nothing if it has ended.
    pub fn cancel(&self, id: MessageId) {
        self.shared.lock().endpoint.cancel(id);
        self.shared.report();
        self.shared.pump();
    }

    /// Sends the request of `call` to `peer`. `on_answer` is called when the call has ended, and
    /// dropped if the engine stops first. It must not block. The request leaves like a message that
    /// is [sent](Self::send), and the result is that of one.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent, and `on_answer` is dropped.
    pub fn call(
        &self,
        peer: SocketAddr,
        call: &Prepared,
        options: &SendOptions,
        flush: Flush,
        on_answer: OnAnswer,
    ) -> Result<bool, StartError> {
        let mut state = self.shared.lock();
        state.endpoint.call(self.shared.io.now(), peer, call, options)?;
        state.on_answer.insert(call.id(), on_answer);
        Ok(self.shared.on_begun(state, flush))
    }

    /// Forgets a call, and stops the burst of its request. Does nothing if it has ended.
    pub fn cancel_call(&self, call: CallId) {
        let mut state = self.shared.lock();
        // The caller knows the end of a call that has ended, and may be about to make another, whose
        // request carries the STOP of this one's response. A send here would take a packet for it.
        let Some(on_answer) = state.on_answer.remove(&call) else { return };
        state.endpoint.cancel_call(self.shared.io.now(), call);
        drop(state);
        contain(|| drop(on_answer));
        self.shared.notify_closing();
        self.shared.report();
        self.shared.pump();
    }

    /// Runs `act` on the calls of this endpoint, to prepare requests and to count their results.
    /// `act` runs under the lock of the engine, and must not use the engine.
    pub fn calls<T>(&self, act: impl FnOnce(&mut CallTable) -> T) -> T {
        act(&mut self.shared.lock().endpoint.calls)
    }

    /// Takes the next plain message from the application's queue.
    pub fn recv(&self) -> Option<Message> {
        let mut state = self.shared.lock();
        let message = state.endpoint.recv()?;
        let more = state.endpoint.receiver.has_events();
        drop(state);
        self.report_more(more);
        Some(message)
    }

    /// Takes the next request from the application's queue. The application must
    /// [release](Self::release) it. Requests whose callers have given up are dropped and counted.
    /// The callback that `watch` returns is called if the caller no longer waits for the response,
    /// and must not block. `watch` itself runs under the lock of the engine, and must not use the
    /// engine.
    pub fn recv_request(&self, watch: impl FnOnce() -> OnWithdrawn) -> Option<IncomingRequest> {
        let mut state = self.shared.lock();
        let request = state.endpoint.recv_request(self.shared.io.now());
        let more = state.endpoint.receiver.has_events();
        if let Some(request) = &request {
            state.on_withdrawn.insert(request.id(), watch());
        }
        drop(state);
        self.report_more(more);
        if request.is_some() {
            // It has a deadline.
            self.shared.plan();
        }
        request
    }

    /// Forgets a request that the application has taken, and has begun to reply to or dropped.
    pub fn release(&self, request: &IncomingRequest, served: Served) {
        let mut state = self.shared.lock();
        state.endpoint.calls.release(self.shared.io.now(), request, served);
        let on_withdrawn = state.on_withdrawn.remove(&request.id());
        drop(state);
        contain(|| drop(on_withdrawn));
        self.shared.notify_closing();
    }

    /// The number of messages of `role` in the application's queue.
    #[doc(hidden)]
    pub fn readable(&self, role: Role) -> usize {
        self.shared.readable(role)
    }

    /// Reports events caused by taking a message, if there are `more`: a message that waited for
    /// capacity is in the queue now, and its STOP is due.
    fn report_more(&self, more: bool) {
        if more {
            self.shared.report();
            self.shared.pump();
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> TransceiverCounters {
        self.shared.lock().endpoint.counters()
    }

    /// The claimed source of the last handshake under none of this endpoint's keys.
    pub fn refused_from(&self) -> Option<SocketAddr> {
        self.shared.lock().endpoint.refused_from()
    }

    /// The latencies of messages so far.
    pub fn latencies(&self) -> Latencies {
        self.shared.lock().endpoint.latencies()
    }

    /// The traffic with each peer that this endpoint remembers, ordered by address.
    pub fn peers(&self) -> Vec<PeerStats> {
        self.shared.lock().endpoint.peers()
    }

    /// Live counts of the paths to `peer`, by path number.
    pub fn paths(&self, peer: SocketAddr) -> Vec<PathStats> {
        self.shared.lock().endpoint.paths(peer).to_vec()
    }

    /// Does the endpoint's work on the calling thread, and sleeps when there is none, until `done`
    /// returns `true`. It is called after each piece of work, and may only read from the
    /// engine. A thread that waits for something gets it sooner this way than from another
    /// thread that must wake it. If another thread drives already, this one sleeps until that one
    /// leaves, or until it is unparked.
    ///
    /// Answers to these packets leave with the packets that the caller sends next, when it waits
    /// again, or when the receiving thread sees that it does not: a response should not wait for them.
    pub fn drive(&self, until: Option<Instant>, done: impl FnMut() -> bool) -> Driven {
        self.shared.drive(until, done)
    }

    /// Makes the thread that [drives](Self::drive) check whether it is done, if it sleeps. Threads
    /// that wait for their turn must be unparked instead.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Takes the packets that have arrived and serves the timers that have expired, without waiting.
    /// Returns whether packets arrived, or whether this reported packets that another thread had
    /// taken. This serves tasks that learn by other means that something is ready. Nothing is done
    /// while another thread [drives](Self::drive).
    ///
    /// Answers to these packets leave with the packets sent next, by [`flush`](Self::flush), or
    /// when the receiving thread sees that neither happens.
    pub fn take(&self) -> bool {
        self.shared.take()
    }

    /// Asserts the invariants that hold whenever no thread is within the engine, for tests.
    ///
    /// # Panics
    ///
    /// If the state machines contradict themselves or the callbacks.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let state = self.shared.lock();
        let endpoint = &state.endpoint;
        endpoint.check_invariants();
        let waiting = endpoint.calls.waiting();
        assert_eq!(state.on_answer.len(), waiting, "calls that wait, and their callbacks");
        assert!(
            state.on_withdrawn.len() >= endpoint.calls.open_requests(),
            "each request has a callback for its withdrawal"
        );
        let callbacks = state.on_end.len() + state.on_connect.len();
        assert!(callbacks <= endpoint.unfinished(), "callbacks of what has ended are gone");
        let wakes = endpoint.sender.poll_timeout().is_none() || state.timer.is_some();
        assert!(wakes, "the timer is set when the sender has something to do");
    }

    /// Does on the calling thread what the threads of the engine do when they wake. For tests whose
    /// clock is not the system clock, by which these threads sleep.
    #[doc(hidden)]
    pub fn stand_in(&self) {
        self.shared.stand_in();
    }

    /// The configured [`Config::busy_poll`](crate::config::Config::busy_poll).
    pub fn busy_poll(&self) -> Duration {
        self.shared.busy_poll
    }

    /// Sends what was deferred: answers, and messages that wait for others.
    pub fn flush(&self) {
        self.shared.flush();
    }

    /// The sockets.
    pub fn io(&self) -> &I {
        &self.shared.io
    }

    /// Changes the keys. See [`Transceiver::set_security`].
    pub fn set_security(&self, security: &Security) {
        self.shared.lock().endpoint.set_security(self.shared.io.now(), security);
        self.shared.pump();
    }

    /// Replaces the path map. See [`Transceiver::set_path_resolver`].
    ///
    /// # Errors
    ///
    /// Returns an error if the configured order does not fit the new paths. Nothing has changed
    /// then.
    pub fn set_path_resolver(&self, resolver: Arc<dyn PathResolver>) -> Result<(), OrderError> {
        self.shared.lock().endpoint.set_path_resolver(resolver)?;
        // What had no path may start now.
        self.shared.pump();
        Ok(())
    }
}
