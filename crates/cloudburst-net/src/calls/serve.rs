//! Handlers that answer requests.

use super::Request;
use crate::endpoint::Endpoint;
use bytes::Bytes;
use cloudburst_core::proto::Calls;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Endpoint {
    /// Serves requests with `handler`, one after the other, until the endpoint is closed.
    ///
    /// To handle several requests at a time, run this in several tasks, each with a clone of the
    /// endpoint. Other requests wait in a queue as long as the one of messages, and then at their
    /// callers. A response is on its way when the next request is taken; nobody waits for it to
    /// arrive.
    ///
    /// If `handler` panics, its caller is told that there is no answer, the panic is counted and
    /// logged, and the next request is handled: `handler` must tolerate this. Dropping the future
    /// also leaves the request that is being handled without an answer.
    pub async fn serve<F, R>(&self, mut handler: F)
    where
        F: FnMut(SocketAddr, Bytes) -> R,
        R: Future<Output: Into<Bytes>>,
    {
        while let Ok(request) = self.recv_request().await {
            let (peer, bytes) = (request.peer(), request.bytes().clone());
            let response = match catch_unwind(AssertUnwindSafe(|| handler(peer, bytes))) {
                Ok(handling) => catch(async { handling.await.into() }).await,
                Err(_) => None,
            };
            self.finish(request, response).await;
        }
    }

    /// [`serve`](Self::serve) for a handler that blocks.
    pub(crate) async fn serve_blocking<B: Into<Bytes>>(
        &self,
        mut handler: impl FnMut(SocketAddr, Bytes) -> B,
    ) {
        while let Ok(request) = self.recv_request().await {
            let (peer, bytes) = (request.peer(), request.bytes().clone());
            let response = catch_unwind(AssertUnwindSafe(|| handler(peer, bytes).into())).ok();
            self.finish(request, response).await;
        }
    }

    async fn finish(&self, request: Request, response: Option<Bytes>) {
        let peer = request.peer();
        let Some(response) = response else {
            self.inner.unless_closed(|engine| engine.calls(Calls::count_panicked));
            tracing::error!(%peer, "the handler of a request panicked; its caller has no answer");
            return drop(request);
        };
        if let Err(error) = request.reply_detached(response).await {
            tracing::warn!(%peer, %error, "a response was not sent");
        }
    }
}

/// The output of `handling`; `None` if it has panicked.
async fn catch<R: Future>(handling: R) -> Option<R::Output> {
    let mut handling = pin!(handling);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_) => Poll::Ready(None),
    })
    .await
}
