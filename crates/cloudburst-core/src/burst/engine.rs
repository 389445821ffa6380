//! The threads and what they share.

use super::PacketIo;
use super::drive::{self, Driving};
use crate::error::{Outcome, SendError};
use crate::id::MessageId;
use crate::path::{OrderError, PathMap, PathStats};
use crate::proto::{
    Counters, Endpoint, Latencies, Message, PeerStats, Receiver, ReceiverEvent, SendOptions,
    Sender, SenderEvent, Transmit, is_for_receiver, merge_peers,
};
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::cell::RefCell;
use core::hint;
use core::time::Duration;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::{io, thread};

/// Called once, by whichever thread learns how a send ended.
pub type OnEnd = Box<dyn FnOnce(Outcome) + Send>;

/// How [`Engine::drive`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driven {
    /// What was waited for is there.
    Done,
    /// It was not there in time.
    TimedOut,
    /// Another thread does it already; nothing was done.
    ByAnother,
    /// The engine was stopped.
    Stopped,
}

type OnMessage = Box<dyn Fn(Message) + Send + Sync>;

/// A timer that fires this much late was held up together with the whole process: what came in
/// meanwhile is read before the timer is believed.
const HELD_UP: Duration = Duration::from_millis(5);
/// How long no symbol must have come before a closing endpoint stops repeating its STOPs: twice
/// the longest pause of a sender that hears nothing.
const QUIET: Duration = Duration::from_millis(200);
/// Batches that a thread sends which has something else to do: a caller, or the receiving thread.
/// The rest is the sending thread's, however fast the link is said to be.
const HELP: usize = 16;
/// The longest sleep of the receiving thread.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// An endpoint with its two threads. Dropping it stops both, and every burst, at once.
#[derive(Debug)]
pub struct Engine<I: PacketIo> {
    shared: Arc<Shared<I>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared<I> {
    io: I,
    sending: Mutex<Sending>,
    receiver: Mutex<Receiver>,
    on_message: OnMessage,
    /// Held while messages are passed on, so that no thread sends a STOP in between.
    delivering: Mutex<()>,
    /// The sending thread, to wake.
    sending_thread: OnceLock<Thread>,
    driving: Driving,
    busy_poll: Duration,
    /// STOPs were put off.
    owes: AtomicBool,
    /// Signalled whenever a send has ended.
    ended: Condvar,
    stopping: AtomicBool,
}

struct Sending {
    sender: Sender,
    on_end: HashMap<MessageId, OnEnd>,
    /// When the sending thread will wake by itself; `None`: not before it is woken.
    planned: Option<Instant>,
}

thread_local! {
    /// One transmit buffer a thread, used again for every batch.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl<I: PacketIo> Engine<I> {
    /// Starts the threads. `on_message` takes each delivered message: when it returns, the message
    /// counts as the application's. It must not block, nor call this engine.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread.
    pub fn start(
        endpoint: Endpoint,
        io: I,
        on_message: impl Fn(Message) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let busy_poll = endpoint.busy_poll();
        let (sender, receiver) = endpoint.split();
        let shared = Arc::new(Shared {
            io,
            sending: Mutex::new(Sending { sender, on_end: HashMap::new(), planned: None }),
            receiver: Mutex::new(receiver),
            on_message: Box::new(on_message),
            delivering: Mutex::new(()),
            sending_thread: OnceLock::new(),
            driving: Driving::default(),
            busy_poll,
            owes: AtomicBool::new(false),
            ended: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let engine = Self { shared: shared.clone(), threads: Mutex::new(Vec::new()) };
        let receiving = shared.clone();
        engine.spawn("cbrst-send", move || shared.run_sending())?;
        engine.spawn("cbrst-recv", move || receiving.run_receiving())?;
        Ok(engine)
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Bursts a message to `peer`. `on_end` is called when the send has ended, and dropped where
    /// the engine is stopped before; it must not block.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then, and `on_end` is dropped.
    pub fn send(
        &self,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: OnEnd,
    ) -> Result<MessageId, SendError> {
        let mut sending = lock(&self.shared.sending);
        let id = sending.sender.send(self.shared.io.now(), peer, role, bytes, options)?;
        sending.on_end.insert(id, on_end);
        drop(sending);
        self.shared.pump(Who::Other);
        self.shared.pay();
        Ok(id)
    }

    /// Stops the burst of a message at once. Does nothing if it has ended.
    pub fn cancel(&self, id: MessageId) {
        lock(&self.shared.sending).sender.cancel(id);
        self.shared.pump(Who::Other);
    }

    /// The application has taken a message of `bytes` bytes from its queue.
    pub fn release(&self, role: Role, bytes: usize) {
        let mut receiver = lock(&self.shared.receiver);
        receiver.release(role, bytes);
        // Only a message that waited for this room wants to be passed on at once.
        if receiver.has_events() {
            drop(receiver);
            self.shared.flush_receiver(Stops::Now);
        }
    }

    /// What was done and seen so far.
    pub fn counters(&self) -> Counters {
        let sender = *lock(&self.shared.sending).sender.counters();
        Counters { sender, receiver: *lock(&self.shared.receiver).counters() }
    }

    /// How long messages took so far.
    pub fn latencies(&self) -> Latencies {
        let sent = lock(&self.shared.sending).sender.latencies().clone();
        Latencies { sent, received: lock(&self.shared.receiver).latencies().clone() }
    }

    /// What passed between this endpoint and each peer that it remembers, by address.
    pub fn peers(&self) -> Vec<PeerStats> {
        let sent = lock(&self.shared.sending).sender.peers().collect();
        merge_peers(sent, lock(&self.shared.receiver).peers().collect())
    }

    /// Live counts of the paths to `peer`, by path number.
    pub fn paths(&self, peer: SocketAddr) -> Vec<PathStats> {
        lock(&self.shared.sending).sender.paths(peer).to_vec()
    }

    /// Takes what comes in by itself until `done`, which is asked after each wait: a thread that
    /// waits for something has it sooner so than from another thread that must wake it. At most
    /// one thread does this at a time; meanwhile the receiving thread rests.
    ///
    /// STOPs for messages that this brings leave after what the caller sends next, or when it
    /// waits again, or when the receiving thread looks: a response should not wait for them.
    pub fn drive(&self, until: Option<Instant>, mut done: impl FnMut() -> bool) -> Driven {
        let shared = &self.shared;
        let Some(turn) = shared.driving.begin() else { return Driven::ByAnother };
        if turn.polled_by_another() {
            shared.io.wake();
        }
        loop {
            if done() {
                return Driven::Done;
            }
            if shared.is_stopping() {
                return Driven::Stopped;
            }
            let now = shared.io.now();
            if until.is_some_and(|at| at <= now) {
                return Driven::TimedOut;
            }
            shared.pay();
            let limit = until.map_or(MAX_SLEEP, |at| at.saturating_since(now));
            shared.receive_for(limit, Stops::AfterMessages);
        }
    }

    /// The sockets.
    pub fn io(&self) -> &I {
        &self.shared.io
    }

    /// Uses other paths from now on. See [`Sender::set_path_map`].
    ///
    /// # Errors
    ///
    /// The order does not fit them; nothing has changed then.
    pub fn set_path_map(&self, path_map: Arc<dyn PathMap>) -> Result<(), OrderError> {
        lock(&self.shared.sending).sender.set_path_map(path_map.clone())?;
        lock(&self.shared.receiver).set_path_map(path_map);
        Ok(())
    }

    /// Takes no new messages, waits at most `within` for those under way and for peers that miss
    /// a STOP, then stops. Returns whether all sends had ended by then.
    pub fn close(&self, within: Duration) -> bool {
        let deadline = self.shared.io.now() + within;
        lock(&self.shared.receiver).close();
        let mut sending = lock(&self.shared.sending);
        sending.sender.close();
        let drained = loop {
            let left = deadline.saturating_since(self.shared.io.now());
            let over = left.is_zero() || self.shared.is_stopping();
            if sending.sender.unfinished() == 0 || over {
                break sending.sender.unfinished() == 0;
            }
            (sending, _) =
                self.shared.ended.wait_timeout(sending, left).expect("no thread panics with it");
        };
        // Nothing signals that symbols have ceased to come: wait out the quiet time.
        loop {
            let last = lock(&self.shared.receiver).last_symbol();
            let Some(last) = last else { break };
            let now = self.shared.io.now();
            let wait = (last + QUIET).min(deadline).saturating_since(now);
            if wait.is_zero() || self.shared.is_stopping() {
                break;
            }
            (sending, _) =
                self.shared.ended.wait_timeout(sending, wait).expect("no thread panics with it");
        }
        drop(sending);
        self.stop();
        drained
    }

    /// Stops the threads and every burst at once.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake_sending();
        self.shared.driving.wake();
        self.shared.io.wake();
        for thread in lock(&self.threads).drain(..) {
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of the endpoint panicked");
            }
        }
        // Nothing ends any more. Dropped without the lock: callbacks may hold whatever they like.
        let unended = core::mem::take(&mut lock(&self.shared.sending).on_end);
        self.shared.ended.notify_all();
        drop(unended);
    }
}

impl<I: PacketIo> Drop for Engine<I> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// When STOPs leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stops {
    Now,
    /// Later, if messages were passed on: whoever took them is told of it.
    AfterMessages,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    SendingThread,
    Other,
}

impl<I: PacketIo> Shared<I> {
    fn run_sending(&self) {
        let _ = self.sending_thread.set(thread::current());
        while !self.is_stopping() {
            // What came before this is seen by the pump; what comes after it ends the parking.
            let Some(at) = self.pump(Who::SendingThread) else {
                thread::park();
                continue;
            };
            thread::park_timeout(at.saturating_since(self.io.now()));
            if self.io.now().saturating_since(at) > HELD_UP {
                self.receive(Duration::ZERO, Stops::Now);
            }
        }
    }

    fn run_receiving(&self) {
        while !self.is_stopping() {
            match self.driving.turn() {
                drive::Turn::Poll => {
                    self.receive_for(MAX_SLEEP, Stops::Now);
                    self.driving.polled();
                }
                drive::Turn::Look => drop(self.receive(Duration::ZERO, Stops::Now)),
                drive::Turn::Leave => {}
            }
        }
    }

    /// Waits for packets no longer than `limit`, and for what the receiver has to do.
    fn receive_for(&self, limit: Duration, stops: Stops) {
        if self.poll_busily(limit, stops) {
            return;
        }
        let due = lock(&self.receiver).poll_timeout();
        let sleep = due.map_or(limit, |at| at.saturating_since(self.io.now()).min(limit));
        // Zero would not wait at all; the sweep can wait for a millisecond.
        self.receive(sleep.clamp(Duration::from_millis(1), MAX_SLEEP), stops);
        lock(&self.receiver).handle_timeout(self.io.now());
    }

    /// Looks for packets again and again, for as long as that was asked for. Returns whether any
    /// came.
    fn poll_busily(&self, limit: Duration, stops: Stops) -> bool {
        if self.busy_poll.is_zero() {
            return false;
        }
        let until = self.io.now() + self.busy_poll.min(limit);
        while !self.receive(Duration::ZERO, stops) {
            if self.io.now() >= until || self.is_stopping() {
                return false;
            }
            hint::spin_loop();
        }
        true
    }

    /// Sends the STOPs that were put off.
    fn pay(&self) {
        if self.owes.swap(false, Ordering::SeqCst) {
            self.flush_receiver(Stops::Now);
        }
    }

    fn wake_sending(&self) {
        if let Some(thread) = self.sending_thread.get() {
            thread.unpark();
        }
    }

    /// Has whoever drives look at what `done` says, if that is another thread.
    fn tell_driver(&self) {
        if self.driving.by_another() {
            self.io.wake();
        }
    }

    /// Takes packets; returns whether any came.
    fn receive(&self, timeout: Duration, stops: Stops) -> bool {
        let (mut answers, mut came) = (false, false);
        self.io.receive(timeout, &mut |via, packet| {
            came = true;
            let now = self.io.now();
            if is_for_receiver(packet) {
                lock(&self.receiver).handle_datagram(now, via, packet);
            } else {
                answers = true;
                lock(&self.sending).sender.handle_datagram(now, packet);
            }
        });
        self.flush_receiver(stops);
        if answers {
            self.pump(Who::Other);
        }
        came
    }

    /// Passes on what the receiver has to say: first the messages, then the STOPs, which claim
    /// that the application has them. A late symbol may have another thread say the same STOP: it
    /// waits until this one has passed the message on.
    fn flush_receiver(&self, stops: Stops) {
        with_buffer(|buffer| {
            let delivering = lock(&self.delivering);
            let mut receiver = lock(&self.receiver);
            let events: Vec<ReceiverEvent> =
                core::iter::from_fn(|| receiver.poll_event()).collect();
            let brings = events.iter().any(|event| matches!(event, ReceiverEvent::Message(_)));
            let later = stops == Stops::AfterMessages && brings;
            self.owes.fetch_or(later, Ordering::SeqCst);
            let transmits: Vec<Transmit> =
                core::iter::from_fn(|| (!later).then(|| receiver.poll_transmit(buffer)).flatten())
                    .collect();
            drop(receiver);
            let mut met = false;
            let mut delivered = false;
            for event in events {
                match event {
                    ReceiverEvent::Message(message) => {
                        (self.on_message)(message);
                        delivered = true;
                    }
                    ReceiverEvent::Confirmed(peering) => {
                        lock(&self.sending).sender.adopt(self.io.now(), peering);
                        met = true;
                    }
                }
            }
            drop(delivering);
            if delivered {
                self.tell_driver();
            }
            let mut contents = &buffer[..];
            for transmit in &transmits {
                let (packet, rest) = contents.split_at(transmit.len);
                self.io.transmit(transmit, packet);
                contents = rest;
            }
            if met {
                self.pump(Who::Other);
            }
        });
    }

    /// Sends what may be sent now and reports what has ended. Returns when there is more to do.
    fn pump(&self, who: Who) -> Option<Instant> {
        with_buffer(|buffer| {
            for batches in 0.. {
                if self.is_stopping() {
                    break;
                }
                if who == Who::Other && batches == HELP {
                    self.plan(&mut lock(&self.sending), who, Some(Instant::ZERO));
                    break;
                }
                let now = self.io.now();
                let mut sending = lock(&self.sending);
                // Only the sending thread knows whether its timers can be believed.
                if who == Who::SendingThread {
                    sending.sender.handle_timeout(now);
                }
                let transmit = sending.sender.poll_transmit(now, buffer);
                let events: Vec<SenderEvent> =
                    core::iter::from_fn(|| sending.sender.poll_event()).collect();
                let mut ended = Vec::new();
                let mut opened = Vec::new();
                for event in events {
                    match event {
                        SenderEvent::Ended(id, outcome) => {
                            ended.extend(sending.on_end.remove(&id).map(|call| (call, outcome)));
                        }
                        SenderEvent::Opened(peering) => opened.push(peering),
                    }
                }
                let wake_at = sending.sender.poll_timeout();
                if transmit.is_none() {
                    self.plan(&mut sending, who, wake_at);
                }
                drop(sending);

                // Before the peer can answer in a session, our receiver must know it.
                for peering in opened {
                    lock(&self.receiver).adopt(now, peering);
                }
                if let Some(transmit) = &transmit {
                    self.io.transmit(transmit, buffer);
                    buffer.clear();
                }
                if !ended.is_empty() {
                    for (call, outcome) in ended {
                        call(outcome);
                    }
                    self.ended.notify_all();
                    self.tell_driver();
                }
                if transmit.is_none() {
                    return wake_at;
                }
            }
            None
        })
    }

    /// Sees to it that the sending thread wakes no later than `wake_at`.
    fn plan(&self, sending: &mut Sending, who: Who, wake_at: Option<Instant>) {
        match who {
            Who::SendingThread => sending.planned = wake_at,
            Who::Other => {
                let sleeps_past =
                    wake_at.is_some_and(|at| sending.planned.is_none_or(|planned| at < planned));
                if sleeps_past {
                    sending.planned = wake_at;
                    self.wake_sending();
                }
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("whoever holds this lock runs state machines, which do not panic")
}

/// Lends this thread's buffer; a nested call, from within a callback, gets one of its own.
fn with_buffer<T>(run: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    BUFFER.with(|cell| match cell.try_borrow_mut() {
        Ok(mut buffer) => {
            buffer.clear();
            run(&mut buffer)
        }
        Err(_) => run(&mut Vec::new()),
    })
}

impl<I> core::fmt::Debug for Shared<I> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
