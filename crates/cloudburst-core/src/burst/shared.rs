//! State that the threads of an engine share.

use super::PacketIo;
use super::role::Driving;
use super::state::State;
use crate::wire::Role;
use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle};

/// The longest sleep of a thread that waits for packets.
pub(super) const MAX_SLEEP: Duration = Duration::from_secs(1);

pub(super) struct Shared<I> {
    pub(super) io: I,
    pub(super) state: Mutex<State>,
    /// Called when another message of a role is in the application's queue.
    pub(super) on_readable: Box<dyn Fn(Role) + Send + Sync>,
    pub(super) driving: Driving,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
    pub(super) busy_poll: Duration,
    /// The time, in nanoseconds, until which other threads need the processors, so that
    /// busy-polling takes longer than sleeping.
    pub(super) crowded_until: AtomicU64,
    /// Whether the last packets arrived soon enough to busy-poll for the next: within `busy_poll`,
    /// or twice that after a wait without busy-polling.
    pub(super) soon: AtomicBool,
    /// Whether answers or messages were deferred.
    pub(super) pending_flush: AtomicBool,
    /// Signalled when a send, a connect, a call or a request has ended, but only while the engine
    /// is closing, because each signal is a system call.
    pub(super) ended: Condvar,
    pub(super) closing: AtomicBool,
    pub(super) stopping: AtomicBool,
    /// Whether everything had ended before the engine stopped; whoever stops it first decides.
    pub(super) drained: OnceLock<bool>,
}

/// When answers leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Now,
    /// If the application has something new to read, once it has had the chance to respond: with
    /// the packets that it sends, or by [`Shared::flush`].
    AfterApplication,
}

impl<I: PacketIo> Shared<I> {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The number of messages of `role` in the application's queue.
    pub(super) fn readable(&self, role: Role) -> usize {
        self.lock().endpoint.receiver.readable(role)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(run)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("holders of this lock run state machines, which do not panic")
}

/// Runs a callback or a destructor of the application, and contains its panics, which must harm
/// neither this thread nor other callers.
pub(super) fn contain(callback: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(callback)) {
        // Leaked, because dropping it may panic as well.
        core::mem::forget(payload);
        tracing::error!(
            "a callback of the application, or the destructor of a value that it owns, panicked"
        );
    }
}

impl<I> core::fmt::Debug for Shared<I> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
