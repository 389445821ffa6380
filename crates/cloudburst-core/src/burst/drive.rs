//! Who takes packets from the sockets: the receiving thread, or a caller that waits for what they
//! bring.
//!
//! Waking another thread takes longer than all work on a packet, so a caller takes its packets
//! itself. Two threads that wait for the same sockets would take each other's: while a caller is
//! there, the receiving thread is not. When a caller leaves, it is mostly to come back: so the
//! receiving thread is not woken, but looks now and then, and comes back itself when nobody has
//! been there for a while. If a caller stays for long, it does not even look.

use core::cell::Cell;
use core::ptr;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::{self, Thread};

/// How long packets may lie when a caller has left: less than a sender waits for an answer.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// Looks without a caller, after which the receiving thread takes over.
const LOOKS: u64 = 5;

thread_local! {
    /// What this thread drives, by its address; 0: nothing.
    static DRIVES: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug, Default)]
pub(super) struct Driving {
    /// Held by the caller that drives.
    caller: Mutex<()>,
    /// Odd while a caller drives: it counts those that came and those that left.
    turns: AtomicU64,
    /// The receiving thread waits for the sockets, or for a caller to leave.
    polls: AtomicBool,
    /// Somebody who does not wait has told it to leave.
    told: AtomicBool,
    parked: AtomicBool,
    receiving_thread: OnceLock<Thread>,
    /// For the receiving thread alone: `turns` when it last looked, and since how many looks.
    seen: AtomicU64,
    unchanged: AtomicU64,
}

/// What the receiving thread should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollerRole {
    /// Wait for packets.
    Poll,
    /// Take what is there.
    Look,
    /// Nothing.
    Leave,
}

/// A caller drives until this is dropped.
pub(super) struct Caller<'a> {
    driving: &'a Driving,
    _only: MutexGuard<'a, ()>,
}

impl Driving {
    /// The calling thread drives, unless another one does.
    pub(super) fn begin(&self) -> Option<Caller<'_>> {
        let only = self.caller.try_lock().ok()?;
        self.turns.fetch_add(1, SeqCst);
        DRIVES.set(self.address());
        Some(Caller { driving: self, _only: only })
    }

    /// Whether a thread that is not this one drives.
    pub(super) fn by_another(&self) -> bool {
        self.turns.load(SeqCst) % 2 == 1 && DRIVES.get() != self.address()
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// What the receiving thread should do; rests first if a caller is there, or was lately.
    pub(super) fn poller_role(&self) -> PollerRole {
        let turns = self.turns.load(SeqCst);
        if turns == self.seen.swap(turns, SeqCst) {
            self.unchanged.fetch_add(1, SeqCst);
        } else {
            self.unchanged.store(0, SeqCst);
        }
        let unchanged = self.unchanged.load(SeqCst);
        if turns % 2 == 1 {
            if unchanged > LOOKS {
                self.park_while(turns);
            } else {
                thread::park_timeout(LOOK_EVERY);
            }
            return PollerRole::Leave;
        }
        if turns > 0 && unchanged <= LOOKS {
            thread::park_timeout(LOOK_EVERY);
            return if self.turns.load(SeqCst).is_multiple_of(2) {
                PollerRole::Look
            } else {
                PollerRole::Leave
            };
        }
        if self.begin_poll(turns) { PollerRole::Poll } else { PollerRole::Leave }
    }

    /// The receiving thread, which saw `turns`, waits for packets from now on: `false` if not.
    fn begin_poll(&self, turns: u64) -> bool {
        self.told.store(false, SeqCst);
        self.polls.store(true, SeqCst);
        // A caller that came before it could see this would wait for the same packets; one that has
        // left again may have put off STOPs, which nobody would look after.
        let nobody_came = self.turns.load(SeqCst) == turns;
        if !nobody_came {
            self.polled();
        }
        nobody_came
    }

    /// The receiving thread has ended its wait.
    pub(super) fn polled(&self) {
        self.polls.store(false, SeqCst);
    }

    /// The calling thread is the receiving thread. Before it rests for the first time, so that whoever
    /// ends its rest finds it.
    pub(super) fn register(&self) {
        let _ = self.receiving_thread.set(thread::current());
    }

    fn park_while(&self, turns: u64) {
        self.parked.store(true, SeqCst);
        if self.turns.load(SeqCst) == turns {
            thread::park();
        }
        self.parked.store(false, SeqCst);
    }

    /// Ends the rest of the receiving thread.
    pub(super) fn wake(&self) {
        if let Some(thread) = self.receiving_thread.get() {
            thread.unpark();
        }
    }
}

impl Caller<'_> {
    /// Whether the receiving thread waits for packets at this moment, and must be told to leave.
    pub(super) fn polled_by_another(&self) -> bool {
        self.driving.polls.load(SeqCst)
    }

    /// The same for whoever is told of packets by what tells of this, too: `true` once for each
    /// wait, or it would wake itself again and again until the receiving thread has had the
    /// processor.
    pub(super) fn first_to_tell(&self) -> bool {
        self.polled_by_another() && !self.driving.told.swap(true, SeqCst)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        DRIVES.set(0);
        self.driving.turns.fetch_add(1, SeqCst);
        if self.driving.parked.load(SeqCst) {
            self.driving.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_and_left_unseen_keeps_the_receiving_thread_from_waiting() {
        let driving = Driving::default();
        let seen = driving.turns.load(SeqCst);
        let caller = driving.begin().unwrap();
        assert!(!caller.polled_by_another(), "so nobody is told to leave");
        assert!(!driving.begin_poll(seen));
        drop(caller);
        assert!(!driving.begin_poll(seen));
        assert!(!driving.polls.load(SeqCst));
        assert_eq!(driving.poller_role(), PollerRole::Look);
        assert!(driving.begin_poll(driving.turns.load(SeqCst)));
        assert!(driving.begin().unwrap().polled_by_another());
    }
}
