//! The engine: its threads, and the operations that it offers.

use super::PacketIo;
use super::drive::Driving;
use super::parts::{LockedParts, OnAnswer, OnConnect, OnEnd, OnWithdrawn, lock};
use super::shared::{Answers, EngineEvent, Flush, MAX_SLEEP, Shared, ThreadRole};
use crate::error::StartError;
use crate::id::{ConnectId, MessageId};
use crate::path::{OrderError, PathResolver, PathStats};
use crate::proto::{
    CallId, CallTable, IncomingRequest, Latencies, Message, PeerStats, Prepared, RequestId,
    SendOptions, Transceiver, TransceiverCounters, coupling, merge_peers,
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
        let (sender, receiver, calls) = endpoint.split();
        let shared = Arc::new(Shared {
            io,
            parts: LockedParts::new(sender, receiver, calls),
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
        deadline: Option<Duration>,
        on_connect: OnConnect,
    ) -> Result<ConnectId, StartError> {
        let mut sending = self.shared.parts.lock_sending();
        let id = sending.sender.connect(self.shared.io.now(), peer, deadline)?;
        sending.on_connect.insert(id, on_connect);
        drop(sending);
        self.shared.report();
        self.shared.pump(ThreadRole::Other);
        Ok(id)
    }

    /// Ends a connect before its deadline. Does nothing if it has ended.
    pub fn cancel_connect(&self, id: ConnectId) {
        self.shared.parts.lock_sending().sender.cancel_connect(id);
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
        let mut sending = self.shared.parts.lock_sending();
        let id = sending.sender.send(self.shared.io.now(), peer, role, bytes, options)?;
        sending.on_end.insert(id, (on_end, kept));
        // With a deadline of zero, it has already ended.
        let ended = sending.sender.has_events();
        drop(sending);
        if ended {
            self.shared.report();
        }
        Ok(id)
    }

    /// Stops the burst of a message at once. Does nothing if it has ended.
    pub fn cancel(&self, id: MessageId) {
        self.shared.parts.lock_sending().sender.cancel(id);
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
        // Registered first: the call may end before this thread continues.
        self.shared.parts.lock_calling().on_answer.insert(call.id(), on_answer);
        let now = self.shared.io.now();
        let called = coupling::call(&mut &self.shared.parts, now, peer, call, options);
        if called.is_err() {
            let on_answer = self.shared.parts.lock_calling().on_answer.remove(&call.id());
            // Dropped without the lock: the callback may own anything.
            drop(on_answer);
        }
        // With a deadline of zero, it has already ended.
        if self.shared.parts.lock_sending().sender.has_events() {
            self.shared.report();
        }
        called
    }

    /// Forgets a call, and stops the burst of its request. Does nothing if it has ended.
    pub fn cancel_call(&self, call: CallId) {
        let on_answer = self.shared.parts.lock_calling().on_answer.remove(&call);
        coupling::cancel_call(&mut &self.shared.parts, self.shared.io.now(), call);
        drop(on_answer);
        self.shared.notify_closing();
        self.shared.report();
        self.shared.pump(ThreadRole::Other);
    }

    /// Runs `act` on the calls of this endpoint, to prepare requests and to count their results.
    pub fn calls<T>(&self, act: impl FnOnce(&mut CallTable) -> T) -> T {
        act(&mut self.shared.parts.lock_calling().calls)
    }

    /// Takes the next plain message from the application's queue.
    pub fn recv(&self) -> Option<Message> {
        if self.readable(Role::Plain) == 0 {
            return None;
        }
        let mut receiver = self.shared.parts.lock_receiver();
        let message = receiver.recv(Role::Plain);
        let more = receiver.has_events();
        drop(receiver);
        self.report_more(more);
        message
    }

    /// Takes the next request from the application's queue. The application must
    /// [release](Self::release) it. Requests whose callers have given up are dropped and counted.
    /// The callback that `watch` returns is called if the caller no longer waits for the response,
    /// and must not block.
    pub fn recv_request(
        &self,
        watch: impl FnOnce(&IncomingRequest) -> OnWithdrawn,
    ) -> Option<IncomingRequest> {
        if self.readable(Role::Request) == 0 {
            return None;
        }
        let now = self.shared.io.now();
        // Holds both locks, so that a withdrawal, or a thread that closes the engine, finds the
        // request either in the queue or with the application.
        let mut calling = self.shared.parts.lock_calling();
        let mut receiver = self.shared.parts.lock_receiver();
        let request = core::iter::from_fn(|| receiver.recv(Role::Request))
            .find_map(|message| calling.calls.accept(now, message));
        let more = receiver.has_events();
        drop(receiver);
        if let Some(request) = &request {
            calling.on_withdrawn.insert(request.id(), watch(request));
        }
        drop(calling);
        self.report_more(more);
        if let Some(request) = &request {
            self.shared.wake_by(request.deadline);
        }
        request
    }

    /// Forgets a request that the application has taken: it has begun to reply, or has dropped the
    /// request.
    pub fn release(&self, request: RequestId) {
        let mut calling = self.shared.parts.lock_calling();
        calling.calls.release(request);
        let on_withdrawn = calling.on_withdrawn.remove(&request);
        drop(calling);
        drop(on_withdrawn);
        self.shared.notify_closing();
    }

    /// The bytes of the response to a request on which the application has not acted, because it is
    /// overloaded.
    pub fn overload_response(&self, request: RequestId) -> Bytes {
        coupling::overload_response(&mut &self.shared.parts, request)
    }

    /// The number of messages of `role` in the application's queue.
    pub fn readable(&self, role: Role) -> usize {
        self.shared.parts.readable(role)
    }

    /// Reports events caused by taking a message, if there are `more`: a message that waited for
    /// its room is in the queue now, and its STOP is due.
    fn report_more(&self, more: bool) {
        if more {
            self.shared.report();
            self.shared.pump(ThreadRole::Other);
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> TransceiverCounters {
        let calls = self.calls(|calls| calls.counters());
        let sender = self.shared.parts.lock_sending().sender.counters();
        TransceiverCounters {
            sender,
            receiver: *self.shared.parts.lock_receiver().counters(),
            calls,
        }
    }

    /// The claimed source of the last handshake under none of this endpoint's keys.
    pub fn refused_from(&self) -> Option<SocketAddr> {
        self.shared.parts.lock_receiver().refused_from()
    }

    /// The latencies of messages so far.
    pub fn latencies(&self) -> Latencies {
        let sent = self.shared.parts.lock_sending().sender.latencies().clone();
        Latencies { sent, received: self.shared.parts.lock_receiver().latencies().clone() }
    }

    /// The traffic with each peer that this endpoint remembers, ordered by address.
    pub fn peers(&self) -> Vec<PeerStats> {
        let sent = self.shared.parts.lock_sending().sender.peers().collect();
        merge_peers(sent, self.shared.parts.lock_receiver().peers().collect())
    }

    /// Live counts of the paths to `peer`, by path number.
    pub fn paths(&self, peer: SocketAddr) -> Vec<PathStats> {
        self.shared.parts.lock_sending().sender.paths(peer).to_vec()
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
    /// If its parts contradict themselves or each other.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let calling = self.shared.parts.lock_calling();
        let sending = self.shared.parts.lock_sending();
        calling.calls.check_invariants();
        sending.sender.check_invariants();
        self.shared.parts.lock_receiver().check_invariants();
        let waiting = calling.calls.waiting();
        assert_eq!(calling.on_answer.len(), waiting, "calls that wait, and their callbacks");
        let told = calling.on_withdrawn.len();
        assert!(
            told >= calling.calls.open_requests(),
            "each request has a callback for its withdrawal"
        );
        let unfinished = sending.sender.unfinished();
        let told = sending.on_end.len() + sending.on_connect.len();
        assert!(told <= unfinished, "callbacks of what has ended are gone");
        let wakes = sending.sender.poll_timeout().is_none() || sending.planned.is_some();
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
        self.shared.parts.lock_sending().sender.set_path_resolver(resolver.clone())?;
        self.shared.parts.lock_receiver().set_path_resolver(resolver);
        Ok(())
    }
}
