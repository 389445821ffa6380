//! The threads, and what their owner may ask of them.

use super::PacketIo;
use super::drive::Driving;
use super::shared::{MAX_SLEEP, OnEnd, Sending, Shared, Stops, Who, contain, lock};
use crate::error::SendError;
use crate::id::MessageId;
use crate::path::{OrderError, PathMap, PathStats};
use crate::proto::{Counters, Endpoint, Latencies, Message, PeerStats, SendOptions, merge_peers};
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::time::Duration;
use foldhash::{HashMap, HashMapExt};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::{io, thread};

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

/// How long no symbol must have come before a closing endpoint stops repeating its STOPs: twice
/// the longest pause of a sender that hears nothing.
const QUIET: Duration = Duration::from_millis(200);

/// An endpoint with its two threads. Dropping it stops both, and every burst, at once.
#[derive(Debug)]
pub struct Engine<I: PacketIo> {
    shared: Arc<Shared<I>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<I: PacketIo> Engine<I> {
    /// Starts the threads. `on_message` takes each delivered message: when it returns, the message
    /// counts as the application's. It must not block, nor close this engine; it may send, cancel,
    /// release and [`stop`](Self::stop).
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
            soon: AtomicBool::new(false),
            crowded_until: AtomicU64::new(0),
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
    /// STOPs for messages that this brings leave with what the caller sends next, or when it
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
            // It may have passed on what is waited for, and a thread does not wake itself.
            if done() {
                return Driven::Done;
            }
            let limit = until.map_or(MAX_SLEEP, |at| at.saturating_since(now));
            shared.receive_for(limit, Stops::AfterMessages);
        }
    }

    /// Takes what has come in, without waiting, and returns whether anything had, or was passed on
    /// that another thread had taken: for whoever is
    /// told by other means that packets are there. Nothing is taken while another thread
    /// [drives](Self::drive). The receiving thread rests for a while, looking now and then.
    ///
    /// STOPs for messages that this brings leave with what is sent next, or by
    /// [`flush`](Self::flush), or when the receiving thread looks.
    pub fn take(&self) -> bool {
        let Some(turn) = self.shared.driving.begin() else { return false };
        if turn.first_to_tell() {
            self.shared.io.wake();
        }
        if self.shared.is_stopping() {
            return false;
        }
        let came = self.shared.receive(Duration::ZERO, Stops::AfterMessages).is_some();
        self.shared.forget_expired();
        came
    }

    /// [`Config::busy_poll`](crate::config::Config::busy_poll).
    pub fn busy_poll(&self) -> Duration {
        self.shared.busy_poll
    }

    /// Sends the STOPs that were put off.
    pub fn flush(&self) {
        self.shared.pay();
    }

    /// The sockets.
    pub fn io(&self) -> &I {
        &self.shared.io
    }

    /// Uses other paths from now on. See [`Endpoint::set_path_map`].
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

    /// Stops the threads and every burst at once, and waits for the threads; not if it is called while
    /// this thread passes on a message.
    pub fn stop(&self) {
        // Whoever took the last message has it: its sender should hear so.
        self.shared.pay();
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake_sending();
        self.shared.driving.wake();
        self.shared.io.wake();
        // A thread that is passing messages on is what the others may wait for: they end by
        // themselves when it has done so.
        let is_waited_for = self.shared.delivers_here();
        for thread in lock(&self.threads).drain(..) {
            let joins = !is_waited_for && thread.thread().id() != thread::current().id();
            if joins && thread.join().is_err() {
                tracing::error!("a thread of the endpoint panicked");
            }
        }
        // Nothing ends any more. Dropped without the lock: callbacks may hold whatever they like.
        let unended = core::mem::take(&mut lock(&self.shared.sending).on_end);
        self.shared.ended.notify_all();
        unended.into_values().for_each(|on_end| contain(|| drop(on_end)));
    }
}

impl<I: PacketIo> Drop for Engine<I> {
    fn drop(&mut self) {
        self.stop();
    }
}
