//! Sends packets that are ready, and serves the timers of the sender and of calls.

use super::PacketIo;
use super::shared::{Answers, Flush, Shared, ThreadRole};
use crate::proto::Transmit;
use crate::time::Instant;
use core::cell::RefCell;
use core::time::Duration;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A timer that is later than this means that the whole process was suspended. The engine then
/// reads the packets that have arrived in the meantime before it trusts the timer.
const SUSPENDED: Duration = Duration::from_millis(5);
/// The maximum number of batches that a thread with other work sends: a caller, or the receiving
/// thread. The sending thread sends the rest, whatever the configured rate of the link.
// Without a limit, one `try_send` of 1 MB took up to 0.6 s, because it sent the backlog of all
// callers; with it, 6 ms.
const HELP: usize = 32;
/// A message leaves at once if no more messages and connects than this are under way, itself
/// included: nothing else keeps the sender busy.
// Beyond these, messages wait for those that follow, and leave in common trains: ten messages of 5
// KB in each with 64 in flight, and as many in an answer.
const FEW_UNDER_WAY: usize = 4;
/// Batches that the sending thread sends before it checks its timers again.
const TIMERS_EVERY: usize = 16;

thread_local! {
    /// The transmit buffer of each thread, reused for every batch.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl<I: PacketIo> Shared<I> {
    pub(super) fn run_sending(&self) {
        let _ = self.sending_thread.set(thread::current());
        while !self.is_stopping() {
            // No wake-up is lost: `unpark` before `park` makes it return at once.
            match self.pump(ThreadRole::SendingThread) {
                Some(at) => thread::park_timeout(at.saturating_since(self.io.now())),
                None => thread::park(),
            }
        }
    }

    pub(super) fn wake_sending(&self) {
        if let Some(thread) = self.sending_thread.get() {
            thread.unpark();
        }
    }

    /// Ensures that the sending thread wakes by `at`.
    pub(super) fn wake_by(&self, at: Instant) {
        let mut state = self.lock();
        if state.planned.is_none_or(|planned| at < planned) {
            state.planned = Some(at);
            drop(state);
            self.wake_sending();
        }
    }

    /// Sends what may be sent now. Returns the time at which there is more to do.
    pub(super) fn pump(&self, role: ThreadRole) -> Option<Instant> {
        let helping = (role == ThreadRole::Other).then(|| Helping::begin(&self.helpers));
        let (soon, over) = with_buffer(|buffer| {
            for batches in 0.. {
                if self.is_stopping() {
                    return (None, true);
                }
                if role == ThreadRole::SendingThread && batches % TIMERS_EVERY == 0 {
                    self.handle_timeout();
                    self.report();
                }
                if role == ThreadRole::SendingThread && self.gives_way() {
                    return (None, true);
                }
                if batches == 0 {
                    // Everything that was deferred so far is sent below.
                    self.pending_flush.store(false, Ordering::SeqCst);
                }
                if role == ThreadRole::Other && batches == HELP {
                    return (Some(Instant::ZERO), false);
                }
                let now = self.io.now();
                let transmit = self.lock().endpoint.poll_transmit(now, buffer);
                match transmit {
                    Some(transmit) => self.transmit(&transmit, buffer),
                    None => break,
                }
            }
            (None, false)
        });
        // Dropped before the plan, which wakes a sending thread that gave way to this one.
        drop(helping);
        if over { None } else { self.plan(role, soon, Answers::Now) }
    }

    /// Whether the sending thread leaves the sockets to another thread that is sending, because its
    /// packets would overtake those that the other holds. The plan of the other thread wakes it.
    fn gives_way(&self) -> bool {
        let mut state = self.lock();
        let gives_way = self.helpers.load(Ordering::SeqCst) > 0;
        if gives_way {
            state.planned = None;
        }
        gives_way
    }

    /// Sends the symbols that may be sent now, and the answers that they carry.
    pub(super) fn pump_symbols(&self) {
        let helping = Helping::begin(&self.helpers);
        with_buffer(|buffer| {
            for _ in 0..HELP {
                let now = self.io.now();
                let transmit = self.lock().endpoint.poll_symbols(now, buffer);
                match transmit {
                    Some(transmit) => self.transmit(&transmit, buffer),
                    None => break,
                }
            }
        });
        drop(helping);
        self.plan(ThreadRole::Other, None, Answers::AfterApplication);
    }

    /// Sends a new message at once if few others are under way. Otherwise it leaves with those that
    /// follow it, which takes fewer system calls. Returns whether the caller must flush.
    ///
    /// While others are under way, their answers and timers cause what is pending to be sent,
    /// whatever the caller does.
    pub(super) fn send_now_or_with_others(&self, flush: Flush) -> bool {
        let mut state = self.lock();
        if state.endpoint.unfinished() <= FEW_UNDER_WAY {
            drop(state);
            self.pump(ThreadRole::Other);
            return false;
        }
        // Without a plan, nothing would send it if the caller's runtime became idle.
        if flush == Flush::ByCaller && state.planned.is_some() {
            return !self.pending_flush.swap(true, Ordering::SeqCst);
        }
        if state.planned != Some(Instant::ZERO) {
            state.planned = Some(Instant::ZERO);
            drop(state);
            self.wake_sending();
        }
        false
    }

    /// Sends the answers and messages that were deferred.
    pub(super) fn flush(&self) {
        if self.pending_flush.load(Ordering::SeqCst) {
            self.pump(ThreadRole::Other);
        }
    }

    fn transmit(&self, transmit: &Transmit, buffer: &mut Vec<u8>) {
        if let Err(error) = self.io.transmit(transmit, buffer) {
            self.lock().endpoint.not_sent(transmit, error);
        }
        buffer.clear();
    }

    /// Serves the timers of the sender and of calls. Only the sending thread does this, because it
    /// alone knows whether their timers can be trusted.
    fn handle_timeout(&self) {
        let now = self.io.now();
        let due = {
            let endpoint = &self.lock().endpoint;
            [endpoint.sender.next_timer(), endpoint.calls.poll_timeout()]
                .into_iter()
                .flatten()
                .min()
        };
        if due.is_some_and(|at| now.saturating_since(at) > SUSPENDED) {
            // The process was suspended. First reads what has arrived in the meantime: packets still
            // in the sockets, and packets that other threads had taken when they were suspended.
            self.take(Duration::ZERO);
            // Otherwise a message could end as perhaps delivered with its STOP in hand: 4 of 84
            // times in which the process was paused.
            drop(self.in_hand.write().expect("holders of this lock do not panic"));
            self.report();
        }
        let endpoint = &mut self.lock().endpoint;
        endpoint.sender.handle_timeout(now);
        endpoint.calls.handle_timeout(now);
    }

    /// Ensures that the sending thread wakes as soon as there is something to do, or at `soon`.
    /// Returns that time. Answers that are deferred for the application do not count.
    fn plan(&self, role: ThreadRole, soon: Option<Instant>, answers: Answers) -> Option<Instant> {
        let mut state = self.lock();
        let endpoint = &state.endpoint;
        // The sending thread also sends answers that wait for the pacer. The receiving thread
        // planned its sleep before they were queued.
        let answers = match answers {
            Answers::Now => endpoint.receiver.next_transmit(),
            Answers::AfterApplication => None,
        };
        let timeouts =
            [soon, answers, endpoint.calls.poll_timeout(), endpoint.sender.poll_timeout()];
        let wake_at = timeouts.into_iter().flatten().min();
        match role {
            ThreadRole::SendingThread => state.planned = wake_at,
            ThreadRole::Other => {
                let sleeps_past =
                    wake_at.is_some_and(|at| state.planned.is_none_or(|planned| at < planned));
                if sleeps_past {
                    state.planned = wake_at;
                    // Without the lock, which the woken thread takes first.
                    drop(state);
                    self.wake_sending();
                }
            }
        }
        wake_at
    }
}

/// Marks a thread other than the sending thread as sending, until this is dropped.
struct Helping<'a>(&'a AtomicUsize);

impl<'a> Helping<'a> {
    fn begin(helpers: &'a AtomicUsize) -> Self {
        helpers.fetch_add(1, Ordering::SeqCst);
        Self(helpers)
    }
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
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
