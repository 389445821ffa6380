//! Whether the response to a request is still awaited.

use crate::driver::{Process, contained};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tokio::sync::Notify;

/// The caller's interest in a response, which ends when the caller withdraws the request, its deadline
/// passes, the application has answered or dropped the request, or the endpoint stops.
#[derive(Debug)]
pub(super) struct Interest {
    over: AtomicBool,
    ended: Notify,
    process: Process,
}

/// Ends the interest when it is dropped, with the request that the application holds.
#[derive(Debug)]
pub(super) struct EndOnDrop(pub(super) Arc<Interest>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Interest {
    pub(super) fn new(process: Process) -> Self {
        Self { over: AtomicBool::new(false), ended: Notify::new(), process }
    }

    pub(super) fn end(&self) {
        self.over.store(true, SeqCst);
        // In a fork, nobody waits, and a thread that does not exist may have held the lock.
        if self.process.check().is_ok() {
            self.ended.notify_waiters();
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// Waits until the response is no longer awaited. Returns at once in a fork.
    pub(super) async fn over(&self) {
        let ended = self.ended.notified();
        if !self.is_over() {
            let _ = self.process.wait(contained(ended)).await;
        }
    }
}
