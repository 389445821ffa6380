//! Waits for packets, takes them, and reports the events that they cause.

use super::PacketIo;
use super::drive::PollerRole;
use super::shared::{Answers, EngineEvent, MAX_SLEEP, Shared, ThreadRole, contain};
use crate::proto::Event;
use crate::time::Instant;
use core::cell::Cell;
use core::ptr;
use core::time::Duration;
use std::sync::atomic::Ordering;
use std::thread;

/// Packets taken together that count as having arrived at the same moment: a few microseconds'
/// worth.
const CLOCK_EVERY: usize = 16;
/// A yield that takes longer than this has given way to threads that use up their time slices.
// With 0.5 ms, work of the endpoint's own threads counted, which cost a tenth of the messages under
// a flood.
const CROWDED: Duration = Duration::from_millis(2);
/// How long no thread busy-polls after that.
const CROWDED_FOR: Duration = Duration::from_millis(100);

thread_local! {
    /// The address of the engine whose events this thread is reporting; 0 if none.
    static REPORTS: Cell<usize> = const { Cell::new(0) };
}

impl<I: PacketIo> Shared<I> {
    pub(super) fn run_receiving(&self) {
        self.driving.register();
        while !self.is_stopping() {
            match self.driving.poller_role() {
                PollerRole::Wait => {
                    self.receive_for(MAX_SLEEP, Answers::Now, || false);
                    self.driving.end_wait();
                }
                PollerRole::Poll => drop(self.receive(Duration::ZERO, Answers::Now)),
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
        let arrived_at = self.poll_busily(begun, limit, answers, &mut done).or_else(|| {
            if done() {
                return None;
            }
            let due = self.lock().endpoint.receiver.poll_timeout();
            let now = self.io.now();
            let left = limit.saturating_sub(now.saturating_since(begun)).min(MAX_SLEEP);
            let sleep = due.map_or(left, |at| at.saturating_since(now).min(left));
            self.receive(sleep, answers)
        });
        // The wake-up of this thread took part of the time, and often that of its peer did, too.
        // Without allowance for that, a pair that has slept once would sleep in every round trip.
        let quick = self.busy_poll.saturating_mul(if slept { 2 } else { 1 });
        let soon = arrived_at.is_some_and(|at| at.saturating_since(begun) <= quick);
        // Relaxed, here and for `crowded_until`: they only choose between two ways to wait, both
        // correct.
        self.soon.store(soon, Ordering::Relaxed);
    }

    /// Busy-polls for packets, if the last ones arrived soon enough. Returns the time at which
    /// packets arrived, if any did.
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
        // To sleep and be woken takes longer than the rest of a round trip: over loopback, a call
        // of 1.5 KB with 5 KB of response takes 81 us that way, and 29 by busy-polling. It is done
        // only where the last packets came as soon, so that an idle endpoint burns no processor.
        let until = begun + self.busy_poll.min(limit);
        loop {
            let arrived_at = self.receive(Duration::ZERO, answers);
            let leaves = self.is_stopping() || self.driving.by_another() || done();
            let before = self.io.now();
            if arrived_at.is_some() || leaves || before >= until {
                return arrived_at;
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

    /// Takes packets, serves the receiver's timers, and sends what results from both. Returns the
    /// time at which packets arrived, if any did. Packets that another thread took and this one
    /// reported count, too: the thread that waits for them may be this one, which does not wake
    /// itself.
    pub(super) fn receive(&self, timeout: Duration, answers: Answers) -> Option<Instant> {
        let arrived_at = self.take(timeout);
        // The thread that takes packets serves the timers: while packets keep coming, no other
        // thread may wait for them. Only a thread that has read the sockets may conclude that
        // nothing arrived in time.
        self.lock().endpoint.receiver.handle_timeout(self.io.now());
        let readable = self.report();
        let later = answers == Answers::AfterApplication && readable;
        self.pending_flush.fetch_or(later, Ordering::SeqCst);
        if later {
            self.pump_symbols();
        } else {
            self.pump(ThreadRole::Other);
        }
        arrived_at.or_else(|| readable.then(|| self.io.now()))
    }

    pub(super) fn take(&self, timeout: Duration) -> Option<Instant> {
        let mut now = Instant::ZERO;
        let mut arrived_at = None;
        let mut since = 0;
        let ready = self.io.wait(timeout);
        let _in_hand = self.in_hand.read().expect("holders of this lock do not panic");
        self.io.take(ready, &mut |datagrams| {
            if arrived_at.is_none() || since >= CLOCK_EVERY {
                now = self.io.now();
                since = 0;
                arrived_at.get_or_insert(now);
            }
            since += datagrams.count();
            let mut state = self.lock();
            let ce = datagrams.ce;
            datagrams.for_each(|via, packet| state.endpoint.handle_arrival(now, via, ce, packet));
        });
        arrived_at
    }

    /// Wakes a thread that shuts the engine down, to check again what it waits for.
    pub(super) fn notify_closing(&self) {
        // `notify_all` is a system call even without waiters.
        if self.closing.load(Ordering::SeqCst) {
            // That thread checks with this lock held, and releases it while it waits.
            let _state = self.lock();
            self.ended.notify_all();
        }
    }

    /// Reports events to the application. Returns whether there is something new to read.
    ///
    /// A callback may run the task that it wakes, and that may cause more events. The outermost call
    /// reports those too; otherwise, calls would nest once per event.
    pub(super) fn report(&self) -> bool {
        let here = ptr::from_ref(self).addr();
        if REPORTS.get() == here {
            return false;
        }
        let outer = REPORTS.replace(here);
        let mut readable = false;
        let mut ended = false;
        while let Some(event) = self.next_event() {
            match event {
                Event::Readable(role) => {
                    readable = true;
                    contain(|| (self.on_event)(EngineEvent::Readable(role)));
                }
                Event::Answered(call, result) => {
                    readable = true;
                    let on_answer = self.lock().on_answer.remove(&call);
                    self.notify_closing();
                    if let Some(on_answer) = on_answer {
                        contain(|| on_answer(result));
                    }
                }
                Event::Withdrawn(request) => {
                    ended = true;
                    let on_withdrawn = self.lock().on_withdrawn.remove(&request);
                    if let Some(on_withdrawn) = on_withdrawn {
                        contain(on_withdrawn);
                    }
                }
                Event::Ended(id, outcome) => {
                    ended = true;
                    let on_end = self.lock().on_end.remove(&id);
                    if let Some((on_end, bytes)) = on_end {
                        contain(|| on_end(outcome));
                        contain(|| drop(bytes));
                    }
                }
                Event::Connected(id, result) => {
                    ended = true;
                    let on_connect = self.lock().on_connect.remove(&id);
                    if let Some(on_connect) = on_connect {
                        contain(|| on_connect(result));
                    }
                }
            }
        }
        if ended {
            self.notify_closing();
        }
        REPORTS.set(outer);
        // The driving thread should check whether this is what it waits for.
        if (readable || ended) && self.driving.by_another() {
            self.io.wake();
        }
        readable
    }

    fn next_event(&self) -> Option<Event> {
        self.lock().endpoint.next_event()
    }
}
