//! State that the threads of an engine share, and the work that each thread does with it.

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

/// News that may end a caller's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Another message of this role is in the application's queue.
    Readable(Role),
    /// Sends have ended: there may be room for more.
    Room,
}

pub(super) type OnNews = Box<dyn Fn(News) + Send + Sync>;

/// How late a timer fires if the whole process was held up. The engine then reads what arrived
/// meanwhile before it believes the timer.
const HELD_UP: Duration = Duration::from_millis(5);
/// Batches that a thread with other work sends: a caller, or the receiving thread. The sending
/// thread sends the rest, however fast the link is said to be.
const HELP: usize = 32;
/// Batches that the sending thread sends before it looks at its timers again.
const TIMERS_EVERY: usize = 16;
/// Packets taken together that count as having arrived at one moment: some microseconds' worth.
const CLOCK_EVERY: u32 = 16;
/// A yield that takes this long has given way to threads that use all of their time.
const CROWDED: Duration = Duration::from_millis(2);
/// How long no thread busy-polls after that.
const CROWDED_FOR: Duration = Duration::from_millis(100);
/// The longest sleep of the receiving thread.
pub(super) const MAX_SLEEP: Duration = Duration::from_secs(1);

pub(super) struct Shared<I> {
    pub(super) io: I,
    pub(super) parts: LockedParts,
    pub(super) on_news: OnNews,
    /// Held for reading by threads that have packets in hand and have not handed them in yet.
    pub(super) in_hand: RwLock<()>,
    /// The sending thread, to wake.
    pub(super) sending_thread: OnceLock<Thread>,
    pub(super) driving: Driving,
    pub(super) busy_poll: Duration,
    /// Until then, other threads need the processors, and busy-polling takes longer than sleeping.
    pub(super) crowded_until: AtomicU64,
    /// Whether the last packets came within `busy_poll`.
    pub(super) soon: AtomicBool,
    /// Whether answers were put off.
    pub(super) pending_flush: AtomicBool,
    /// Signalled when a send has ended.
    pub(super) ended: Condvar,
    pub(super) stopping: AtomicBool,
}

thread_local! {
    /// The transmit buffer of each thread, reused for every batch.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The engine whose events this thread is reporting, by its address; 0: none.
    static REPORTS: Cell<usize> = const { Cell::new(0) };
}

/// When answers leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Now,
    /// If the application has something new to read, once it has had the chance to respond: with
    /// what it sends, or by [`Shared::flush`].
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
            // No wake-up is lost: `unpark` before `park` makes it return at once.
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

    /// Waits for packets or for the receiver's timers, until `done`, and for at most `limit`.
    pub(super) fn receive_for(
        &self,
        limit: Duration,
        answers: Answers,
        mut done: impl FnMut() -> bool,
    ) {
        let begun = self.io.now();
        let slept = !self.soon.load(Ordering::Relaxed);
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
        // The wake-up of this thread took part of the time, and often that of its peer did, too. A
        // pair that once slept would otherwise sleep in every round trip from then on.
        let quick = if slept { self.busy_poll * 2 } else { self.busy_poll };
        let soon = came.is_some_and(|at| at.saturating_since(begun) <= quick);
        self.soon.store(soon, Ordering::Relaxed);
    }

    /// Busy-polls for packets, if the last ones came that quickly. Returns when packets came.
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
            // The thread that is to send them may need this processor.
            thread::yield_now();
            // A thread that sleeps gets a processor at once; one that yields waits for all others.
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

    /// Takes packets, serves the receiver's timers, and sends what results from both. Returns when
    /// packets came, if any did. It counts as such if this reported what another thread took: the
    /// thread that waits for it may be this one, which does not wake itself.
    pub(super) fn receive(&self, timeout: Duration, answers: Answers) -> Option<Instant> {
        let came = self.take(timeout);
        // The thread that takes packets serves the timers: while packets keep coming, no other
        // thread may wait for them. Only a thread that has read the sockets may conclude that
        // nothing came in time.
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

    /// Reports events to the application. Returns whether there is something new to read.
    ///
    /// A callback may run what it wakes, which may cause more events. The call under way reports
    /// those too; otherwise, calls would nest once per event.
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
        // The driving thread should check whether this is what it waits for.
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

    /// Sends the symbols that may be sent now, and the answers that they carry.
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

    /// Serves the timers of the sender and of calls. Only the sending thread does this, because it
    /// alone knows whether their timers can be believed.
    fn handle_timeout(&self) {
        let now = self.io.now();
        let calls = self.parts.lock_calling().calls.poll_timeout();
        let due =
            [self.parts.lock_sending().sender.next_timer(), calls].into_iter().flatten().min();
        if due.is_some_and(|at| now.saturating_since(at) > HELD_UP) {
            // The process was held up. Read what arrived meanwhile first: packets still in the
            // sockets, and packets that other threads had taken when they were held up.
            self.take(Duration::ZERO);
            drop(self.in_hand.write().expect("whoever holds this lock does not panic"));
            self.report();
        }
        self.parts.lock_sending().sender.handle_timeout(now);
        self.parts.lock_calling().calls.handle_timeout(now);
    }

    /// Ensures that the sending thread wakes as soon as there is something to do, or at `soon`.
    /// Returns when that is. Answers that are held back for the application do not count.
    fn plan(&self, who: Who, soon: Option<Instant>, answers: Answers) -> Option<Instant> {
        let calling = self.parts.lock_calling();
        let mut sending = self.parts.lock_sending();
        // The sending thread also sends answers that wait for the rate. The receiving thread sleeps
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

/// Runs a callback that wakes waiters, and contains its panics. Wakers are the application's: a
/// panic must harm neither the thread that wakes them nor other waiters.
pub fn contain(callback: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a waker, or what was dropped with it, panicked");
    }
}

/// Lends this thread's buffer. A nested call, from within a callback, gets a buffer of its own.
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
