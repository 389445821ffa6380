//! Whether the response to a request is still awaited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tokio::sync::Notify;

/// Cancelled when the caller withdraws the request, its deadline passes, the application has answered or
/// dropped the request, or the endpoint stops.
#[derive(Debug, Default)]
pub(super) struct Cancellation {
    is_cancelled: AtomicBool,
    notify: Notify,
}

/// Cancels when it is dropped, with the request that the application holds.
#[derive(Debug)]
pub(super) struct CancelOnDrop(pub(super) Arc<Cancellation>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Cancellation {
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, SeqCst);
        self.notify.notify_waiters();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(SeqCst)
    }

    /// Waits until the response is no longer awaited.
    pub(super) async fn cancelled(&self) {
        let cancelled = self.notify.notified();
        if !self.is_cancelled() {
            cancelled.await;
        }
    }
}
