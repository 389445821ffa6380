//! Many calls with one deadline: partition and aggregate.

use super::call::InFlight;
use crate::driver::Inner;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::io::UdpIo;
use crate::operation::{Kind, Operation};
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::burst::Engine;
use cloudburst_core::error::CallFailure;
use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use futures_core::Stream;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

type Ended = (usize, Result<Bytes, SendError>);

/// The result of one of many calls.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The index of the request, counted from 0.
    pub index: usize,
    /// The peer that the request went to.
    pub peer: SocketAddr,
    /// The response, or why there is none.
    pub result: Result<Bytes, SendError>,
}

/// Shows the length of the payload, not the payload.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, peer, result } = self;
        let mut shown = f.debug_struct("Response");
        shown.field("index", index).field("peer", peer);
        match result {
            Ok(bytes) => shown.field("len", &bytes.len()),
            Err(error) => shown.field("error", error),
        };
        shown.finish()
    }
}

/// Calls in flight, made by [`Endpoint::call_many`]: a [`Stream`] of their responses, in order of
/// arrival. Dropping this stops the bursts, and forgets the calls that have not ended.
#[derive(Debug)]
#[must_use = "dropping it cancels the calls"]
pub struct Calls {
    ended: UnboundedReceiver<Ended>,
    /// By index: the peer, and the call, or `None` once its result was returned.
    calls: Vec<(SocketAddr, Option<InFlight>)>,
    left: usize,
}

impl Calls {
    /// The number of calls whose results have not been returned yet.
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Waits for the next call to end and returns its result, or `None` once all results were
    /// returned.
    ///
    /// All calls end by the deadline. Dropping the future loses no response.
    pub async fn next(&mut self) -> Option<Response> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Waits until all calls have ended, by their deadline at the latest. Returns the results in
    /// the order of the requests.
    pub async fn results(mut self) -> Vec<Result<Bytes, SendError>> {
        let mut results = vec![Err(SendError::Closed); self.calls.len()];
        while let Some(Response { index, result, .. }) = self.next().await {
            results[index] = result;
        }
        results
    }
}

impl Stream for Calls {
    type Item = Response;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Response>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        // Every call holds a sender until it ends.
        let Some((index, result)) = ready!(self.ended.poll_recv(context)) else {
            return Poll::Ready(None);
        };
        self.left -= 1;
        let Some((peer, call)) = self.calls.get_mut(index) else { return Poll::Ready(None) };
        *call = None;
        Poll::Ready(Some(Response { index, peer: *peer, result }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Several calls: see [`Endpoint::call_many`].
pub struct CallMany {
    inner: Arc<Inner>,
    requests: Vec<(SocketAddr, Bytes)>,
}

impl Operation<CallMany> {
    /// Begins all calls, and returns the stream of their responses.
    ///
    /// # Panics
    ///
    /// If it was polled before.
    pub fn begin(self) -> Calls {
        self.kind.expect("it was not polled").begin(self.options)
    }
}

impl CallMany {
    fn begin(self, settings: Settings) -> Calls {
        // Calls beyond the limits are refused instead of waiting, as the deadlines of the others would
        // run meanwhile.
        let options = settings.now().wait(false);
        // One channel for all calls, so that the next response costs the same however many calls
        // there are. It holds at most one result for each.
        let (end, ended) = unbounded_channel();
        let mut calls = Vec::new();
        for (index, (peer, bytes)) in self.requests.into_iter().enumerate() {
            let ends = end.clone();
            let on_answer = Box::new(move |result: Result<Bytes, CallFailure>| {
                drop(ends.send((index, result.map_err(SendError::from))));
            });
            let begun = self.inner.begin_call(peer, &bytes, &options, on_answer);
            let call = begun.map_err(|error| end.send((index, Err(error))));
            calls.push((peer, call.ok()));
        }
        Calls { ended, left: calls.len(), calls }
    }
}

impl Kind for CallMany {
    type Options = Settings;
    type Output = Vec<Result<Bytes, SendError>>;

    fn engine(&self) -> Option<Arc<Engine<UdpIo>>> {
        Some(self.inner.engine.clone())
    }

    async fn run(self, settings: Settings) -> Self::Output {
        self.begin(settings).results().await
    }
}

impl fmt::Debug for CallMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.requests.len();
        f.debug_struct("CallMany").field("requests", &requests).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Sends several requests at once, each to its peer, and yields the responses as they arrive.
    ///
    /// [Begin](Operation::begin) the returned [`Operation`], whose settings you can change before, or await all
    /// results, in the order of the requests. The deadline applies to each call; as all calls begin together, all
    /// end by it. They do not wait for capacity: a request for which there is none ends with
    /// [`SendError::TooManyCalls`] or [`SendError::Full`].
    ///
    /// # Example
    ///
    /// ```
    /// # use std::time::Duration;
    /// # cloudburst_net::doc::run(async |client, server| {
    /// # let servers = [server.local_addr(); 3];
    /// # tokio::spawn(async move { server.serve(3, |request| async move { request.bytes }).await });
    /// let queries = servers.map(|server| (server, "query"));
    /// let mut calls = client.call_many(queries).deadline(Duration::from_secs(5)).begin();
    /// while let Some(response) = calls.next().await {
    ///     println!("{} from {}: {:?}", response.index, response.peer, response.result);
    ///     assert!(response.result.is_ok());
    /// }
    /// # Ok(())
    /// # });
    /// ```
    pub fn call_many<B: Into<Bytes>>(
        &self,
        requests: impl IntoIterator<Item = (SocketAddr, B)>,
    ) -> Operation<CallMany> {
        let requests = requests.into_iter().map(|(peer, bytes)| (peer, bytes.into())).collect();
        Operation::new(CallMany { inner: self.inner.clone(), requests })
    }
}
