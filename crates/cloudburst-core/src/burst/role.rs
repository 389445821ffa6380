//! The role of taking packets and serving timers, and who waits for it.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::{self, Thread};

/// The role of taking packets and serving timers, until this is dropped.
pub(super) type DriverRole<'a> = MutexGuard<'a, ()>;

#[derive(Debug, Default)]
pub(super) struct Driving {
    role: Mutex<()>,
    /// How many times a caller or a task has had the role.
    pub(super) visits: AtomicU64,
    /// Whether the caller that has the role sleeps, or is about to.
    pub(super) sleeps: AtomicBool,
    /// Whether a task came for the role while another thread had it.
    pub(super) missed: AtomicBool,
    /// Callers that wait for the role.
    followers: Mutex<Vec<Thread>>,
    /// Whether the receiving thread sleeps until something is ready, or is about to.
    pub(super) watches: AtomicBool,
    pub(super) unattended: AtomicBool,
    pub(super) sending_thread: OnceLock<Thread>,
}

impl Driving {
    fn followers(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.followers.lock().expect("holders of this lock do not panic")
    }

    pub(super) fn take_role(&self) -> Option<DriverRole<'_>> {
        match self.role.try_lock() {
            Ok(role) => Some(role),
            // A caller's condition panicked. The role guards no data.
            Err(TryLockError::Poisoned(role)) => Some(role.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn visit(&self) -> Option<DriverRole<'_>> {
        let role = self.take_role()?;
        self.visits.fetch_add(1, SeqCst);
        Some(role)
    }

    /// Sleeps until another thread has left the role, or wakes this one, for at most `limit`.
    pub(super) fn follow(&self, limit: Duration) {
        self.followers().push(thread::current());
        // Whoever had the role may have left before it could see this thread.
        if self.take_role().is_none() {
            thread::park_timeout(limit);
        }
        let this = thread::current().id();
        self.followers().retain(|thread| thread.id() != this);
    }

    /// Wakes a caller that waits for the role, which this thread has left. Returns whether a task is to
    /// be woken instead.
    pub(super) fn hand_over(&self) -> bool {
        // A caller that never had the role leaves this to the one that has it.
        if self.take_role().is_none() {
            return false;
        }
        let missed = self.missed.swap(false, SeqCst);
        let mut followers = self.followers();
        if followers.is_empty() {
            return missed;
        }
        followers.remove(0).unpark();
        false
    }

    /// Wakes the callers that wait for the role, and the sending thread.
    pub(super) fn stop(&self) {
        self.followers().iter().for_each(Thread::unpark);
        self.wake_sending();
    }

    pub(super) fn wake_sending(&self) {
        if let Some(thread) = self.sending_thread.get() {
            thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn threads_get_the_role_in_the_order_in_which_they_asked_for_it() {
        let driving = Arc::new(Driving::default());
        let role = driving.visit().unwrap();
        let (came, order) = channel();
        for number in 0..3 {
            let other = driving.clone();
            let came = came.clone();
            thread::spawn(move || {
                loop {
                    if let Some(role) = other.visit() {
                        came.send(number).unwrap();
                        drop(role);
                        other.hand_over();
                        return;
                    }
                    other.follow(Duration::from_secs(60));
                }
            });
            while driving.followers().len() == number {
                thread::yield_now();
            }
        }
        drop(role);
        driving.hand_over();
        let order: Vec<usize> = order.iter().take(3).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn a_caller_that_never_had_the_role_hands_nothing_over() {
        let driving = Driving::default();
        let role = driving.visit();
        driving.missed.store(true, SeqCst);
        assert!(!driving.hand_over());
        drop(role);
        assert!(driving.hand_over(), "the one that had it wakes the task that came meanwhile");
        assert!(!driving.hand_over(), "once");
    }

    #[test]
    fn a_thread_does_not_sleep_if_the_role_is_free() {
        let driving = Driving::default();
        driving.follow(Duration::MAX);
        assert!(driving.followers().is_empty());
    }
}
