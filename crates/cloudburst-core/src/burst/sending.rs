//! Sends packets that are ready, and sets the timer for those that are not.

use super::PacketIo;
use super::shared::{Answers, Shared};
use super::state::State;
use crate::proto::Transmit;
use core::cell::RefCell;
use core::time::Duration;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

/// The maximum number of batches that a thread sends in one go: it has other work. The timer, which is
/// then set to expire at once, makes whoever drives send the rest.
// Without a limit, one send of 1 MB took up to 0.6 s, because it sent the backlog of all
// callers; with it, 6 ms.
const MAX_BATCHES: usize = 32;
/// A message leaves at once if no more messages and connects than this are under way, itself
/// included: nothing else keeps the sender busy.
// Beyond these, messages wait for those that follow, and leave in common trains: ten messages of 5
// KB in each with 64 in flight, and as many in an answer.
const FEW_UNDER_WAY: usize = 4;
/// A timer that is no longer needed is reset if it has less than this left; otherwise it is left to
/// expire.
// Setting it is one system call, and a needless wake-up three. Resetting every outdated timer would
// take a call for each message.
const SOON: Duration = Duration::from_micros(200);

/// Who sends a message that waits for others to share a train with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// The caller, which says when.
    ByCaller,
    /// Whoever drives, soon.
    ByDriver,
}

thread_local! {
    /// The transmit buffer of each thread, reused for every batch.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl<I: PacketIo> Shared<I> {
    /// Sends what may be sent now.
    pub(super) fn pump(&self) {
        // Everything that was deferred so far is sent below.
        self.pending_flush.store(false, Ordering::SeqCst);
        self.transmit_all(Answers::Now);
    }

    /// Sends the symbols that may be sent now, and the answers that they carry.
    pub(super) fn pump_symbols(&self) {
        self.transmit_all(Answers::AfterApplication);
    }

    fn transmit_all(&self, answers: Answers) {
        with_buffer(|buffer| {
            for _ in 0..MAX_BATCHES {
                if self.is_stopping() {
                    return;
                }
                let now = self.io.now();
                let mut state = self.lock();
                let transmit = match answers {
                    Answers::Now => state.endpoint.poll_transmit(now, buffer),
                    Answers::AfterApplication => state.endpoint.poll_symbols(now, buffer),
                };
                drop(state);
                let Some(transmit) = transmit else { return };
                self.transmit(&transmit, buffer);
            }
        });
        self.plan();
    }

    /// Sends a message that has just begun at once if few others are under way. Otherwise it leaves with
    /// those that follow it, which takes fewer system calls. Returns whether the caller must flush.
    ///
    /// While others are under way, their answers and timers cause what is pending to be sent,
    /// whatever the caller does.
    pub(super) fn on_begun(&self, state: MutexGuard<'_, State>, flush: Flush) -> bool {
        // With a deadline of zero, it has already ended.
        let ended = state.endpoint.sender.has_events();
        let few = state.endpoint.unfinished() <= FEW_UNDER_WAY;
        drop(state);
        if ended {
            self.report();
        }
        match flush {
            _ if few => self.pump(),
            Flush::ByCaller => return self.defer(),
            Flush::ByDriver => self.plan(),
        }
        false
    }

    /// Sends the answers and messages that were deferred.
    pub(super) fn flush(&self) {
        if self.pending_flush.load(Ordering::SeqCst) {
            self.pump();
        }
    }

    fn transmit(&self, transmit: &Transmit, buffer: &mut Vec<u8>) {
        if let Err(error) = self.io.transmit(transmit, buffer) {
            self.lock().endpoint.not_sent(transmit, error);
        }
        buffer.clear();
    }

    /// Ensures that the timer expires as soon as there is something to do. Answers do not count while
    /// a flush is pending, which sends them.
    pub(super) fn plan(&self) {
        let now = self.io.now();
        let mut state = self.lock();
        let due = if self.pending_flush.load(Ordering::SeqCst) {
            state.endpoint.poll_timeout_without_answers()
        } else {
            state.endpoint.poll_timeout()
        };
        let must_set = match state.timer {
            None => due.is_some(),
            // It has expired, or would for nothing.
            Some(set) if set <= now => true,
            Some(set) if set <= now + SOON => due != Some(set),
            Some(set) => due.is_some_and(|due| due < set),
        };
        if must_set && !self.is_stopping() {
            state.timer = due;
            // With the lock, so that no other thread's earlier time is overwritten.
            self.io.set_timer(due);
        }
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
