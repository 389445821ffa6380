//! The engine: its threads, and the operations that it offers.

use super::PacketIo;
use super::drive::Driving;
use super::shared::{Answers, EngineEvent, Flush, MAX_SLEEP, Shared, ThreadRole, contain, lock};
use super::state::{OnAnswer, OnConnect, OnEnd, OnWithdrawn, State};
use crate::error::StartError;
use crate::id::{ConnectId, MessageId};
use crate::path::{OrderError, PathResolver, PathStats};
use crate::proto::{
    CallId, CallTable, IncomingRequest, Latencies, Message, PeerStats, Prepared, RequestId,
    SendOptions, Transceiver, TransceiverCounters,
};
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock};
use std::thread::JoinHandle;
use std::{io, thread};

/// How [`Engine::drive`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driven {
    /// The event that the caller waited for has happened.
    Done,
    /// It did not happen in time.
    TimedOut,
    /// Another thread drives already; nothing was done.
    ByAnother,
    /// The engine was stopped.
    Stopped,
}

/// An endpoint with its two threads. Dropping it stops both, and every burst, at once.
#[derive(Debug)]
pub struct Engine<I: PacketIo> {
    pub(super) shared: Arc<Shared<I>>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<I: PacketIo> Engine<I> {
    /// Starts the threads. `on_event` is called when callers should check again whether what they
    /// wait for has happened. It must not block, but may use the engine.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses to create a thread.
    pub fn start(
        endpoint: Transceiver,
        io: I,
        on_event: impl Fn(EngineEvent) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let busy_poll = endpoint.busy_poll();
        let shared = Arc::new(Shared {
            io,
            state: Mutex::new(State::new(endpoint)),
            on_event: Box::new(on_event),
            in_hand: RwLock::new(()),
            sending_thread: OnceLock::new(),
            driving: Driving::default(),
            helpers: AtomicUsize::new(0),
            busy_poll,
            soon: AtomicBool::new(false),
            crowded_until: AtomicU64::new(0),
            pending_flush: AtomicBool::new(false),
            ended: Condvar::new(),
            closing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            drained: OnceLock::new(),
        });
        let engine = Self { shared: shared.clone(), threads: Mutex::new(Vec::new()) };
        let receiving = shared.clone();
        // Two threads where the paper has four: most packets are source symbols, which cost a copy
        // and a seal, and to hand one to another thread costs 5 us.
        engine.spawn("cbrst-send", move || shared.run_sending())?;
        engine.spawn("cbrst-recv", move || receiving.run_receiving())?;
        Ok(engine)
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        lock(&self.threads).push(thread);
        Ok(())
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
        self.shared.pump(ThreadRole::Other);
        Ok(id)
    }

    /// Ends a connect before its deadline. Does nothing if it has ended.
    pub fn cancel_connect(&self, id: ConnectId) {
        self.shared.lock().endpoint.cancel_connect(id);
        self.shared.report();
        self.shared.pump(ThreadRole::Other);
    }

    /// Bursts a message to `peer`. `on_end` is called when the send has ended, and dropped if the
    /// engine stops first. It must not block.
    ///
    /// Sends what may be sent before it returns, unless more than a few messages are under way: then the
    /// sending thread sends it, in trains shared with the messages that follow.
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
        on_end: OnEnd,
    ) -> Result<MessageId, StartError> {
        let id = self.begin(peer, role, bytes, options, on_end)?;
        self.shared.send_now_or_with_others(Flush::BySendingThread);
        Ok(id)
    }

    /// [`send`](Self::send) for a caller that, if this returns `true`, [flushes](Self::flush) once
    /// it has no more to send for the moment.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent, and `on_end` is dropped.
    pub fn send_before_flush(
        &self,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: OnEnd,
    ) -> Result<(MessageId, bool), StartError> {
        let id = self.begin(peer, role, bytes, options, on_end)?;
        Ok((id, self.shared.send_now_or_with_others(Flush::ByCaller)))
    }

    fn begin(
        &self,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: OnEnd,
    ) -> Result<MessageId, StartError> {
        let kept = bytes.clone();
        let mut state = self.shared.lock();
        let id = state.endpoint.send_as(self.shared.io.now(), peer, role, bytes, options)?;
        state.on_end.insert(id, (on_end, kept));
        // With a deadline of zero, it has already ended.
        let ended = state.endpoint.sender.has_events();
        drop(state);
        if ended {
            self.shared.report();
        }
        Ok(id)
    }

    /// Stops the burst of a message at once. Does nothing if it has ended.
    pub fn cancel(&self, id: MessageId) {
        self.shared.lock().endpoint.cancel(id);
        self.shared.report();
        self.shared.pump(ThreadRole::Other);
    }

    /// Sends the request of `call` to `peer`. `on_answer` is called when the call has ended, and
    /// dropped if the engine stops first. It must not block. The request leaves like a message that
    /// is [sent](Self::send).
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent, and `on_answer` is dropped.
    pub fn call(
        &self,
        peer: SocketAddr,
        call: &Prepared,
        options: &SendOptions,
        on_answer: OnAnswer,
    ) -> Result<(), StartError> {
        self.begin_call(peer, call, options, on_answer)?;
        self.shared.send_now_or_with_others(Flush::BySendingThread);
        Ok(())
    }

    /// [`call`](Self::call) for a caller that, if this returns `true`, [flushes](Self::flush) once
    /// it has no more to send for the moment.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, nothing was sent, and `on_answer` is dropped.
    pub fn call_before_flush(
        &self,
        peer: SocketAddr,
        call: &Prepared,
        options: &SendOptions,
        on_answer: OnAnswer,
    ) -> Result<bool, StartError> {
        self.begin_call(peer, call, options, on_answer)?;
        Ok(self.shared.send_now_or_with_others(Flush::ByCaller))
    }

    fn begin_call(
        &self,
        peer: SocketAddr,
        call: &Prepared,
        options: &SendOptions,
        on_answer: OnAnswer,
    ) -> Result<(), StartError> {
        let mut state = self.shared.lock();
        state.endpoint.call(self.shared.io.now(), peer, call, options)?;
        state.on_answer.insert(call.id(), on_answer);
        // With a deadline of zero, it has already ended.
        let ended = state.endpoint.sender.has_events();
        drop(state);
        if ended {
            self.shared.report();
        }
        Ok(())
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
        self.shared.pump(ThreadRole::Other);
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
    pub fn recv_request(
        &self,
        watch: impl FnOnce(&IncomingRequest) -> OnWithdrawn,
    ) -> Option<IncomingRequest> {
        let mut state = self.shared.lock();
        let request = state.endpoint.recv_request(self.shared.io.now());
        let more = state.endpoint.receiver.has_events();
        if let Some(request) = &request {
            state.on_withdrawn.insert(request.id(), watch(request));
        }
        drop(state);
        self.report_more(more);
        if let Some(request) = &request {
            self.shared.wake_by(request.deadline);
        }
        request
    }

    /// Forgets a request that the application has taken: it has begun to reply, or has dropped the
    /// request.
    pub fn release(&self, request: RequestId) {
        let mut state = self.shared.lock();
        state.endpoint.calls.release(request);
        let on_withdrawn = state.on_withdrawn.remove(&request);
        drop(state);
        contain(|| drop(on_withdrawn));
        self.shared.notify_closing();
    }

    /// The bytes of the response to a request on which the application has not acted, because it is
    /// overloaded.
    pub fn overload_response(&self, request: RequestId) -> Bytes {
        self.shared.lock().endpoint.overload_response(request)
    }

    /// The number of messages of `role` in the application's queue.
    pub fn readable(&self, role: Role) -> usize {
        self.shared.readable(role)
    }

    /// Reports events caused by taking a message, if there are `more`: a message that waited for
    /// capacity is in the queue now, and its STOP is due.
    fn report_more(&self, more: bool) {
        if more {
            self.shared.report();
            self.shared.pump(ThreadRole::Other);
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

    /// Receives packets on the calling thread until `done`, which is called after each wait,
    /// returns `true`. A thread that waits for something gets it sooner this way than from another
    /// thread that must wake it. At most one thread drives at a time; meanwhile the receiving
    /// thread rests.
    ///
    /// Answers to these packets leave with the packets that the caller sends next, when it waits
    /// again, or when the receiving thread checks the sockets: a response should not wait for them.
    pub fn drive(&self, until: Option<Instant>, mut done: impl FnMut() -> bool) -> Driven {
        let shared = &self.shared;
        let Some(caller) = shared.driving.begin() else { return Driven::ByAnother };
        if caller.receiving_thread_waits() {
            shared.io.wake();
        }
        let mut polled = false;
        loop {
            if done() {
                return Driven::Done;
            }
            if shared.is_stopping() {
                return Driven::Stopped;
            }
            let now = shared.io.now();
            let is_over = until.is_some_and(|at| at <= now);
            if is_over && polled {
                return Driven::TimedOut;
            }
            shared.flush();
            // The flush may have reported what the caller waits for, and a thread does not wake
            // itself.
            if done() {
                return Driven::Done;
            }
            polled = true;
            if is_over {
                // The receiving thread leaves packets to callers, even to those that only poll.
                shared.receive(Duration::ZERO, Answers::AfterApplication);
                continue;
            }
            let limit = until.map_or(MAX_SLEEP, |at| at.saturating_since(now));
            shared.receive_for(limit, Answers::AfterApplication, &mut done);
        }
    }

    /// Takes the packets that have arrived, without waiting. Returns whether there were any, or
    /// whether this reported packets that another thread had taken. This serves tasks that learn by
    /// other means that packets have arrived. Nothing is taken while another thread
    /// [drives](Self::drive). The receiving thread rests for a while and checks the sockets now and
    /// then.
    ///
    /// Answers to these packets leave with the packets sent next, by [`flush`](Self::flush), or
    /// when the receiving thread checks the sockets.
    pub fn take(&self) -> bool {
        let Some(caller) = self.shared.driving.begin() else { return false };
        if caller.first_to_interrupt() {
            self.shared.io.wake();
        }
        if self.shared.is_stopping() {
            return false;
        }
        self.shared.receive(Duration::ZERO, Answers::AfterApplication).is_some()
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
        let wakes = endpoint.sender.poll_timeout().is_none() || state.planned.is_some();
        assert!(wakes, "the sending thread wakes when the sender has something to do");
    }

    /// Does on the calling thread what the sending thread does when it wakes. For tests whose clock
    /// is not the system clock, by which that thread sleeps.
    #[doc(hidden)]
    pub fn run_sender(&self) {
        self.shared.pump(ThreadRole::SendingThread);
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

    /// Replaces the path map. See [`Transceiver::set_path_resolver`].
    ///
    /// # Errors
    ///
    /// Returns an error if the configured order does not fit the new paths. Nothing has changed
    /// then.
    pub fn set_path_resolver(&self, resolver: Arc<dyn PathResolver>) -> Result<(), OrderError> {
        self.shared.lock().endpoint.set_path_resolver(resolver)
    }
}
