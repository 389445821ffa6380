//! One call, from the caller's side.

use crate::driver::Inner;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::io::UdpIo;
use crate::names::Peer;
use crate::operation::{Kind, Operation, Parcel};
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::burst::{Engine, OnAnswer};
use cloudburst_core::proto::{CallId, SendOptions};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// A call in flight. Dropping it forgets the call, and either stops the burst of the request or withdraws the
/// request.
#[derive(Debug)]
pub(super) struct InFlight {
    call: CallId,
    endpoint: Weak<Inner>,
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
        let (end, ended) = oneshot::channel();
        let on_answer = Box::new(move |result| drop(end.send(result)));
        let _call = inner.begin_call(peer, &bytes, &options, on_answer)?;
        // Dropped without an answer: the engine was stopped.
        ended.await.map_or(Err(SendError::Closed), |result| result.map_err(SendError::from))
    }
}

impl Endpoint {
    /// Sends a request to `peer` and waits for its response, once the returned [`Operation`] is
    /// awaited or waited for. You can change its settings before. The deadline covers the whole call, from when
    /// it is first polled; the other settings apply to the request, and the callee chooses those of the response.
    ///
    /// `Ok` means that the application there has answered, which is more than the `Ok` of
    /// [`send`](Self::send) means: an empty response serves as a receipt by the application. The call ends by
    /// its deadline, of which the callee is told. Dropping the future stops the burst at once and forgets the
    /// call: a late response is dropped and counted. If the callee is known to have the request, it is told
    /// that the response is no longer awaited: see [`Request::is_cancelled`](crate::Request::is_cancelled).
    ///
    /// At most [`Limits::send_messages`] calls may be in flight; further calls wait in line, as messages do.
    /// Calls and plain messages share an endpoint but do not mix: [`recv`](Self::recv) returns neither requests
    /// nor responses. A request header takes 12 bytes of `max_message`, a response header 9.
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
}

impl Inner {
    /// Begins to send the request of a call, or lets it wait in line.
    pub(super) fn begin_call(
        self: &Arc<Self>,
        peer: SocketAddr,
        bytes: &Bytes,
        options: &SendOptions,
        on_answer: OnAnswer,
    ) -> Result<InFlight, SendError> {
        let request = self.engine.calls(|calls| calls.prepare(options.deadline, bytes));
        let span = tracing::debug_span!("call", %peer, bytes = request.len());
        span.in_scope(|| self.call(peer, &request, options, on_answer))?;
        Ok(InFlight { call: request.id(), endpoint: Arc::downgrade(self) })
    }
}
