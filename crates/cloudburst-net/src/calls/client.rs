//! Calls to one peer, as a `tower` service.

use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::operation::BoxFuture;
use bytes::Bytes;
use cloudburst_core::proto::SendOptions;
use core::fmt;
use core::task::{Context, Poll};
use std::net::SocketAddr;
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
    peer: SocketAddr,
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
    pub fn client(&self, peer: SocketAddr) -> Client {
        let options = SendOptions::default();
        Client { endpoint: self.clone(), peer, options }
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
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }
}

impl Service<Bytes> for Client {
    type Response = Bytes;
    type Error = SendError;
    type Future = BoxFuture<Result<Bytes, SendError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let closing = self.endpoint.inner.is_closing();
        Poll::Ready(if closing { Err(SendError::Closing) } else { Ok(()) })
    }

    fn call(&mut self, request: Bytes) -> Self::Future {
        let Self { endpoint, peer, options } = self.clone();
        Box::pin(async move { endpoint.call_with(peer, request, options).await })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer).finish_non_exhaustive()
    }
}
