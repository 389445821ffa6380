//! One call, from the callee's side.

use super::Counts;
use super::frame::{RequestFrame, ResponseFrame, Token};
use crate::endpoint::Endpoint;
use crate::error::{Closed, SendError};
use crate::inner::Inner;
use crate::wakers::contained;
use async_channel::TryRecvError;
use bytes::Bytes;
use cloudburst_core::error::{Outcome, Receipt, Rejection};
use cloudburst_core::proto::{Message, SendOptions};
use cloudburst_core::wire::Role;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// A request that came in, and wants a reply.
///
/// Dropping it without one tells the caller so, at once: [`CallError::Unanswered`]. So does a
/// panic that unwinds past it.
///
/// [`CallError::Unanswered`]: crate::CallError::Unanswered
#[derive(Debug)]
#[must_use = "dropping it tells the caller that there is no answer"]
pub struct Request {
    peer: SocketAddr,
    bytes: Bytes,
    token: Token,
    deadline: Option<Instant>,
    endpoint: Weak<Inner>,
    replied: bool,
}

impl Request {
    const fn new(
        peer: SocketAddr,
        bytes: Bytes,
        token: Token,
        deadline: Option<Instant>,
        endpoint: Weak<Inner>,
    ) -> Self {
        Self { peer, bytes, token, deadline, endpoint, replied: false }
    }

    /// The caller: where it takes messages itself.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What it asks.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// When the caller stops waiting, as far as can be seen from here: counted from when the
    /// request had arrived. `None`: never, as far as the clock can count.
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) const fn endpoint(&self) -> &Weak<Inner> {
        &self.endpoint
    }

    /// Sends the response, and waits until the caller's endpoint has it.
    ///
    /// It ends by the caller's deadline, or by the configured one of messages if that is earlier.
    /// Dropping the future stops the burst. Then, and where the response is refused, the caller is
    /// told that there is no answer.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub async fn reply(self, bytes: impl Into<Bytes>) -> Result<Receipt, SendError> {
        self.reply_with(bytes, SendOptions::default()).await
    }

    /// [`reply`](Self::reply) with a deadline, a priority, a code or a burst policy of its own.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub async fn reply_with(
        mut self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Receipt, SendError> {
        let endpoint = self.upgrade()?;
        let (options, frame) = (self.options(options)?, self.response(Some(bytes.into())));
        let peer = self.peer;
        let begin = || endpoint.burst(peer, Role::Response, frame.clone(), &options);
        let sending = endpoint.when_room(begin).await?;
        // Neither what is under way nor a request keeps an endpoint alive.
        drop((frame, endpoint));
        let receipt = sending.await?;
        self.replied = true;
        Ok(receipt)
    }

    /// Tells the caller that the application has dealt with the request: an empty response.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub async fn accept(self) -> Result<Receipt, SendError> {
        self.reply(Bytes::new()).await
    }

    /// Begins to send the response, which goes on by itself.
    pub(super) async fn reply_detached(mut self, bytes: Bytes) -> Result<(), SendError> {
        let endpoint = self.upgrade()?;
        let options = self.options(SendOptions::default())?;
        let frame = self.response(Some(bytes));
        let peer = self.peer;
        let begin = || {
            let (token, deadline, endpoint_here) =
                (self.token, self.deadline, self.endpoint.clone());
            let on_end = move |outcome| {
                if let Outcome::Rejected(rejection @ Rejection::ByPeer(_)) = outcome {
                    tracing::warn!(%peer, %rejection, "a response was refused by its caller");
                    // Its end tells the caller that there is no answer.
                    drop(Self::new(peer, Bytes::new(), token, deadline, endpoint_here));
                }
            };
            endpoint.start(peer, Role::Response, frame.clone(), &options, on_end)
        };
        endpoint.when_room(begin).await?;
        self.replied = true;
        Ok(())
    }

    fn response(&self, bytes: Option<Bytes>) -> Bytes {
        ResponseFrame { token: self.token, bytes }.write()
    }

    fn upgrade(&self) -> Result<Endpoint, SendError> {
        Ok(Endpoint { inner: self.endpoint.upgrade().ok_or(SendError::Closed)? })
    }

    /// `options` with the time that is left. A caller may say that it waits for weeks: then the
    /// configured deadline holds.
    fn options(&self, options: SendOptions) -> Result<SendOptions, SendError> {
        let most = options.deadline.unwrap_or(self.upgrade()?.inner.calls.patience);
        let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        match left.map_or(most, |left| left.min(most)) {
            left if left.is_zero() => Err(SendError::Rejected(Rejection::NotStarted)),
            left => Ok(SendOptions { deadline: Some(left), ..options }),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.replied {
            return;
        }
        let Ok(endpoint) = self.upgrade() else { return };
        Counts::add(&endpoint.inner.calls.counts.requests_unanswered);
        if let Ok(options) = self.options(SendOptions::default()) {
            // Where there is no room for it, or no time, the caller's deadline has to do.
            let frame = self.response(None);
            let _ = endpoint.start(self.peer, Role::Response, frame, &options, |_| {});
        }
    }
}

impl Endpoint {
    /// The next request of a [`call`](Self::call) that came in.
    ///
    /// Requests whose callers have given up meanwhile are dropped, and counted.
    ///
    /// # Errors
    ///
    /// [`Closed`] when the endpoint is closed and all requests were taken.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let client = Endpoint::builder().bind(loopback).security(security.clone()).build()?;
    /// # let server = Endpoint::builder().bind(loopback).security(security).build()?;
    /// let address = server.local_addr();
    /// let job = tokio::spawn(async move { client.call(address, "a job").await });
    /// let request = server.recv_request().await?;
    /// assert_eq!(request.bytes(), "a job");
    /// // Only now does the caller hear that it is done.
    /// request.accept().await?;
    /// assert_eq!(job.await??, "");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recv_request(&self) -> Result<Request, Closed> {
        loop {
            if self.inner.is_forked() {
                return Err(Closed);
            }
            let came = contained(self.inner.requests.recv()).await.map_err(|_| Closed)?;
            if let Some(request) = self.take_request(came) {
                return Ok(request);
            }
        }
    }

    /// The next request if there is one.
    ///
    /// # Errors
    ///
    /// See [`recv_request`](Self::recv_request).
    pub fn try_recv_request(&self) -> Result<Option<Request>, Closed> {
        loop {
            if self.inner.is_forked() {
                return Err(Closed);
            }
            let request = match self.inner.requests.try_recv() {
                Ok(came) => self.take_request(came),
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Closed) => return Err(Closed),
            };
            if request.is_some() {
                return Ok(request);
            }
        }
    }

    /// The application takes a request that arrived at a moment, if it is any use.
    fn take_request(&self, (arrived, message): (Instant, Message)) -> Option<Request> {
        let Message { peer, bytes, .. } = self.take(message);
        let counts = &self.inner.calls.counts;
        let Some(frame) = RequestFrame::parse(&bytes) else {
            Counts::add(&counts.malformed);
            return None;
        };
        let deadline = arrived.checked_add(frame.patience);
        if deadline.is_some_and(|at| at <= Instant::now()) {
            Counts::add(&counts.requests_expired);
            return None;
        }
        Counts::add(&counts.requests_received);
        let (token, bytes) = (frame.token, frame.bytes);
        let endpoint = Arc::downgrade(&self.inner);
        Some(Request::new(peer, bytes, token, deadline, endpoint))
    }
}
