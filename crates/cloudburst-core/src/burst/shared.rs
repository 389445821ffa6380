//! What the threads of an engine share, and what each of them does with it.

use super::PacketIo;
use super::drive::{Driving, PollerRole};
use super::parts::LockedParts;
use crate::proto::{Event, Transmit, coupling};
use crate::time::Instant;
use crate::wire::Role;
use core::cell::{Cell, RefCell};
use core::ptr;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, OnceLock, RwLock};
use std::thread::{self, Thread};

/// What may end the wait of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// One message more of this role is in the application's queue.
    Readable(Role),
    /// Sends have ended: there may be room for others.
    Room,
}

pub(super) type OnNews = Box<dyn Fn(News) + Send + Sync>;

/// A timer that fires this much late was held up together with the whole process: what came in
/// meanwhile is read before the timer is believed.
const HELD_UP: Duration = Duration::from_millis(5);
/// Batches that a thread sends which has something else to do: a caller, or the receiving thread.
/// The rest is the sending thread's, however fast the link is said to be.
const HELP: usize = 32;
/// Batches that the sending thread sends before it looks at its timers again.
const TIMERS_EVERY: usize = 16;
/// Packets that were taken together and count as come at one moment: some microseconds' worth.
const CLOCK_EVERY: u32 = 16;
/// A thread that yields for so long has given way to others that use all of their time.
const CROWDED: Duration = Duration::from_millis(2);
/// How long nobody busy-polls after that.
const CROWDED_FOR: Duration = Duration::from_millis(100);
/// The longest sleep of the receiving thread.
pub(super) const MAX_SLEEP: Duration = Duration::from_secs(1);

pub(super) struct Shared<I> {
    pub(super) io: I,
    pub(super) parts: LockedParts,
    pub(super) on_news: OnNews,
    /// Held for reading by threads that have packets in hand which the parts do not know yet.
    pub(super) in_hand: RwLock<()>,
    /// The sending thread, to wake.
    pub(super) sending_thread: OnceLock<Thread>,
    pub(super) driving: Driving,
    pub(super) busy_poll: Duration,
    /// Others need the processors until then, so that busy-polling takes longer than to sleep.
    pub(super) crowded_until: AtomicU64,
    /// The last packets came within that time.
    pub(super) soon: AtomicBool,
    /// Answers were put off.
    pub(super) pending_flush: AtomicBool,
    /// Signalled whenever a send has ended.
    pub(super) ended: Condvar,
    pub(super) stopping: AtomicBool,
}

thread_local! {
    /// One transmit buffer a thread, used again for every batch.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The engine whose events this thread is reporting, by its address; 0: none.
    static REPORTS: Cell<usize> = const { Cell::new(0) };
}

/// When answers leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Now,
    /// If the application has something new to read, when it has had the chance to respond: they
    /// leave with what it sends, or by [`Shared::flush`].
    AfterApplication,
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
            match self.pump(Who::SendingThread) {
                Some(at) => thread::park_timeout(at.saturating_since(self.io.now())),
                None => thread::park(),
            }
        }
    }

    pub(super) fn run_receiving(&self) {
        self.driving.register();
        while !self.is_stopping() {
            match self.driving.poller_role() {
                PollerRole::Poll => {
                    self.receive_for(MAX_SLEEP, Answers::Now, || false);
                    self.driving.polled();
                }
                PollerRole::Look => drop(self.receive(Duration::ZERO, Answers::Now)),
                PollerRole::Leave => {}
            }
        }
    }

    /// Waits for packets, or for what the receiver has to do, no longer than `limit`, and no longer
    /// than until `done`.
    pub(super) fn receive_for(
        &self,
        limit: Duration,
        answers: Answers,
        mut done: impl FnMut() -> bool,
    ) {
        let begun = self.io.now();
        let came = self.poll_busily(begun, limit, answers, &mut done).or_else(|| {
            if done() {
                return None;
            }
            let due = self.parts.lock_receiver().poll_timeout();
            let now = self.io.now();
            let left = limit.saturating_sub(now.saturating_since(begun)).min(MAX_SLEEP);
            let sleep = due.map_or(left, |at| at.saturating_since(now).min(left));
            self.receive(sleep, answers)
        });
        let soon = came.is_some_and(|at| at.saturating_since(begun) <= self.busy_poll);
        self.soon.store(soon, Ordering::Relaxed);
    }

    /// Looks for packets again and again, if the last ones came as soon as that; when they came.
    fn poll_busily(
        &self,
        begun: Instant,
        limit: Duration,
        answers: Answers,
        done: &mut impl FnMut() -> bool,
    ) -> Option<Instant> {
        let crowded = begun.as_nanos() < self.crowded_until.load(Ordering::Relaxed);
        if self.busy_poll.is_zero() || crowded || !self.soon.load(Ordering::Relaxed) {
            return None;
        }
        let until = begun + self.busy_poll.min(limit);
        loop {
            let came = self.receive(Duration::ZERO, answers);
            let leaves = self.is_stopping() || self.driving.by_another() || done();
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

    pub(super) fn wake_sending(&self) {
        if let Some(thread) = self.sending_thread.get() {
            thread.unpark();
        }
    }

    /// Takes packets, does what the receiver has to do by then, and sends what comes of both;
    /// returns when packets came, if any did. It counts as such if this reported what another
    /// thread took: whoever waits for it may be this thread, which does not wake itself.
    pub(super) fn receive(&self, timeout: Duration, answers: Answers) -> Option<Instant> {
        let came = self.take(timeout);
        // Whoever takes packets sees to it: while packets keep coming, nobody else may wait for
        // them. And only whoever has read the sockets may believe that nothing has come in time.
        self.parts.lock_receiver().handle_timeout(self.io.now());
        let readable = self.report();
        let later = answers == Answers::AfterApplication && readable;
        self.pending_flush.fetch_or(later, Ordering::SeqCst);
        if later {
            self.pump_symbols();
        } else {
            self.pump(Who::Other);
        }
        came.or_else(|| readable.then(|| self.io.now()))
    }

    fn take(&self, timeout: Duration) -> Option<Instant> {
        let (mut now, mut came, mut taken) = (Instant::ZERO, None, 0_u32);
        let ready = self.io.wait(timeout);
        let _in_hand = self.in_hand.read().expect("whoever holds this lock does not panic");
        self.io.take(ready, &mut |via, packet| {
            if taken.is_multiple_of(CLOCK_EVERY) {
                now = self.io.now();
                came.get_or_insert(now);
            }
            taken += 1;
            coupling::handle_datagram(&mut &self.parts, now, via, packet);
        });
        came
    }

    /// Tells the application what it should know; returns whether there is something new to read.
    ///
    /// A callback may run what it wakes, which may bring forth more events: they are reported by
    /// the call that is under way, or there would be one call within another for each of them.
    pub(super) fn report(&self) -> bool {
        let here = ptr::from_ref(self).addr();
        if REPORTS.get() == here {
            return false;
        }
        let outer = REPORTS.replace(here);
        let (mut readable, mut ended) = (false, false);
        while let Some(event) = coupling::poll_event(&mut &self.parts) {
            match event {
                Event::Readable(role) => {
                    readable = true;
                    contain(|| (self.on_news)(News::Readable(role)));
                }
                Event::Answered(call, result) => {
                    readable = true;
                    let on_answer = self.parts.lock_calling().on_answer.remove(&call);
                    if let Some(on_answer) = on_answer {
                        contain(|| on_answer(result));
                    }
                }
                Event::Ended(id, outcome) => {
                    ended = true;
                    let on_end = self.parts.lock_sending().on_end.remove(&id);
                    if let Some(on_end) = on_end {
                        contain(|| on_end(outcome));
                    }
                }
            }
        }
        if ended {
            self.ended.notify_all();
            contain(|| (self.on_news)(News::Room));
        }
        REPORTS.set(outer);
        // Whoever drives should look whether this is what it waits for.
        if (readable || ended) && self.driving.by_another() {
            self.io.wake();
        }
        readable
    }

    /// Sends what may be sent now. Returns when there is more to do.
    pub(super) fn pump(&self, who: Who) -> Option<Instant> {
        with_buffer(|buffer| {
            for batches in 0.. {
                if self.is_stopping() {
                    break;
                }
                if who == Who::SendingThread && batches % TIMERS_EVERY == 0 {
                    self.handle_timeout();
                    self.report();
                }
                if who == Who::Other && batches == HELP {
                    return self.plan(who, Some(Instant::ZERO), Answers::Now);
                }
                let now = self.io.now();
                match coupling::poll_transmit(&mut &self.parts, now, buffer) {
                    Some(transmit) => self.transmit(&transmit, buffer),
                    None => return self.plan(who, None, Answers::Now),
                }
            }
            None
        })
    }

    /// Sends the symbols that may be sent now, and with them what answers they take along.
    fn pump_symbols(&self) {
        with_buffer(|buffer| {
            for _ in 0..HELP {
                let now = self.io.now();
                match coupling::poll_symbols(&mut &self.parts, now, buffer) {
                    Some(transmit) => self.transmit(&transmit, buffer),
                    None => break,
                }
            }
            self.plan(Who::Other, None, Answers::AfterApplication);
        });
    }

    /// Sends the answers that were put off.
    pub(super) fn flush(&self) {
        if self.pending_flush.swap(false, Ordering::SeqCst) {
            self.pump(Who::Other);
        }
    }

    fn transmit(&self, transmit: &Transmit, buffer: &mut Vec<u8>) {
        if let Err(error) = self.io.transmit(transmit, buffer) {
            self.parts.lock_sending().sender.not_sent(transmit, error);
        }
        buffer.clear();
    }

    /// Does what is due of the sender and of calls. Only the sending thread does: it alone knows
    /// whether their timers can be believed.
    fn handle_timeout(&self) {
        let now = self.io.now();
        let due = self.parts.lock_sending().sender.next_timer();
        if due.is_some_and(|at| now.saturating_since(at) > HELD_UP) {
            // The process was held up, and what came in meanwhile is read first: what is still in
            // the sockets, and what other threads had taken from them when they were held up.
            self.take(Duration::ZERO);
            drop(self.in_hand.write().expect("whoever holds this lock does not panic"));
        }
        self.parts.lock_sending().sender.handle_timeout(now);
        self.parts.lock_calling().calls.handle_timeout(now);
    }

    /// Sees to it that the sending thread wakes as soon as there is something to do, or at `soon`;
    /// returns when that is. Answers that are held back for the application are nothing to do.
    fn plan(&self, who: Who, soon: Option<Instant>, answers: Answers) -> Option<Instant> {
        let calling = self.parts.lock_calling();
        let mut sending = self.parts.lock_sending();
        // Answers that wait for the rate are the sending thread's, too: the receiving thread sleeps
        // as long as it meant to before they came.
        let answers = match answers {
            Answers::Now => self.parts.lock_answering().and_then(|r| r.next_transmit()),
            Answers::AfterApplication => None,
        };
        let timeouts = [soon, answers, calling.calls.poll_timeout(), sending.sender.poll_timeout()];
        let wake_at = timeouts.into_iter().flatten().min();
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
        wake_at
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// Runs a callback that wakes whoever waits, and goes on if it panics: wakers are the
/// application's, and must take neither the thread that wakes with them nor what others wait for.
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
