//! Notifies callers of the events of the engine.

use cloudburst_core::burst::EngineEvent;
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
    pub(super) fn on_event(self: Arc<Self>) -> impl Fn(EngineEvent) + Send + Sync {
        move |event| match event {
            // Wakes all of them: one may be a stream that is not being polled. Each registers before it
            // looks into the queue, so that it misses nothing.
            EngineEvent::Readable(Role::Plain) => self.messages.notify_waiters(),
            EngineEvent::Readable(Role::Request) => self.requests.notify_waiters(),
            EngineEvent::Readable(Role::Response | Role::Withdrawal) => {}
        }
    }
}
