//! What the threads of an engine share, and what each of them does with it.

use super::PacketIo;
use super::drive::{self, Driving};
use crate::error::Outcome;
use crate::id::MessageId;
use crate::proto::{
    Message, Receiver, ReceiverEvent, Sender, SenderEvent, Transmit, is_for_receiver,
};
use crate::time::Instant;
use core::cell::{Cell, RefCell};
use core::ptr;
use core::time::Duration;
use foldhash::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{self, Thread};

/// Called once, by whichever thread learns how a send ended.
pub type OnEnd = Box<dyn FnOnce(Outcome) + Send>;

pub(super) type OnMessage = Box<dyn Fn(Message) + Send + Sync>;

/// A timer that fires this much late was held up together with the whole process: what came in
/// meanwhile is read before the timer is believed.
const HELD_UP: Duration = Duration::from_millis(5);
/// Batches that a thread sends which has something else to do: a caller, or the receiving thread.
/// The rest is the sending thread's, however fast the link is said to be.
const HELP: usize = 32;
/// Packets that were taken together and count as come at one moment: some microseconds' worth.
const CLOCK_EVERY: u32 = 16;
/// A thread that yields for so long has given way to others that use all of their time.
const CROWDED: Duration = Duration::from_millis(2);
/// How long nobody looks for packets without sleeping after that.
const CROWDED_FOR: Duration = Duration::from_millis(100);
/// The longest sleep of the receiving thread.
pub(super) const MAX_SLEEP: Duration = Duration::from_secs(1);

pub(super) struct Shared<I> {
    pub(super) io: I,
    pub(super) sending: Mutex<Sending>,
    pub(super) receiver: Mutex<Receiver>,
    pub(super) on_message: OnMessage,
    /// Held while messages are passed on, so that no thread sends a STOP in between.
    pub(super) delivering: Mutex<()>,
    /// The sending thread, to wake.
    pub(super) sending_thread: OnceLock<Thread>,
    pub(super) driving: Driving,
    pub(super) busy_poll: Duration,
    /// Others need the processors until then, so that looking for packets takes longer than to sleep.
    pub(super) crowded_until: AtomicU64,
    /// The last packets came within that time.
    pub(super) soon: AtomicBool,
    /// STOPs were put off.
    pub(super) owes: AtomicBool,
    /// Signalled whenever a send has ended.
    pub(super) ended: Condvar,
    pub(super) stopping: AtomicBool,
}

pub(super) struct Sending {
    pub(super) sender: Sender,
    pub(super) on_end: HashMap<MessageId, OnEnd>,
    /// When the sending thread will wake by itself; `None`: not before it is woken.
    pub(super) planned: Option<Instant>,
}

thread_local! {
    /// One transmit buffer a thread, used again for every batch.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The engine whose messages this thread is passing on, by its address; and whether the
    /// application, woken by them, has given it more to pass on or to send.
    static DELIVERS: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// When STOPs leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stops {
    Now,
    /// Later, if messages were passed on: see [`Shared::take_along`] and [`Shared::pay`].
    AfterMessages,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    SendingThread,
    Other,
}

impl<I: PacketIo> Shared<I> {
    pub(super) fn run_sending(&self) {
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

    pub(super) fn run_receiving(&self) {
        while !self.is_stopping() {
            match self.driving.turn() {
                drive::Turn::Poll => {
                    self.receive_for(MAX_SLEEP, Stops::Now);
                    self.driving.polled();
                }
                drive::Turn::Look => {
                    self.receive(Duration::ZERO, Stops::Now);
                    self.forget_expired();
                }
                drive::Turn::Leave => {}
            }
        }
    }

    /// Waits for packets no longer than `limit`, and for what the receiver has to do.
    pub(super) fn receive_for(&self, limit: Duration, stops: Stops) {
        let begun = self.io.now();
        let came = self.poll_busily(begun, limit, stops).or_else(|| {
            let due = lock(&self.receiver).poll_timeout();
            let now = self.io.now();
            let left = limit.saturating_sub(now.saturating_since(begun));
            let sleep = due.map_or(left, |at| at.saturating_since(now).min(left));
            // Zero would not wait at all; the sweep can wait for a millisecond.
            self.receive(sleep.clamp(Duration::from_millis(1), MAX_SLEEP), stops)
        });
        let soon = came.is_some_and(|at| at.saturating_since(begun) <= self.busy_poll);
        self.soon.store(soon, Ordering::Relaxed);
        self.forget_expired();
    }

    /// Does what the receiver has to do in time. Whoever takes packets sees to it: while packets keep
    /// coming, nobody else may wait for them.
    pub(super) fn forget_expired(&self) {
        lock(&self.receiver).handle_timeout(self.io.now());
    }

    /// Looks for packets again and again, if the last ones came as soon as that; when they came.
    fn poll_busily(&self, begun: Instant, limit: Duration, stops: Stops) -> Option<Instant> {
        let crowded = begun.as_nanos() < self.crowded_until.load(Ordering::Relaxed);
        if self.busy_poll.is_zero() || crowded || !self.soon.load(Ordering::Relaxed) {
            return None;
        }
        let until = begun + self.busy_poll.min(limit);
        loop {
            let came = self.receive(Duration::ZERO, stops);
            let leaves = self.is_stopping() || self.driving.by_another();
            let before = self.io.now();
            if came.is_some() || leaves || before >= until {
                return came;
            }
            // Whoever is to send them may need this processor.
            thread::yield_now();
            // Whoever sleeps is given a processor at once; whoever yields waits for all others.
            let now = self.io.now();
            if now.saturating_since(before) > CROWDED {
                self.crowded_until.store((now + CROWDED_FOR).as_nanos(), Ordering::Relaxed);
            }
        }
    }

    /// Sends the STOPs that were put off.
    pub(super) fn pay(&self) {
        if self.owes.swap(false, Ordering::SeqCst) {
            self.flush_receiver(Stops::Now);
        }
    }

    pub(super) fn wake_sending(&self) {
        if let Some(thread) = self.sending_thread.get() {
            thread.unpark();
        }
    }

    /// Has whoever drives look at what `done` says, if that is another thread.
    pub(super) fn tell_driver(&self) {
        if self.driving.by_another() {
            self.io.wake();
        }
    }

    /// Takes packets; returns when they came, if any did. It counts as such if this passed on what
    /// another thread took: whoever waits for it may be this thread, which does not wake itself.
    pub(super) fn receive(&self, timeout: Duration, stops: Stops) -> Option<Instant> {
        let (mut answers, mut came) = (false, None);
        let (mut now, mut taken) = (Instant::ZERO, 0_u32);
        self.io.receive(timeout, &mut |via, packet| {
            if taken.is_multiple_of(CLOCK_EVERY) {
                now = self.io.now();
                came.get_or_insert(now);
            }
            taken += 1;
            if is_for_receiver(packet) {
                lock(&self.receiver).handle_datagram(now, via, packet);
            } else {
                answers = true;
                lock(&self.sending).sender.handle_datagram(now, packet);
            }
        });
        let passed_on = self.flush_receiver(stops);
        if answers {
            self.pump(Who::Other);
        }
        came.or_else(|| passed_on.then(|| self.io.now()))
    }

    /// Passes on what the receiver has to say: first the messages, then the STOPs, which claim
    /// that the application has them. A late symbol may have another thread say the same STOP: it
    /// waits until this one has passed the message on. Returns whether anything was passed on.
    pub(super) fn flush_receiver(&self, stops: Stops) -> bool {
        if self.delivers_here() {
            // A waker ran what it woke, or dropped it, and that sent or took something: this thread
            // does the rest when it has passed on what it is at.
            DELIVERS.set((self.address(), true));
            return false;
        }
        let mut passed_on = false;
        while self.flush_receiver_once(stops, &mut passed_on) {}
        passed_on
    }

    /// Whether this thread is at passing on messages: others may be waiting for it.
    pub(super) fn delivers_here(&self) -> bool {
        DELIVERS.get().0 == self.address()
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Returns whether there is more by now; notes whether anything was passed on.
    fn flush_receiver_once(&self, stops: Stops, passed_on: &mut bool) -> bool {
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
            let outer = DELIVERS.replace((self.address(), false));
            for event in events {
                match event {
                    ReceiverEvent::Message(message) => {
                        contain(|| (self.on_message)(message));
                        delivered = true;
                    }
                    ReceiverEvent::Confirmed(peering) => {
                        lock(&self.sending).sender.adopt(self.io.now(), peering);
                        met = true;
                    }
                }
            }
            let (_, more) = DELIVERS.replace(outer);
            drop(delivering);
            if delivered {
                self.tell_driver();
            }
            *passed_on |= delivered || met;
            let mut contents = &buffer[..];
            for transmit in &transmits {
                let (packet, rest) = contents.split_at(transmit.len);
                // The peer asks again for an answer that is lost, wherever.
                let _ = self.io.transmit(transmit, packet);
                contents = rest;
            }
            if met {
                self.pump(Who::Other);
            }
            more
        })
    }

    /// Sends what may be sent now and reports what has ended. Returns when there is more to do.
    pub(super) fn pump(&self, who: Who) -> Option<Instant> {
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
                if let Some(transmit) = transmit {
                    let transmit = self.take_along(transmit, buffer);
                    if let Err(error) = self.io.transmit(&transmit, buffer) {
                        lock(&self.sending).sender.not_sent(&transmit, error);
                    }
                    buffer.clear();
                }
                if !ended.is_empty() {
                    for (call, outcome) in ended {
                        contain(|| call(outcome));
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

    /// Has a STOP that was put off leave with symbols for the same peer: it costs no system call,
    /// and the peer is not woken for it.
    fn take_along(&self, transmit: Transmit, buffer: &mut Vec<u8>) -> Transmit {
        if !self.owes.load(Ordering::SeqCst) {
            return transmit;
        }
        // Where messages are being passed on, or are yet to be, their STOPs must wait for that.
        let Ok(_delivering) = self.delivering.try_lock() else { return transmit };
        let mut receiver = lock(&self.receiver);
        if receiver.has_events() { transmit } else { receiver.poll_passenger(transmit, buffer) }
    }

    /// Sees to it that the sending thread wakes no later than `wake_at`.
    pub(super) fn plan(&self, sending: &mut Sending, who: Who, wake_at: Option<Instant>) {
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

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("whoever holds this lock runs state machines, which do not panic")
}

/// Runs a callback that wakes whoever waits, and goes on if it panics: a waker may be anybody's, and
/// must take neither the thread that wakes with it nor what others wait for.
pub fn contain(callback: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a waker, or what was dropped with it, panicked");
    }
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
