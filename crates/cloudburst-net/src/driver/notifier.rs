//! Notifies callers that a message is in the application's queue.

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
    /// The engine's callback for messages.
    pub(super) fn on_readable(self: Arc<Self>) -> impl Fn(Role) + Send + Sync {
        move |role| match role {
            // Wakes all of them: one may be a stream that is not being polled. Each registers before it
            // looks into the queue, so that it misses nothing.
            Role::Plain => self.messages.notify_waiters(),
            Role::Request => self.requests.notify_waiters(),
            Role::Response | Role::Withdrawal => {}
        }
    }
}
