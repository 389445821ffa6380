//! A send under way.

use crate::driver::{Inner, Process};
use crate::error::SendError;
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::id::MessageId;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot::Receiver;
use tracing::Span;

/// A send under way: a future that resolves when it has ended.
///
/// The burst needs no polling. Dropping this stops it at once.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Endpoint, Security};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let security = Security::pre_shared([7; 32]);
/// # let loopback = "127.0.0.1:0".parse()?;
/// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
/// # let (client, server) = (build()?, build()?);
/// let sending = client.send(server.local_addr(), "hello").begin()?; // its first packets leave
/// println!("message {} is on its way", sending.id());
/// let receipt = sending.await?;
/// assert_eq!(receipt.bytes, 5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the send"]
pub struct Sending {
    id: MessageId,
    outcome: Receiver<Outcome>,
    /// Weak: sends under way do not keep an endpoint alive.
    endpoint: Weak<Inner>,
    process: Process,
    span: Span,
    ended: bool,
}

impl Sending {
    pub(crate) fn new(
        id: MessageId,
        outcome: Receiver<Outcome>,
        endpoint: &Arc<Inner>,
        span: Span,
    ) -> Self {
        let (endpoint, process) = (Arc::downgrade(endpoint), endpoint.process.clone());
        Self { id, outcome, endpoint, process, span, ended: false }
    }

    /// The message's id, unique within this endpoint.
    pub const fn id(&self) -> MessageId {
        self.id
    }

    pub(crate) const fn endpoint(&self) -> &Weak<Inner> {
        &self.endpoint
    }
}

impl Future for Sending {
    type Output = Result<Receipt, SendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(outcome) = Pin::new(&mut self.outcome).poll(cx) else {
            // In a fork, no thread will ever report the outcome.
            return self
                .process
                .check()
                .map_or_else(|forked| Poll::Ready(Err(forked)), |()| Poll::Pending);
        };
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
                endpoint.cancel(self.id);
            }
        }
    }
}
