//! Handlers and services that answer requests.

use super::{Request, RequestParts};
use crate::endpoint::Endpoint;
use crate::error::{BoxError, Overloaded, SendError};
use bytes::Bytes;
use cloudburst_core::proto::CallTable;
use core::convert::Infallible;
use core::error::Error;
use core::future::{Future, poll_fn};
use core::iter;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use futures_core::{Stream, TryFuture};
use futures_util::future::{FutureExt, TryFutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// How a request was handled.
enum Handled {
    Answered(Bytes),
    Panicked,
    /// The handler returned the error [`Overloaded`], or an error with this source.
    Overloaded,
    /// The handler returned another error, of this text.
    Failed(String),
    /// The response is no longer awaited.
    Cancelled,
}

impl<B: Into<Bytes>, E: Into<BoxError>> From<Result<B, E>> for Handled {
    fn from(result: Result<B, E>) -> Self {
        match result.map_err(Into::into) {
            Ok(bytes) => Self::Answered(bytes.into()),
            // Checked here, where a panic of the error's methods counts as one of the handler.
            Err(error) if is_overload(&*error) => Self::Overloaded,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

/// A service that answers requests: the part of `tower::Service` that is needed here.
trait Service {
    /// The error of a service that will answer nothing more.
    type Broken;
    type Future: Future<Output = Handled>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Broken>>;

    fn call(&mut self, request: RequestParts) -> Self::Future;
}

/// A service that is always ready.
struct Function<F>(F);

impl<F, R> Service for Function<F>
where
    F: FnMut(RequestParts) -> R,
    R: Future<Output = Handled>,
{
    type Broken = Infallible;
    type Future = R;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: RequestParts) -> R {
        self.0(request)
    }
}

/// A `tower` service, and the function that converts its results.
#[cfg(feature = "tower")]
struct Tower<S: tower_service::Service<RequestParts>> {
    service: S,
    into: fn(Result<S::Response, S::Error>) -> Handled,
}

#[cfg(feature = "tower")]
impl<S> Service for Tower<S>
where
    S: tower_service::Service<RequestParts>,
{
    type Broken = S::Error;
    type Future =
        futures_util::future::Map<S::Future, fn(Result<S::Response, S::Error>) -> Handled>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: RequestParts) -> Self::Future {
        self.service.call(request).map(self.into)
    }
}

impl Endpoint {
    /// Serves requests with `handler`, at most `limit` at a time, until the endpoint shuts down and all
    /// requests taken are answered.
    ///
    /// All handlers run on the task that polls this future. A handler that computes for long delays the
    /// others: hand such work to `spawn_blocking`. To use more cores, run this in several tasks, each with a
    /// clone of the endpoint. A `limit` of 0 counts as 1. Further requests wait in a queue of
    /// [`Limits::receive_messages`](crate::Limits::receive_messages), and then at their callers. A response
    /// is sent when its handler ends, and the next handler may start before the response has arrived.
    ///
    /// A handler is dropped when its caller has stopped waiting: see [`Request::is_cancelled`]. If `handler`
    /// panics, its caller is told that there is no answer, the panic is counted and logged, and serving
    /// continues: `handler` must tolerate this. Dropping the future leaves the requests that are being
    /// handled without an answer.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{RequestParts, doc};
    /// # use std::time::Duration;
    /// # doc::run(async |client, server| {
    /// let address = server.local_addr();
    /// let service = server.clone();
    /// let serving = tokio::spawn(async move {
    ///     let handler = async |request: RequestParts| request.bytes.to_ascii_uppercase();
    ///     service.serve(100, handler).await
    /// });
    /// assert_eq!(client.call(address, "hello").await?, "HELLO");
    ///
    /// assert!(server.shutdown(Duration::from_secs(1)).await); // ends `serve`
    /// serving.await?;
    /// # Ok(())
    /// # });
    /// ```
    pub async fn serve<F, R>(&self, limit: usize, mut handler: F)
    where
        F: FnMut(RequestParts) -> R,
        R: Future<Output: Into<Bytes>>,
    {
        // Converted here, and likewise below: the compiler could not prove that the futures of services are
        // `Send` if the types that they convert from have lifetimes, such as `&'static str` has.
        let into: fn(R::Output) -> Handled = |response| Handled::Answered(response.into());
        let handler = Function(move |request| handler(request).map(into));
        match self.serve_by(limit, handler).await {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Serves requests with a `handler` that may fail, as [`serve`](Self::serve) does with one that cannot.
    ///
    /// If the error is [`Overloaded`], or if that is among its sources, the caller gets
    /// [`SendError::Overloaded`](crate::SendError::Overloaded), which says that it may send the request
    /// again. Any other error is logged, and the caller is told that there is no answer
    /// ([`SendError::Unanswered`](crate::SendError::Unanswered)): put errors that callers are to see into
    /// responses.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Overloaded, RequestParts, SendError, doc};
    /// # use std::error::Error;
    /// # doc::run(async |client, server| {
    /// # let address = server.local_addr();
    /// # let is_overloaded = || true;
    /// let double = async |request: RequestParts| -> Result<String, Box<dyn Error + Send + Sync>> {
    ///     let number: u32 = str::from_utf8(&request.bytes)?.parse()?;
    ///     if number > 1_000 && is_overloaded() {
    ///         return Err(Overloaded.into());
    ///     }
    ///     Ok((2 * number).to_string())
    /// };
    /// tokio::select! {
    ///     () = server.try_serve(100, double) => {}
    ///     () = async {
    ///         assert_eq!(client.call(address, "21").await, Ok("42".into()));
    ///         assert_eq!(client.call(address, "many").await, Err(SendError::Unanswered));
    ///         assert_eq!(client.call(address, "1001").await, Err(SendError::Overloaded));
    ///     } => {}
    /// }
    /// # Ok(())
    /// # });
    /// ```
    pub async fn try_serve<F, R>(&self, limit: usize, mut handler: F)
    where
        F: FnMut(RequestParts) -> R,
        R: TryFuture<Ok: Into<Bytes>, Error: Into<BoxError>>,
    {
        let into: fn(Result<R::Ok, R::Error>) -> Handled = Handled::from;
        let handler =
            Function(move |request| TryFutureExt::into_future(handler(request)).map(into));
        match self.serve_by(limit, handler).await {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Serves requests with a `tower` service, as [`serve`](Self::serve) does with a function.
    /// Requires the feature `tower`.
    ///
    /// While one request waits for the service to be ready, no further request is taken: they wait at their
    /// callers. Errors with which the service answers are those of [`try_serve`](Self::try_serve): map the error
    /// with which a service sheds load to [`Overloaded`].
    ///
    /// # Errors
    ///
    /// The error of `poll_ready`, which means that the service is broken. Requests that were taken but not
    /// answered then get no answer.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{RequestParts, doc};
    /// # use std::convert::Infallible;
    /// # use std::time::Duration;
    /// # use tower::{ServiceBuilder, service_fn};
    /// # doc::run(async |client, server| {
    /// # let address = server.local_addr();
    /// let service = ServiceBuilder::new()
    ///     .rate_limit(1_000, Duration::from_secs(1))
    ///     .service(service_fn(async |request: RequestParts| {
    ///         Ok::<_, Infallible>(request.bytes.to_ascii_uppercase())
    ///     }));
    /// tokio::spawn(async move { server.serve_with(100, service).await });
    /// assert_eq!(client.call(address, "hello").await?, "HELLO");
    /// # Ok(())
    /// # });
    /// ```
    #[cfg(feature = "tower")]
    // `Send` is checked here, for all services: where a stack with closures is spawned, the compiler could not
    // prove it.
    pub fn serve_with<S>(
        &self,
        limit: usize,
        service: S,
    ) -> impl Future<Output = Result<(), S::Error>> + Send + use<S>
    where
        S: tower_service::Service<
                RequestParts,
                Response: Into<Bytes>,
                Error: Into<BoxError> + Send,
            >,
        S: Send + 'static,
        S::Future: Send,
    {
        let endpoint = self.clone();
        async move { endpoint.serve_by(limit, Tower { service, into: Handled::from }).await }
    }

    /// Serves requests with `handler` in `limit` threads, this one included, until the endpoint
    /// shuts down and all requests taken are answered. A `limit` of 0 counts as 1. If the system
    /// refuses a thread, fewer threads serve, which is logged.
    ///
    /// A long-running handler should check [`RequestParts::is_cancelled`] from time to time,
    /// because it cannot be dropped. Everything else, panics included, is as with
    /// [`serve`](Self::serve).
    pub fn blocking_serve<B: Into<Bytes>>(
        &self,
        limit: usize,
        handler: impl Fn(RequestParts) -> B + Sync,
    ) {
        self.serve_in_threads(limit, |request| Handled::Answered(handler(request).into()));
    }

    /// Serves requests with a `handler` that may fail, as [`blocking_serve`](Self::blocking_serve) does with one
    /// that cannot. Errors are as with [`try_serve`](Self::try_serve).
    pub fn blocking_try_serve<B: Into<Bytes>, E: Into<BoxError>>(
        &self,
        limit: usize,
        handler: impl Fn(RequestParts) -> Result<B, E> + Sync,
    ) {
        self.serve_in_threads(limit, |request| handler(request).into());
    }

    fn serve_in_threads(&self, limit: usize, handler: impl Fn(RequestParts) -> Handled + Sync) {
        let serve = || {
            while let Ok(request) = self.recv_request().wait() {
                let handle = || handler(request.parts());
                let handled = catch_unwind(AssertUnwindSafe(handle)).unwrap_or(Handled::Panicked);
                self.block_on(self.finish(request, handled));
            }
        };
        thread::scope(|scope| {
            for threads in 1..limit.max(1) {
                let builder = thread::Builder::new().name("cbrst-serve".into());
                if let Err(error) = builder.spawn_scoped(scope, serve) {
                    tracing::warn!(%error, limit, threads, "fewer threads serve requests than configured");
                    break;
                }
            }
            serve();
        });
    }

    async fn serve_by<S: Service>(&self, limit: usize, mut service: S) -> Result<(), S::Broken> {
        // Polls only handlers that were woken. They run in the caller's task, so that they need be
        // neither `Send` nor `'static`.
        let mut handling = FuturesUnordered::new();
        loop {
            if handling.len() >= limit.max(1) {
                handling.next().await;
                continue;
            }
            // A request is taken before the service is asked whether it is ready: a shutdown, or a
            // caller that gives up, is noticed even while the service is busy. The price is one
            // request in hand.
            let Ok(request) = poll_beside(&mut handling, self.recv_request()).await else { break };
            let ready = {
                let mut cancelled = pin!(request.cancelled());
                let ready = poll_fn(|context| match service.poll_ready(context) {
                    Poll::Ready(ready) => Poll::Ready(Some(ready)),
                    Poll::Pending => cancelled.as_mut().poll(context).map(|()| None),
                });
                poll_beside(&mut handling, ready).await
            };
            let Some(ready) = ready else { continue };
            ready?;
            let handle = || service.call(request.parts());
            // A handler that panics fails its own request, and not those beside it.
            let begun = catch_unwind(AssertUnwindSafe(handle)).ok();
            handling.push(self.handle(request, begun));
        }
        while handling.next().await.is_some() {}
        Ok(())
    }

    /// Runs `handler` and sends its response. `None` if the service panicked before it returned a future.
    async fn handle<R>(&self, request: Request, handler: Option<R>)
    where
        R: Future<Output = Handled>,
    {
        let handled = match handler {
            None => Handled::Panicked,
            Some(handler) => {
                let mut handler = pin!(Some(handler));
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

    async fn finish(&self, request: Request, handled: Handled) {
        let peer = request.peer();
        match handled {
            Handled::Answered(response) => match request.reply_detached(Some(response)).await {
                Ok(()) => {}
                Err(error @ SendError::TooLarge { .. }) => {
                    tracing::warn!(%peer, %error, "a response was not sent: its caller gets no answer");
                }
                Err(error) => tracing::debug!(%peer, %error, "a response was not sent"),
            },
            Handled::Overloaded => {
                if let Err(error) = request.reply_detached(None).await {
                    tracing::debug!(%peer, %error, "the refusal of a request was not sent");
                }
            }
            Handled::Panicked => {
                self.inner.engine.calls(CallTable::count_panicked);
                tracing::error!(%peer, "the handler of a request panicked: its caller gets no answer");
            }
            Handled::Failed(error) => {
                tracing::warn!(%peer, %error, "a handler or service failed: its caller gets no answer");
            }
            Handled::Cancelled if self.inner.is_closing() => {
                tracing::warn!(%peer, "a handler was dropped: this endpoint shut down, or its caller gave up");
            }
            Handled::Cancelled => {
                tracing::debug!(%peer, "a handler was dropped: its caller no longer waits");
            }
        }
    }
}

fn is_overload(error: &(dyn Error + 'static)) -> bool {
    // By type, along the sources: layers wrap errors, and texts are no interface.
    iter::successors(Some(error), |&error| cause(error)).any(|error| error.is::<Overloaded>())
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        // Its `source()` is that of the error within.
        Some(within) => Some(within),
        None => error.source(),
    }
}

/// Waits for `future`, and runs `handling` meanwhile.
async fn poll_beside<F: Future>(
    handling: &mut (impl Stream<Item = ()> + Unpin),
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        while let Poll::Ready(Some(())) = handling.poll_next_unpin(context) {}
        future.as_mut().poll(context)
    })
    .await
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
