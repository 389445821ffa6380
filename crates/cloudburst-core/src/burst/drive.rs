//! Decides which thread takes packets from the sockets: the receiving thread, or a caller that
//! waits for a message or an outcome.
//!
//! Waking another thread takes longer than all work on a packet, so a caller takes its packets
//! itself. Two threads that wait for the same sockets would take each other's packets, so the
//! receiving thread stays away while a caller is there. A caller that leaves usually comes back, so
//! the receiving thread is not woken. It checks the sockets now and then, and takes over when no
//! caller has been there for a while. If a caller stays for long, it does not even check.

use core::cell::Cell;
use core::ptr;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::{self, Thread};

/// How long the receiving thread rests before it checks the sockets, while callers come and go.
// Less than a sender waits for an answer.
const POLL_EVERY: Duration = Duration::from_micros(200);
/// How many times the rest doubles while callers keep coming: a wake-up that only finds a caller
/// interrupts that caller.
// At 200 us throughout, the receiving thread took some of a busy caller's packets: half of all
// round trips had a thread switch in them, and 93 KB took 100 us instead of 83.
const MAX_BUSY: u32 = 2;
/// Checks without a caller after which the receiving thread takes over.
const MAX_IDLE_POLLS: u64 = 5;

thread_local! {
    /// The address of the [`Driving`] that this thread drives; 0 if none.
    static DRIVES: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug, Default)]
pub(super) struct Driving {
    /// Held by the caller that drives.
    caller: Mutex<()>,
    /// Counts callers that come and callers that leave, so that it is odd while a caller drives.
    changes: AtomicU64,
    /// Whether the receiving thread waits for the sockets.
    waits: AtomicBool,
    /// Whether a thread that does not wait has told the receiving thread to leave.
    interrupted: AtomicBool,
    parked: AtomicBool,
    receiving_thread: OnceLock<Thread>,
    /// For the receiving thread alone: `changes` at its last check, and the checks since they
    /// changed.
    seen: AtomicU64,
    unchanged: AtomicU64,
    /// Rests in a row in which a caller came, up to a maximum.
    busy: AtomicU32,
}

/// What the receiving thread should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollerRole {
    /// Wait for packets.
    Wait,
    /// Take the packets that are there.
    Poll,
    /// Nothing.
    Leave,
}

/// A caller that drives, until this is dropped.
pub(super) struct Caller<'a> {
    driving: &'a Driving,
    _only: MutexGuard<'a, ()>,
}

impl Driving {
    /// Makes the calling thread the driver, unless another thread drives.
    pub(super) fn begin(&self) -> Option<Caller<'_>> {
        let only = self.caller.try_lock().ok()?;
        self.changes.fetch_add(1, SeqCst);
        DRIVES.set(self.address());
        Some(Caller { driving: self, _only: only })
    }

    /// Whether another thread drives.
    pub(super) fn by_another(&self) -> bool {
        self.changes.load(SeqCst) % 2 == 1 && DRIVES.get() != self.address()
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// What the receiving thread should do. Rests first if a caller is there, or was there
    /// recently.
    pub(super) fn poller_role(&self) -> PollerRole {
        let changes = self.changes.load(SeqCst);
        if changes == self.seen.swap(changes, SeqCst) {
            self.unchanged.fetch_add(1, SeqCst);
        } else {
            self.unchanged.store(0, SeqCst);
        }
        let unchanged = self.unchanged.load(SeqCst);
        if changes % 2 == 1 {
            if unchanged > MAX_IDLE_POLLS {
                self.park_while(changes);
            } else {
                self.rest(changes);
            }
            return PollerRole::Leave;
        }
        if changes > 0 && unchanged <= MAX_IDLE_POLLS {
            // A caller that has returned in the meantime takes its packets itself, and sooner. If
            // two threads took packets, those of one would overtake those of the other.
            let nobody_came = self.rest(changes);
            return if nobody_came { PollerRole::Poll } else { PollerRole::Leave };
        }
        if self.begin_wait(changes) { PollerRole::Wait } else { PollerRole::Leave }
    }

    /// Rests for a while. Returns whether no caller has come or left since `changes`.
    fn rest(&self, changes: u64) -> bool {
        let busy = self.busy.load(SeqCst);
        thread::park_timeout(POLL_EVERY * 2_u32.pow(busy));
        let unchanged = self.changes.load(SeqCst) == changes;
        self.busy.store(if unchanged { 0 } else { MAX_BUSY.min(busy + 1) }, SeqCst);
        unchanged
    }

    /// Begins a wait of the receiving thread, which saw `changes`. Returns `false` if it must not
    /// wait.
    fn begin_wait(&self, changes: u64) -> bool {
        self.interrupted.store(false, SeqCst);
        self.waits.store(true, SeqCst);
        // A caller that came before it could see this flag would wait for the same packets. One
        // that has left again may have deferred STOPs that no other thread would send.
        let nobody_came = self.changes.load(SeqCst) == changes;
        if !nobody_came {
            self.end_wait();
        }
        nobody_came
    }

    /// Records that the receiving thread has ended its wait.
    pub(super) fn end_wait(&self) {
        self.waits.store(false, SeqCst);
    }

    /// Registers the calling thread as the receiving thread. It does so before its first rest, so
    /// that other threads can end that rest.
    pub(super) fn register(&self) {
        let _ = self.receiving_thread.set(thread::current());
    }

    fn park_while(&self, changes: u64) {
        self.parked.store(true, SeqCst);
        if self.changes.load(SeqCst) == changes {
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
    pub(super) fn receiving_thread_waits(&self) -> bool {
        self.driving.waits.load(SeqCst)
    }

    /// Whether the receiving thread must be told to leave, and this is the first call in its wait.
    /// True once per wait, for callers on the same eventfd: they would otherwise wake themselves
    /// again and again until the receiving thread has had the processor.
    pub(super) fn first_to_interrupt(&self) -> bool {
        self.receiving_thread_waits() && !self.driving.interrupted.swap(true, SeqCst)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        DRIVES.set(0);
        self.driving.changes.fetch_add(1, SeqCst);
        if self.driving.parked.load(SeqCst) {
            self.driving.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_came_and_left_keeps_the_receiving_thread_from_waiting() {
        let driving = Driving::default();
        let seen = driving.changes.load(SeqCst);
        let caller = driving.begin().unwrap();
        assert!(!caller.receiving_thread_waits(), "so nobody is told to leave");
        assert!(!driving.begin_wait(seen));
        drop(caller);
        assert!(!driving.begin_wait(seen));
        assert!(!driving.waits.load(SeqCst));
        assert_eq!(driving.poller_role(), PollerRole::Poll);
        assert!(driving.begin_wait(driving.changes.load(SeqCst)));
        assert!(driving.begin().unwrap().receiving_thread_waits());
    }
}
