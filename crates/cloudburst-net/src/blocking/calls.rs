//! Calls, and requests that have arrived.

use crate::calls::{Calls as AsyncCalls, Request as AsyncRequest, RequestParts, Response};
use crate::driver::{Inner, block_on};
use crate::error::SendError;
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::error::Receipt;
use std::net::SocketAddr;
use std::time::Instant;

/// Calls in flight: an iterator over their responses, in order of arrival. See
/// [`Calls`](AsyncCalls).
#[derive(Debug)]
#[must_use = "dropping it cancels the calls"]
pub struct Calls(pub(super) AsyncCalls);

impl Calls {
    /// The number of calls whose results have not been returned yet.
    pub const fn left(&self) -> usize {
        self.0.left()
    }

    /// Waits until all calls have ended, by their deadline at the latest. Returns the results in
    /// the order of the requests.
    pub fn results(self) -> Vec<Result<Bytes, SendError>> {
        block_on(Inner::engine_of(self.0.endpoint()), self.0.results())
    }
}

impl Iterator for Calls {
    type Item = Response;

    fn next(&mut self) -> Option<Response> {
        block_on(Inner::engine_of(self.0.endpoint()), self.0.next())
    }
}

/// A request that has arrived. See [`Request`](AsyncRequest).
#[derive(Debug)]
#[must_use = "dropping it tells the caller that there is no answer"]
pub struct Request {
    pub(super) request: AsyncRequest,
    pub(super) settings: Settings,
}

impl Request {
    /// The caller's address, at which it accepts messages.
    pub const fn peer(&self) -> SocketAddr {
        self.request.peer()
    }

    /// The payload of the request.
    pub const fn bytes(&self) -> &Bytes {
        self.request.bytes()
    }

    /// Returns the parts of the request that a handler needs. See [`AsyncRequest::parts`].
    pub fn parts(&self) -> RequestParts {
        self.request.parts()
    }

    /// The time at which the caller stops waiting. See [`AsyncRequest::deadline`].
    pub const fn deadline(&self) -> Instant {
        self.request.deadline()
    }

    /// Whether the response is no longer awaited. See [`AsyncRequest::is_cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.request.is_cancelled()
    }

    /// Sends the response, with the settings of the handle that received the request, and waits
    /// until the caller's endpoint has it. See [`AsyncRequest::reply`].
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn reply(self, bytes: impl Into<Bytes>) -> Result<Receipt, SendError> {
        self.reply_or_refuse(Some(bytes.into()))
    }

    fn reply_or_refuse(self, bytes: Option<Bytes>) -> Result<Receipt, SendError> {
        let Self { request, settings } = self;
        block_on(Inner::engine_of(request.endpoint()), request.reply_with(bytes, settings.now()))
    }

    /// Refuses the request, because the application is overloaded. See [`AsyncRequest::refuse`].
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn refuse(self) -> Result<Receipt, SendError> {
        self.reply_or_refuse(None)
    }

    /// Confirms with an empty response that the application has accepted the request.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn accept(self) -> Result<Receipt, SendError> {
        self.reply(Bytes::new())
    }
}
