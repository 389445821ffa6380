//! Calls to one peer, as a `tower` service.

use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::operation::BoxFuture;
use bytes::Bytes;
use cloudburst_core::proto::SendOptions;
use core::fmt;
use core::task::{Context, Poll, ready};
use std::net::SocketAddr;
use tokio::sync::OwnedSemaphorePermit;
use tower_service::Service;

/// Calls one peer: a `tower` [`Service`], made by [`Endpoint::client`].
///
/// `poll_ready` waits while the limit on calls in flight
/// ([`Limits::send_messages`](crate::Limits::send_messages)) is reached, and then reserves a permit for one call,
/// which `call` uses and dropping the client returns. A `call` without `poll_ready` waits for a permit itself.
/// Dropping the future of a call cancels it, so that layers with timeouts stop its burst at once.
///
/// Each clone reserves a permit of its own, even while it is ready and idle: if you balance over many clients,
/// allow for other calls in `Limits::send_messages`.
pub struct Client {
    endpoint: Endpoint,
    peer: SocketAddr,
    options: SendOptions,
    permit: Option<OwnedSemaphorePermit>,
    waiting: Option<BoxFuture<Result<OwnedSemaphorePermit, SendError>>>,
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
        Client { endpoint: self.clone(), peer, options, permit: None, waiting: None }
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

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        if self.permit.is_none() {
            let endpoint = &self.endpoint;
            let waiting = self.waiting.get_or_insert_with(|| {
                let inner = endpoint.inner.clone();
                Box::pin(async move { inner.call_limit.acquire().await })
            });
            let permit = ready!(waiting.as_mut().poll(context));
            self.waiting = None;
            // Held until `call`, since otherwise another client could take it: a service that was
            // ready would not be.
            self.permit = Some(permit?);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Bytes) -> Self::Future {
        let endpoint = self.endpoint.clone();
        let peer = self.peer;
        let options = self.options;
        match self.permit.take() {
            Some(permit) => {
                Box::pin(
                    async move { endpoint.call_permitted(permit, peer, request, options).await },
                )
            }
            None => Box::pin(async move { endpoint.call_with(peer, request, options).await }),
        }
    }
}

impl Clone for Client {
    fn clone(&self) -> Self {
        self.endpoint.client(self.peer).options(self.options)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer).finish_non_exhaustive()
    }
}
