//! Waits for packets, takes them, and reports the events that they cause.

use super::PacketIo;
use super::role::DriverRole;
use super::shared::{Answers, Shared, contain};
use super::state::State;
use crate::proto::Event;
use crate::time::Instant;
use core::cell::Cell;
use core::time::Duration;
use core::{iter, ptr};
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
    /// Waits for packets or for the timer, until `done`, and for at most `limit`.
    pub(super) fn receive_for(
        &self,
        role: DriverRole<'_>,
        limit: Duration,
        done: &mut impl FnMut() -> bool,
    ) {
        let begun = self.io.now();
        let slept = !self.soon.load(Ordering::Relaxed);
        let arrived_at = match self.poll_busily(role, begun, limit, done) {
            Ok(arrived_at) => arrived_at,
            Err(role) => {
                let left = limit.saturating_sub(self.io.now().saturating_since(begun));
                let ready = self.sleep(left, done);
                self.receive(role, ready, false, Answers::AfterApplication)
            }
        };
        // The wake-up of this thread took part of the time, and often that of its peer did, too.
        // Without allowance for that, a pair that has slept once would sleep in every round trip.
        let quick = self.busy_poll.saturating_mul(if slept { 2 } else { 1 });
        let soon = arrived_at.is_some_and(|at| at.saturating_since(begun) <= quick);
        // Relaxed, here and for `crowded_until`: they only choose between two ways to wait, both
        // correct.
        self.soon.store(soon, Ordering::Relaxed);
    }

    /// Busy-polls for packets, if the last ones arrived soon enough. `Err` returns the role if this
    /// thread may sleep. `Ok` has the time at which packets arrived, or `None` if it must not sleep for
    /// another reason.
    fn poll_busily<'a>(
        &'a self,
        mut role: DriverRole<'a>,
        begun: Instant,
        limit: Duration,
        done: &mut impl FnMut() -> bool,
    ) -> Result<Option<Instant>, DriverRole<'a>> {
        let crowded = begun.as_nanos() < self.crowded_until.load(Ordering::Relaxed);
        if self.busy_poll.is_zero() || crowded || !self.soon.load(Ordering::Relaxed) {
            return Err(role);
        }
        // To sleep and be woken takes longer than the rest of a round trip: over loopback, a call
        // of 1.5 KB with 5 KB of response takes 81 us that way, and 29 by busy-polling. It is done
        // only where the last packets came as soon, so that an idle endpoint burns no processor.
        let until = begun + self.busy_poll.min(limit);
        loop {
            let ready = self.io.wait(Duration::ZERO);
            let arrived_at = self.receive(role, ready, false, Answers::AfterApplication);
            if arrived_at.is_some() || self.is_stopping() || done() {
                return Ok(arrived_at);
            }
            let before = self.io.now();
            if before < until {
                // The thread that is to send them may need this processor.
                thread::yield_now();
                // A thread that sleeps gets a processor at once; one that yields waits for all
                // others.
                let now = self.io.now();
                if now.saturating_since(before) > CROWDED {
                    self.crowded_until.store((now + CROWDED_FOR).as_nanos(), Ordering::Relaxed);
                }
            }
            role = match self.driving.visit() {
                Some(role) if before >= until => return Err(role),
                Some(role) => role,
                None => return Ok(None),
            };
        }
    }

    /// Takes packets, serves timers, and sends what results from both. A thread that does not come back
    /// at once takes `all` packets; one that does answers some before it takes more. Returns the time at which
    /// packets arrived, if any did. Packets that another thread took and this one reported count, too:
    /// the thread that waits for them may be this one, which does not wake itself.
    pub(super) fn receive(
        &self,
        role: DriverRole<'_>,
        ready: I::Ready,
        all: bool,
        answers: Answers,
    ) -> Option<Instant> {
        let arrived_at = self.take_and_time(ready, all);
        // Code of the application may take long, and so may sending.
        drop(role);
        let readable = self.report();
        if answers == Answers::AfterApplication && readable {
            self.defer();
            self.pump_symbols();
        } else {
            self.pump();
        }
        arrived_at.or_else(|| readable.then(|| self.io.now()))
    }

    /// Takes packets, and then serves the timers that had expired before. This process may have been
    /// suspended: packets that arrived in time count before the timer does.
    fn take_and_time(&self, ready: I::Ready, all: bool) -> Option<Instant> {
        let begun = self.io.now();
        let has_expired = self.lock().timer.is_some_and(|set| set <= begun);
        let mut now = begun;
        let mut arrived_at = None;
        let mut since = 0;
        self.io.take(ready, all || has_expired, &mut |datagrams| {
            if since >= CLOCK_EVERY {
                now = self.io.now();
                since = 0;
            }
            arrived_at.get_or_insert(now);
            since += datagrams.count();
            let mut state = self.lock();
            let ce = datagrams.ce;
            datagrams.for_each(|via, packet| state.endpoint.handle_arrival(now, via, ce, packet));
        });
        self.io.take_refused(&mut |to, quoted| {
            self.lock().endpoint.handle_refused(now, to, quoted);
        });
        if self.io.has_moved() {
            self.lock().endpoint.announce(now);
        }
        if self.is_stopping() {
            // Others sleep as well, and this thread may have used up the wake-up.
            self.io.wake();
        }
        if has_expired {
            let State { endpoint, events, .. } = &mut *self.lock();
            // A call learns of its response when the endpoint's events are polled.
            events.extend(iter::from_fn(|| endpoint.next_event()));
            endpoint.handle_timeout(begun);
        }
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
                    // A message is complete, which a shutdown may wait for.
                    ended = true;
                    contain(|| (self.on_readable)(role));
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
        readable
    }

    fn next_event(&self) -> Option<Event> {
        let mut state = self.lock();
        state.events.pop_front().or_else(|| state.endpoint.next_event())
    }
}
