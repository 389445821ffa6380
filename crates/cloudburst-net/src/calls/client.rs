//! Calls to one peer, as a `tower` service.

use super::Call;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::names::Peer;
use crate::operation::Operation;
use bytes::Bytes;
use cloudburst_core::proto::SendOptions;
use core::fmt;
use core::task::{Context, Poll};
use tower_service::Service;

/// Calls one peer: a `tower` [`Service`], made by [`Endpoint::client`].
///
/// It is always ready, until the endpoint closes: calls beyond the limit on calls in flight
/// ([`Limits::send_messages`](crate::Limits::send_messages)) wait in line. To be ready for fewer, or to shed load,
/// put it into a `tower::limit::ConcurrencyLimit`. Dropping the future of a call cancels it, so that layers with
/// timeouts stop its burst at once.
#[derive(Clone)]
pub struct Client {
    endpoint: Endpoint,
    peer: Peer,
    options: SendOptions,
}

impl Endpoint {
    /// A `tower` service that [calls](Self::call) `peer`. Requires the feature `tower`.
    ///
    /// Each service is for one peer: balance over several with `tower::balance`. Retry if
    /// [`SendError::may_have_been_delivered`] is `false`, or if requests may run twice.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Bytes, doc};
    /// # use std::time::Duration;
    /// # use tower::{Service, ServiceBuilder, ServiceExt};
    /// # doc::run(async |client, server| {
    /// # let address = server.local_addr();
    /// # tokio::spawn(async move {
    /// #     server.serve(100, |request| async move { request.bytes.to_ascii_uppercase() }).await
    /// # });
    /// let mut service = ServiceBuilder::new()
    ///     .concurrency_limit(10)
    ///     .timeout(Duration::from_secs(5))
    ///     .service(client.client(address));
    /// let answer = service.ready().await?.call(Bytes::from("hello")).await?;
    /// assert_eq!(answer, "HELLO");
    /// # Ok(())
    /// # });
    /// ```
    pub fn client(&self, peer: impl Into<Peer>) -> Client {
        let options = SendOptions::default();
        Client { endpoint: self.clone(), peer: peer.into(), options }
    }
}

impl Client {
    /// Uses these settings for calls from now on. The deadline of a call counts from `call`, and not from
    /// `poll_ready`.
    pub fn options(mut self, options: SendOptions) -> Self {
        self.options = options;
        self
    }

    /// The peer that it calls.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl Service<Bytes> for Client {
    type Response = Bytes;
    type Error = SendError;
    type Future = Operation<Call>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let closing = self.endpoint.inner.is_closing();
        Poll::Ready(if closing { Err(SendError::Closing) } else { Ok(()) })
    }

    fn call(&mut self, request: Bytes) -> Self::Future {
        self.endpoint.call(self.peer.clone(), request).options(self.options)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer).finish_non_exhaustive()
    }
}
