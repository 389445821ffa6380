//! One call, from the caller's side.

use super::frame::{RequestFrame, Token};
use super::table::Settle;
use crate::endpoint::Endpoint;
use crate::error::{CallError, SendError};
use crate::inner::Inner;
use bytes::Bytes;
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Role;
use std::net::SocketAddr;
use std::sync::Weak;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A call in flight. Dropping it forgets the call, and stops the burst of its request.
#[derive(Debug)]
pub(super) struct InFlight {
    token: Token,
    /// `None`: its request waits for room.
    request: Option<MessageId>,
    endpoint: Weak<Inner>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(endpoint) = self.endpoint.upgrade() else { return };
        if endpoint.is_forked() {
            // Giving it back takes a lock, which another thread may have held at the fork.
            return self.permit.take().map_or((), OwnedSemaphorePermit::forget);
        }
        // A response that came before the STOP of its request leaves that to the STOP.
        if endpoint.calls.forget(self.token)
            && let Some(request) = self.request
        {
            endpoint.cancel(request);
        }
    }
}

impl Endpoint {
    /// Sends a request to `peer` and waits for its response.
    ///
    /// `Ok` means that the application there has answered, which says more than the `Ok` of
    /// [`send`](Self::send): an empty response is enough for a receipt by the application. The
    /// call ends by its deadline, of which the callee is told. Dropping the future stops the burst
    /// at once and forgets the call: a response that comes later is dropped, and counted. The
    /// callee is not told of that.
    ///
    /// As many calls may be in flight as messages ([`Config::send_messages`]); more wait.
    /// Calls and plain messages share an endpoint and do not mix: [`recv`](Self::recv) returns
    /// neither requests nor responses. A request takes 12 bytes of `max_message`, a response 9.
    ///
    /// [`Config::send_messages`]: cloudburst_core::config::Config::send_messages
    ///
    /// # Errors
    ///
    /// See [`CallError`].
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
    /// tokio::spawn(async move {
    ///     server.serve(|_peer, question| async move { question.to_ascii_uppercase() }).await
    /// });
    /// assert_eq!(client.call(address, "hello").await?, "HELLO");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(
        &self,
        peer: SocketAddr,
        bytes: impl Into<Bytes>,
    ) -> Result<Bytes, CallError> {
        self.call_with(peer, bytes, SendOptions::default()).await
    }

    /// [`call`](Self::call) with a deadline, a priority, a code or a burst policy of its own.
    ///
    /// The deadline is that of the whole call, and counts from when there is room. The others are
    /// those of the request; the callee chooses those of the response.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub async fn call_with(
        &self,
        peer: SocketAddr,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Bytes, CallError> {
        self.inner.check_process().map_err(CallError::Request)?;
        let permit = self.inner.calls.room().await?;
        let (settle, response) = oneshot::channel();
        let settle = Box::new(move |result| {
            let _ = settle.send(result);
        });
        let (mut call, frame) = self.enter(bytes.into(), &options, permit, settle)?;
        let started = self.when_room(|| self.request(&mut call, peer, &frame, &options)).await;
        started.map_err(CallError::Request)?;
        drop(frame);
        response.await.unwrap_or(Err(CallError::Closed))
    }

    /// Has a call wait for its response, before there can be one; its request is to be sent.
    pub(super) fn enter(
        &self,
        bytes: Bytes,
        options: &SendOptions,
        permit: OwnedSemaphorePermit,
        settle: Settle,
    ) -> Result<(InFlight, Bytes), CallError> {
        let token = self.inner.calls.enter(settle)?;
        let patience = options.deadline.unwrap_or(self.inner.calls.patience);
        let frame = RequestFrame { token, patience, bytes }.write();
        let endpoint = std::sync::Arc::downgrade(&self.inner);
        Ok((InFlight { token, request: None, endpoint, permit: Some(permit) }, frame))
    }

    /// Begins to send the request of `call`; its time runs from then on.
    pub(super) fn request(
        &self,
        call: &mut InFlight,
        peer: SocketAddr,
        frame: &Bytes,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        let (calls, token) = (self.inner.calls.clone(), call.token);
        let span = tracing::debug_span!("call", %peer, bytes = frame.len());
        let id = span.in_scope(|| {
            let on_end = move |outcome| calls.on_sent(token, outcome);
            self.start(peer, Role::Request, frame.clone(), options, on_end)
        })?;
        call.request = Some(id);
        let patience = options.deadline.unwrap_or(self.inner.calls.patience);
        self.inner.calls.arm(token, patience);
        Ok(())
    }
}
