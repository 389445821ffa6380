//! A send under way.

use crate::driver::{Inner, block_on, block_on_for};
use crate::error::SendError;
use crate::sending::Sending as AsyncSending;
use cloudburst_core::error::Receipt;
use cloudburst_core::id::MessageId;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

/// A send under way. Dropping it stops the burst at once.
#[derive(Debug)]
#[must_use = "dropping it cancels the send"]
pub struct Sending {
    sending: AsyncSending,
    ended: Option<Result<Receipt, SendError>>,
}

impl Sending {
    pub(super) const fn new(sending: AsyncSending) -> Self {
        Self { sending, ended: None }
    }

    /// The message's id, unique within this endpoint.
    pub const fn id(&self) -> MessageId {
        self.sending.id()
    }

    /// Waits until the send has ended.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn wait(mut self) -> Result<Receipt, SendError> {
        // The send has often ended by now: a response that arrived may have carried the STOP.
        self.poll();
        match self.ended {
            Some(result) => result,
            None => block_on(Inner::engine_of(self.sending.endpoint()), self.sending),
        }
    }

    /// Returns the receipt if the send has ended, and `None` if it has not.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn try_wait(&mut self) -> Result<Option<Receipt>, SendError> {
        self.poll().clone().transpose()
    }

    /// Waits until the send has ended, for at most `timeout`. Returns `None` if it has not ended by then; it
    /// continues.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Receipt>, SendError> {
        if self.ended.is_none() {
            let engine = Inner::engine_of(self.sending.endpoint());
            self.ended = block_on_for(engine, timeout, &mut self.sending);
        }
        self.ended.clone().transpose()
    }

    /// The result, if the send has ended.
    fn poll(&mut self) -> &Option<Result<Receipt, SendError>> {
        if self.ended.is_none() {
            let mut context = Context::from_waker(Waker::noop());
            self.ended = match Pin::new(&mut self.sending).poll(&mut context) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            };
        }
        &self.ended
    }
}
