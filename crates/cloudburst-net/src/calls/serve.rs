//! Handlers that answer requests.

use super::{Request, RequestParts};
use crate::endpoint::Endpoint;
use bytes::Bytes;
use cloudburst_core::proto::Calls;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a request was handled.
pub(crate) enum Handled {
    Answered(Bytes),
    Panicked,
    /// Nobody waits for the response any more.
    Cancelled,
}

impl Endpoint {
    /// Serves requests with `handler`, at most `limit` at a time, until the endpoint shuts down and
    /// those that were taken are answered.
    ///
    /// All handlers run on the task that polls this. One that computes for long delays the others:
    /// hand such work to `spawn_blocking`. To use more cores, run this in several tasks, each with
    /// a clone of the endpoint. A `limit` of 0 counts as 1. Further requests wait in a queue of
    /// [`Config::receive_messages`](crate::Config::receive_messages), and then at their callers. A
    /// response is sent when its handler ends, and a handler's place is free before it has arrived.
    ///
    /// A handler is dropped when its caller has stopped waiting: see [`Request::is_cancelled`]. If
    /// `handler` panics, its caller is told that there is no answer, the panic is counted and
    /// logged, and other requests are served: `handler` must tolerate this. Dropping the future
    /// leaves the requests that are being handled without an answer.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, RequestParts, Security};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let address = server.local_addr();
    /// let serving = tokio::spawn({
    ///     let server = server.clone();
    ///     async move {
    ///         let handler = |request: RequestParts| async move { request.bytes.to_ascii_uppercase() };
    ///         server.serve(100, handler).await
    ///     }
    /// });
    /// assert_eq!(client.call(address, "hello").await?, "HELLO");
    ///
    /// assert!(server.shutdown(Duration::from_secs(1)).await); // ends `serve`
    /// serving.await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve<F, R>(&self, limit: usize, mut handler: F)
    where
        F: FnMut(RequestParts) -> R,
        R: Future<Output: Into<Bytes>>,
    {
        let mut handling = FuturesUnordered::new();
        let mut open = true;
        loop {
            if open && handling.len() < limit.max(1) {
                let mut next = pin!(self.recv_request());
                let next = poll_fn(|context| {
                    while let Poll::Ready(Some(())) = handling.poll_next_unpin(context) {}
                    next.as_mut().poll(context)
                });
                match next.await {
                    Ok(request) => {
                        let handle = || handler(request.parts());
                        let begun = catch_unwind(AssertUnwindSafe(handle)).ok();
                        handling.push(self.handle(request, begun));
                    }
                    Err(_) => open = false,
                }
            } else if handling.next().await.is_none() {
                return;
            }
        }
    }

    /// Sends what `handler` makes of a request. `None`: it has panicked.
    async fn handle<R: Future<Output: Into<Bytes>>>(&self, request: Request, handler: Option<R>) {
        let handled = match handler {
            None => Handled::Panicked,
            Some(handler) => {
                let mut handler = pin!(Some(async { handler.await.into() }));
                let mut cancelled = pin!(request.cancelled());
                let handled = poll_fn(|context| match catch_poll(handler.as_mut(), context) {
                    Poll::Ready(Some(response)) => Poll::Ready(Handled::Answered(response)),
                    Poll::Ready(None) => Poll::Ready(Handled::Panicked),
                    Poll::Pending => cancelled.as_mut().poll(context).map(|()| Handled::Cancelled),
                })
                .await;
                // What the handler owns is dropped here, and may panic, too.
                match catch_unwind(AssertUnwindSafe(|| handler.set(None))) {
                    Ok(()) => handled,
                    Err(_) => Handled::Panicked,
                }
            }
        };
        self.finish(request, handled).await;
    }

    pub(crate) async fn finish(&self, request: Request, handled: Handled) {
        let peer = request.peer();
        match handled {
            Handled::Answered(response) => {
                if let Err(error) = request.reply_detached(response).await {
                    tracing::debug!(%peer, %error, "a response was not sent");
                }
            }
            Handled::Panicked => {
                self.inner.unless_closed(|engine| engine.calls(Calls::count_panicked));
                tracing::error!(%peer, "the handler of a request panicked; its caller has no answer");
            }
            Handled::Cancelled => {
                tracing::debug!(%peer, "nobody waits for a response: its handler was dropped");
            }
        }
    }
}

/// Polls `handling`. The output is `None` if it panics.
fn catch_poll<R: Future>(
    handling: Pin<&mut Option<R>>,
    context: &mut Context<'_>,
) -> Poll<Option<R::Output>> {
    let Some(handling) = handling.as_pin_mut() else { return Poll::Ready(None) };
    match catch_unwind(AssertUnwindSafe(|| handling.poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    }
}
