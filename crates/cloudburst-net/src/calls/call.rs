//! One call, from the caller's side.

use crate::driver::Inner;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::io::UdpIo;
use crate::names::Peer;
use crate::operation::{Kind, Operation, Parcel};
use crate::settings::{Settings, left};
use bytes::Bytes;
use cloudburst_core::burst::{Engine, OnAnswer};
use cloudburst_core::proto::{CallId, Prepared, SendOptions};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A call in flight. Dropping it forgets the call, and either stops the burst of the request or withdraws the
/// request.
#[derive(Debug)]
pub(super) struct InFlight {
    call: CallId,
    endpoint: Weak<Inner>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(engine) = Inner::engine_of(&self.endpoint) {
            engine.cancel_call(self.call);
        }
    }
}

/// A call: see [`Endpoint::call`].
#[derive(Debug)]
pub struct Call(Parcel);

impl Kind for Call {
    type Options = Settings;
    type Output = Result<Bytes, SendError>;

    fn engine(&self) -> Option<Arc<Engine<UdpIo>>> {
        Some(self.0.inner.engine.clone())
    }

    async fn run(self, settings: Settings) -> Self::Output {
        let Parcel { inner, peer, bytes } = self.0;
        let (peer, options) = inner.find(peer, settings.now()).await?;
        Endpoint { inner }.call_with(peer, bytes, options).await
    }
}

impl Endpoint {
    /// Sends a request to `peer` and waits for its response, once the returned [`Operation`] is
    /// awaited or waited for. You can change its settings before. The deadline covers the whole call, from when it is first polled; the
    /// other settings apply to the request, and the callee chooses those of the response.
    ///
    /// `Ok` means that the application there has answered, which is more than the `Ok` of
    /// [`send`](Self::send) means: an empty response serves as a receipt by the application. The call ends by
    /// its deadline, of which the callee is told. Dropping the future stops the burst at once and forgets the
    /// call: a late response is dropped and counted. If the callee is known to have the request, it is told
    /// that the response is no longer awaited: see [`Request::is_cancelled`](crate::Request::is_cancelled).
    ///
    /// At most [`Limits::send_messages`] calls may be in flight; further calls wait. Calls and plain messages
    /// share an endpoint but do not mix: [`recv`](Self::recv) returns neither requests nor responses. A
    /// request header takes 12 bytes of `max_message`, a response header 9.
    ///
    /// [`Limits::send_messages`]: crate::Limits::send_messages
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    ///
    /// # Example
    ///
    /// ```
    /// # cloudburst_net::doc::run(async |client, server| {
    /// let address = server.local_addr();
    /// tokio::spawn(async move {
    ///     server.serve(100, |request| async move { request.bytes.to_ascii_uppercase() }).await
    /// });
    /// assert_eq!(client.call(address, "hello").await?, "HELLO");
    /// # Ok(())
    /// # });
    /// ```
    pub fn call(&self, peer: impl Into<Peer>, bytes: impl Into<Bytes>) -> Operation<Call> {
        Operation::new(Call(self.parcel(peer, bytes)))
    }

    pub(crate) async fn call_with(
        &self,
        peer: SocketAddr,
        bytes: Bytes,
        options: SendOptions,
    ) -> Result<Bytes, SendError> {
        let call_limit = &self.inner.call_limit;
        match call_limit.try_acquire() {
            Err(SendError::TooManyCalls { .. }) => {
                let until = self.inner.deadline_of(&options);
                let permit = self.inner.until_deadline(until, call_limit.acquire()).await??;
                self.call_permitted(permit, peer, bytes, left(options, until)).await
            }
            permit => self.call_permitted(permit?, peer, bytes, options).await,
        }
    }

    /// Makes a call that has a permit already.
    pub(crate) async fn call_permitted(
        &self,
        permit: OwnedSemaphorePermit,
        peer: SocketAddr,
        bytes: Bytes,
        options: SendOptions,
    ) -> Result<Bytes, SendError> {
        let (mut request, mut call) = self.prepare(&bytes, &options, permit);
        let mut claimed = options.deadline.unwrap_or(self.inner.default_deadline);
        let begin = |options: &SendOptions| {
            if let Some(left) = options.deadline.filter(|left| *left < claimed) {
                // The request tells the callee how much time is left. Claiming a little less saves copying it
                // for each further attempt: copying each of many waiting requests whenever one ends would cost
                // the square of their number.
                claimed = left - left / 16;
                request = self.inner.engine.calls(|calls| calls.prepare(Some(claimed), &bytes));
                call.call = request.id();
            }
            if let Some(left) = options.deadline {
                request.wait_for(left);
            }
            let (end, ended) = oneshot::channel();
            let on_answer = Box::new(move |result| drop(end.send(result)));
            self.request(&request, peer, options, on_answer).map(|()| ended)
        };
        let ended = self.inner.retry_while_full(options, begin).await?;
        drop(request);
        // Dropped without an answer: the engine was stopped.
        ended.await.map_or(Err(SendError::Closed), |result| result.map_err(SendError::from))
    }

    /// A request that is ready to be sent, and the guard of its call.
    pub(super) fn prepare(
        &self,
        bytes: &Bytes,
        options: &SendOptions,
        permit: OwnedSemaphorePermit,
    ) -> (Prepared, InFlight) {
        let engine = &self.inner.engine;
        let request = engine.calls(|calls| calls.prepare(options.deadline, bytes));
        let endpoint = Arc::downgrade(&self.inner);
        let call = InFlight { call: request.id(), endpoint, _permit: permit };
        (request, call)
    }

    /// Begins to send the request of a call, whose time starts now.
    pub(super) fn request(
        &self,
        request: &Prepared,
        peer: SocketAddr,
        options: &SendOptions,
        on_answer: OnAnswer,
    ) -> Result<(), SendError> {
        let span = tracing::debug_span!("call", %peer, bytes = request.len());
        let peer = crate::io::canonical(peer);
        let called = span.in_scope(|| self.inner.call(peer, request, options, on_answer));
        called.map_err(SendError::from)
    }
}
