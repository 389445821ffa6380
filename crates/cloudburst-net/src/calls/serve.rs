//! Handlers and services that answer requests.

use super::{Request, RequestParts};
use crate::endpoint::Endpoint;
use bytes::Bytes;
use cloudburst_core::proto::Calls;
use core::convert::Infallible;
use core::fmt::Display;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use futures_util::future::{FutureExt, NeverError};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a request was handled.
pub(crate) enum Handled {
    Answered(Bytes),
    Panicked,
    /// The handler returned an error.
    Failed(String),
    /// The response is no longer awaited.
    Cancelled,
}

/// A service that answers requests: the part of `tower::Service` that is needed here.
trait Service {
    type Response: Into<Bytes>;
    type Error: Display;
    type Future: Future<Output = Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;

    fn call(&mut self, request: RequestParts) -> Self::Future;
}

/// A service that is always ready.
struct Function<F>(F);

impl<F, R> Service for Function<F>
where
    F: FnMut(RequestParts) -> R,
    R: Future<Output = Bytes>,
{
    type Response = Bytes;
    type Error = Infallible;
    type Future = NeverError<R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: RequestParts) -> NeverError<R> {
        self.0(request).never_error()
    }
}

#[cfg(feature = "tower")]
struct Tower<S>(S);

#[cfg(feature = "tower")]
impl<S> Service for Tower<S>
where
    S: tower_service::Service<RequestParts, Response: Into<Bytes>, Error: Display>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: RequestParts) -> S::Future {
        self.0.call(request)
    }
}

impl Endpoint {
    /// Serves requests with `handler`, at most `limit` at a time, until the endpoint shuts down and all
    /// requests taken are answered.
    ///
    /// All handlers run on the task that polls this future. A handler that computes for long delays the
    /// others: hand such work to `spawn_blocking`. To use more cores, run this in several tasks, each with a
    /// clone of the endpoint. A `limit` of 0 counts as 1. Further requests wait in a queue of
    /// [`Config::receive_messages`](crate::Config::receive_messages), and then at their callers. A response
    /// is sent when its handler ends, and the handler's place is free before the response has arrived.
    ///
    /// A handler is dropped when its caller has stopped waiting: see [`Request::is_cancelled`]. If `handler`
    /// panics, its caller is told that there is no answer, the panic is counted and logged, and serving
    /// continues: `handler` must tolerate this. Dropping the future leaves the requests that are being
    /// handled without an answer.
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
        // Converted here: the compiler could not prove that the futures of services are `Send` if a handler
        // returns a `&'static str`.
        let into: fn(R::Output) -> Bytes = Into::into;
        let handler = Function(move |request| handler(request).map(into));
        match self.serve_by(limit, handler).await {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Serves requests with a `tower` service, as [`serve`](Self::serve) does with a function.
    /// Requires the feature `tower`.
    ///
    /// While one request waits for the service to be ready, no further request is taken: they wait at their
    /// callers. If the service answers with an error, that is logged, and the caller is told that there is no
    /// answer ([`SendError::Unanswered`](crate::SendError::Unanswered)).
    ///
    /// # Errors
    ///
    /// The error of `poll_ready`, which means that the service is broken. Requests that were taken but not
    /// answered then get no answer.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, RequestParts, Security};
    /// # use std::convert::Infallible;
    /// # use std::time::Duration;
    /// # use tower::{ServiceBuilder, service_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// # let address = server.local_addr();
    /// let service = ServiceBuilder::new()
    ///     .rate_limit(1_000, Duration::from_secs(1))
    ///     .service(service_fn(async |request: RequestParts| {
    ///         Ok::<_, Infallible>(request.bytes.to_ascii_uppercase())
    ///     }));
    /// tokio::spawn(async move { server.serve_with(100, service).await });
    /// assert_eq!(client.call(address, "hello").await?, "HELLO");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tower")]
    pub async fn serve_with<S>(&self, limit: usize, service: S) -> Result<(), S::Error>
    where
        S: tower_service::Service<RequestParts, Response: Into<Bytes>, Error: Display>,
    {
        self.serve_by(limit, Tower(service)).await
    }

    async fn serve_by<S: Service>(&self, limit: usize, mut service: S) -> Result<(), S::Error> {
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
                        let ready = {
                            let mut cancelled = pin!(request.cancelled());
                            poll_fn(|context| {
                                while let Poll::Ready(Some(())) = handling.poll_next_unpin(context)
                                {
                                }
                                match service.poll_ready(context) {
                                    Poll::Ready(ready) => Poll::Ready(Some(ready)),
                                    Poll::Pending => {
                                        cancelled.as_mut().poll(context).map(|()| None)
                                    }
                                }
                            })
                            .await
                        };
                        let Some(ready) = ready else { continue };
                        ready?;
                        let handle = || service.call(request.parts());
                        let begun = catch_unwind(AssertUnwindSafe(handle)).ok();
                        handling.push(self.handle(request, begun));
                    }
                    Err(_) => open = false,
                }
            } else if handling.next().await.is_none() {
                return Ok(());
            }
        }
    }

    /// Runs `handler` and sends its response. `None` if the service panicked before it returned a future.
    async fn handle<R, B, E>(&self, request: Request, handler: Option<R>)
    where
        R: Future<Output = Result<B, E>>,
        B: Into<Bytes>,
        E: Display,
    {
        let handled = match handler {
            None => Handled::Panicked,
            Some(handler) => {
                let response = async {
                    match handler.await {
                        Ok(response) => Handled::Answered(response.into()),
                        Err(error) => Handled::Failed(error.to_string()),
                    }
                };
                let mut handler = pin!(Some(response));
                let mut cancelled = pin!(request.cancelled());
                let handled = poll_fn(|context| match catch_poll(handler.as_mut(), context) {
                    Poll::Ready(Some(handled)) => Poll::Ready(handled),
                    Poll::Ready(None) => Poll::Ready(Handled::Panicked),
                    Poll::Pending => cancelled.as_mut().poll(context).map(|()| Handled::Cancelled),
                })
                .await;
                // This drops what the handler owns, which may panic, too.
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
                tracing::error!(%peer, "the handler of a request panicked: its caller gets no answer");
            }
            Handled::Failed(error) => {
                tracing::warn!(%peer, error, "a service failed: its caller gets no answer");
            }
            Handled::Cancelled => {
                tracing::debug!(%peer, "a response is no longer awaited: its handler was dropped");
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
