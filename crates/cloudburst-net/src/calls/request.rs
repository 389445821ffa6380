//! One call, from the callee's side.

use super::cancellation::{CancelOnDrop, Cancellation};
use crate::driver::Inner;
use crate::endpoint::{Endpoint, Receive};
use crate::error::{Closed, SendError};
use crate::io::UdpIo;
use crate::operation::{Kind, Operation};
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::burst::{Engine, OnWithdrawn};
use cloudburst_core::error::{Outcome, Receipt, Rejection};
use cloudburst_core::proto::{self, CallTable, SendOptions, Served, overload, response};
use cloudburst_core::wire::Role;
use core::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// A request that has arrived and awaits a reply.
///
/// Dropping it without a reply tells the caller at once that there is none ([`SendError::Unanswered`]). So
/// does a panic that unwinds past it.
#[must_use = "dropping it tells the caller that there is no answer"]
pub struct Request {
    request: proto::IncomingRequest,
    deadline: Instant,
    cancellation: CancelOnDrop,
    endpoint: Weak<Inner>,
    /// Whether the request is registered with the engine. Once it is not, another request may have the same id.
    registered: bool,
    replied: bool,
}

/// A request as its handler sees it: see [`Endpoint::serve`] and [`Request::parts`].
#[derive(Clone)]
#[non_exhaustive]
pub struct RequestParts {
    /// The caller's address, at which it accepts messages.
    pub peer: SocketAddr,
    /// The payload of the request.
    pub bytes: Bytes,
    /// The time at which the caller stops waiting. See [`Request::deadline`].
    pub deadline: Instant,
    cancellation: Arc<Cancellation>,
}

impl RequestParts {
    /// Whether the response is no longer awaited, or the [`Request`] was answered or dropped. See
    /// [`Request::is_cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Waits until [`is_cancelled`](Self::is_cancelled) is true.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }
}

impl Request {
    const fn new(
        request: proto::IncomingRequest,
        deadline: Instant,
        cancellation: CancelOnDrop,
        endpoint: Weak<Inner>,
    ) -> Self {
        Self { request, deadline, cancellation, endpoint, registered: true, replied: false }
    }

    /// Returns the parts of the request that a handler needs. Their holder can see whether the request is
    /// cancelled, while another task replies.
    pub fn parts(&self) -> RequestParts {
        RequestParts {
            peer: self.peer(),
            bytes: self.bytes().clone(),
            deadline: self.deadline,
            cancellation: self.cancellation.0.clone(),
        }
    }

    /// Whether the response is no longer awaited: the caller has abandoned the call, its deadline has passed,
    /// or this endpoint has stopped.
    ///
    /// A caller that abandons a call tells the callee. One that restarts or leaves is noticed within seconds, and
    /// one that does not answer any more after about a minute.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.0.is_cancelled()
    }

    /// Waits until [`is_cancelled`](Self::is_cancelled) is true.
    pub async fn cancelled(&self) {
        self.cancellation.0.cancelled().await;
    }

    /// The caller's address, at which it accepts messages.
    pub const fn peer(&self) -> SocketAddr {
        self.request.peer
    }

    /// The payload of the request.
    pub const fn bytes(&self) -> &Bytes {
        &self.request.bytes
    }

    /// The time at which the caller stops waiting, as the callee estimates it: counted from the arrival of
    /// the request.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Sends the response and waits until the caller's endpoint has it, once the returned [`Operation`] is
    /// awaited. You can change its settings before.
    ///
    /// The send ends by the caller's deadline, or by the configured deadline of messages if that is earlier.
    /// Dropping the future stops the burst. In that case, and if the response is refused, the caller is told
    /// that there is no answer.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn reply(self, bytes: impl Into<Bytes>) -> Operation<Reply> {
        Operation::new(Reply { request: self, bytes: Some(bytes.into()) })
    }

    async fn reply_with(
        mut self,
        bytes: Option<Bytes>,
        options: SendOptions,
    ) -> Result<Receipt, SendError> {
        let endpoint = self.upgrade()?;
        let options = self.options(options)?;
        let frame = self.frame(bytes.as_deref());
        let peer = self.request.peer;
        let sending = endpoint.inner.send(peer, Role::Response, frame, &options)?;
        self.begun(&endpoint, bytes.as_deref());
        // Neither messages under way nor requests keep an endpoint alive.
        drop(endpoint);
        let receipt = sending.await?;
        // A reply that failed is none: dropping this tells the caller.
        self.replied = true;
        Ok(receipt)
    }

    /// Confirms with an empty response that the application has handled the request.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn accept(self) -> Operation<Reply> {
        self.reply(Bytes::new())
    }

    /// Refuses the request: the application is overloaded, has not acted on it, and never will. The caller
    /// gets [`SendError::Overloaded`](crate::SendError::Overloaded), and may send the request again, later or
    /// elsewhere. Everything else is as with [`reply`](Self::reply).
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn refuse(self) -> Operation<Reply> {
        Operation::new(Reply { request: self, bytes: None })
    }

    /// Begins to send the response, or the refusal of an overloaded application, and returns while it is
    /// under way. If there is no capacity for it, this waits until its send has ended.
    pub(super) async fn reply_detached(mut self, bytes: Option<Bytes>) -> Result<(), SendError> {
        let endpoint = self.upgrade()?;
        let options = self.options(SendOptions::default())?;
        let frame = self.frame(bytes.as_deref());
        let peer = self.request.peer;
        let request = self.request.clone();
        let deadline = self.deadline;
        let cancellation = self.cancellation.0.clone();
        let endpoint_here = self.endpoint.clone();
        let on_end = move |outcome| {
            if let Outcome::Delivered(_) = outcome {
                return;
            }
            // The request has been released. Dropping `ended` counts the response as failed and tells the
            // caller, which is needed only after a refusal.
            let mut ended = Self::new(request, deadline, CancelOnDrop(cancellation), endpoint_here);
            ended.registered = false;
            if let Outcome::Rejected(rejection @ Rejection::ByPeer(_)) = outcome {
                tracing::warn!(%peer, %rejection, "a response was refused by its caller");
            } else {
                ended.count_failed();
                ended.replied = true;
            }
        };
        let options = options.wait(false);
        match endpoint.inner.start_send(peer, Role::Response, frame, &options, on_end) {
            // The handler's place stays taken: responses that wait take memory.
            Err(SendError::Full { .. }) => {
                drop(endpoint);
                return self.reply_with(bytes, SendOptions::default()).await.map(drop);
            }
            begun => begun?,
        };
        self.begun(&endpoint, bytes.as_deref());
        self.replied = true;
        Ok(())
    }

    /// Releases the request: its response, with `bytes` unless it is a refusal, is under way.
    fn begun(&mut self, endpoint: &Endpoint, bytes: Option<&[u8]>) {
        self.release(endpoint, if bytes.is_some() { Served::Answered } else { Served::Overloaded });
    }

    /// Releases the request: its response is under way, or there is none, so that a shutdown need not wait
    /// for it.
    fn release(&mut self, endpoint: &Endpoint, served: Served) {
        if core::mem::take(&mut self.registered) {
            endpoint.inner.engine.release(&self.request, served);
        }
    }

    fn count_failed(&self) {
        let Ok(endpoint) = self.upgrade() else { return };
        endpoint.inner.engine.calls(CallTable::count_failed_response);
    }

    /// The response with `bytes`, or the refusal of an overloaded application.
    fn frame(&self, bytes: Option<&[u8]>) -> Bytes {
        let call = self.request.call;
        if bytes.is_some() { response(call, bytes) } else { overload(call) }
    }

    fn upgrade(&self) -> Result<Endpoint, SendError> {
        Ok(Endpoint { inner: self.endpoint.upgrade().ok_or(SendError::Closing)? })
    }

    /// Limits the deadline to the time that is left. If the caller claims to wait for longer than the
    /// configured deadline, the latter applies.
    fn options(&self, options: SendOptions) -> Result<SendOptions, SendError> {
        let most = options.deadline.unwrap_or(self.upgrade()?.inner.default_deadline);
        match self.deadline.saturating_duration_since(Instant::now()).min(most) {
            left if left.is_zero() => Err(SendError::NotStarted),
            // Once a response is begun, a withdrawal comes too late.
            _ if self.registered && self.is_cancelled() => Err(SendError::Cancelled),
            left => Ok(options.deadline(left)),
        }
    }
}

/// A reply: see [`Request::reply`].
pub struct Reply {
    request: Request,
    /// `None`: the application is overloaded.
    bytes: Option<Bytes>,
}

impl Kind for Reply {
    type Options = Settings;
    type Output = Result<Receipt, SendError>;

    fn engine(&self) -> Option<Arc<Engine<UdpIo>>> {
        Inner::engine_of(&self.request.endpoint)
    }

    async fn run(self, settings: Settings) -> Self::Output {
        self.request.reply_with(self.bytes, settings.now()).await
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.bytes.as_ref().map(Bytes::len);
        f.debug_struct("Reply").field("request", &self.request).field("len", &len).finish()
    }
}

fn show(name: &str, peer: SocketAddr, bytes: &Bytes, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name).field("peer", &peer).field("len", &bytes.len()).finish_non_exhaustive()
}

/// Shows the length of the payload, not the payload.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show("Request", self.peer(), self.bytes(), f)
    }
}

/// Shows the length of the payload, not the payload.
impl fmt::Debug for RequestParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show("RequestParts", self.peer, &self.bytes, f)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // A panic, an aborted task or a branch without a reply ends the call at once, instead of at
        // its deadline.
        if self.replied {
            return;
        }
        let Ok(endpoint) = self.upgrade() else { return };
        if !self.registered {
            self.count_failed();
        }
        if let Ok(options) = self.options(SendOptions::default()) {
            // If there is no time for this, the caller waits until its deadline.
            let frame = response(self.request.call, None);
            let peer = self.request.peer;
            let _ = endpoint.inner.start_send(peer, Role::Response, frame, &options, |_| {});
        }
        self.release(&endpoint, Served::Dropped);
    }
}

impl Endpoint {
    /// Receives the next request of a [`call`](Self::call).
    ///
    /// Requests whose callers have given up in the meantime are dropped and counted.
    ///
    /// # Errors
    ///
    /// [`Closed`] when the endpoint is shutting down: it refuses requests that have not been taken.
    ///
    /// # Example
    ///
    /// ```
    /// # cloudburst_net::doc::run(async |client, server| {
    /// let address = server.local_addr();
    /// let job = tokio::spawn(async move { client.call(address, "a job").await });
    /// let request = server.recv_request().await?;
    /// println!("{} waits until {:?}", request.peer(), request.deadline());
    /// let answer = request.bytes().to_ascii_uppercase();
    /// request.reply(answer).await?; // or `refuse`, if there is too much work
    /// assert_eq!(job.await??, "A JOB");
    /// # Ok(())
    /// # });
    /// ```
    pub fn recv_request(&self) -> Operation<Receive<Request>> {
        let endpoint = self.clone();
        let take = Self::try_recv_request;
        Operation::new(Receive { endpoint, take, readable: |notifier| &notifier.requests })
    }

    /// Returns the next request if there is one.
    ///
    /// # Errors
    ///
    /// See [`recv_request`](Self::recv_request).
    pub fn try_recv_request(&self) -> Result<Option<Request>, Closed> {
        let closing = self.inner.is_closing();
        let mut cancellation = None;
        let watch = || -> OnWithdrawn {
            let watched = cancellation.insert(Arc::<Cancellation>::default()).clone();
            Box::new(move || watched.cancel())
        };
        let request = self.inner.engine.recv_request(watch);
        let Some((request, cancellation)) = request.zip(cancellation) else {
            return if closing { Err(Closed) } else { Ok(None) };
        };
        let deadline = UdpIo::clock_at(request.deadline);
        Ok(Some(Request::new(
            request,
            deadline,
            CancelOnDrop(cancellation),
            Arc::downgrade(&self.inner),
        )))
    }
}
