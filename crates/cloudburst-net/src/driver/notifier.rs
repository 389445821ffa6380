//! Notifies callers of the events of the engine.

use super::waiters::Waiters;
use cloudburst_core::burst::News;
use cloudburst_core::wire::Role;
use std::sync::Arc;
use tokio::sync::Notify;

/// Notifies callers that wait for a message or a request.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    pub(crate) messages: Notify,
    pub(crate) requests: Notify,
}

impl Notifier {
    /// The engine's callback for events.
    pub(super) fn on_event(self: Arc<Self>, waiters: Arc<Waiters>) -> impl Fn(News) + Send + Sync {
        move |event| match event {
            // Wakes all of them: one may be a stream that is not being polled. Each registers before it
            // looks into the queue, so that it misses nothing.
            News::Readable(Role::Plain) => self.messages.notify_waiters(),
            News::Readable(Role::Request) => self.requests.notify_waiters(),
            News::Readable(Role::Response | Role::Withdrawal) => {}
            News::Room => waiters.wake_first(),
        }
    }
}
