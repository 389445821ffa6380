//! A send under way.

use crate::driver::{Inner, block_on, block_on_for};
use crate::error::SendError;
use crate::io::canonical;
use bytes::Bytes;
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Role;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot::{self, Receiver};
use tracing::Span;
use tracing::field::Empty;

/// A send under way: a future that resolves when it has ended.
///
/// The burst needs no polling. Dropping this stops it at once.
#[derive(Debug)]
#[must_use = "dropping it cancels the send"]
pub struct Sending {
    id: MessageId,
    outcome: Receiver<Outcome>,
    /// Weak: sends under way do not keep an endpoint alive.
    endpoint: Weak<Inner>,
    span: Span,
    ended: bool,
}

impl Sending {
    /// The message's id, unique within this endpoint.
    pub const fn id(&self) -> MessageId {
        self.id
    }

    /// Blocks this thread until the send has ended. Do not use it in async code.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn wait(self) -> Result<Receipt, SendError> {
        block_on(Inner::engine_of(&self.endpoint), self)
    }

    /// Like [`wait`](Self::wait), for at most `timeout`. `None` if the send has not ended by then; it continues.
    ///
    /// # Panics
    ///
    /// If it has returned the outcome before.
    pub fn wait_for(&mut self, timeout: Duration) -> Option<Result<Receipt, SendError>> {
        block_on_for(Inner::engine_of(&self.endpoint), timeout, self)
    }
}

impl Inner {
    /// Begins to burst a message, or lets it wait in line.
    pub(crate) fn send(
        self: &Arc<Self>,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
    ) -> Result<Sending, SendError> {
        let span = span(canonical(peer), bytes.len());
        let (ended, outcome) = oneshot::channel();
        let on_end = move |outcome| drop(ended.send(outcome));
        let id = span.in_scope(|| self.start_send(peer, role, bytes, options, on_end))?;
        span.record("id", id.0);
        Ok(Sending { id, outcome, endpoint: Arc::downgrade(self), span, ended: false })
    }
}

/// The `tracing` span of a send, which ends with it. Its id and its outcome are recorded when they are known.
/// Without a subscriber, nothing is formatted or allocated.
fn span(peer: SocketAddr, bytes: usize) -> Span {
    tracing::debug_span!("send", %peer, bytes, id = Empty, outcome = Empty)
}

impl Future for Sending {
    type Output = Result<Receipt, SendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.outcome).poll(cx));
        self.ended = true;
        let result = match outcome {
            Ok(Outcome::Delivered(receipt)) => Ok(receipt),
            Ok(Outcome::Rejected(rejection)) => Err(rejection.into()),
            Ok(Outcome::Unknown(reason)) => Err(reason.into()),
            // The engine was stopped and has dropped the other end.
            Err(_) => Err(SendError::Closed),
        };
        match &result {
            Ok(_) => self.span.record("outcome", "delivered"),
            Err(error) => self.span.record("outcome", tracing::field::display(error)),
        };
        Poll::Ready(result)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.ended {
            self.span.record("outcome", "dropped");
            if let Some(endpoint) = self.endpoint.upgrade() {
                endpoint.engine.cancel(self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_subscriber_a_span_allocates_nothing() {
        let peer = SocketAddr::from(([10, 0, 0, 1], 7000));
        let record = || {
            let span = span(peer, 5);
            span.record("id", 1_u64);
        };
        // The first time, each callsite asks whether there is a subscriber.
        record();
        assert_eq!(allocation_counter::measure(record).count_total, 0);
    }
}
