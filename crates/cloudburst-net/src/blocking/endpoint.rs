//! The endpoint with blocking methods. It needs no async runtime.

use super::calls::{Calls, Request};
use super::sending::Sending;
use crate::calls::{Handled, Request as AsyncRequest, RequestParts};
use crate::driver::{block_on, block_on_for};
use crate::endpoint::{Counters, Endpoint as AsyncEndpoint};
use crate::error::{BoxError, Closed, SendError};
use crate::io::GrantedBuffers;
use crate::names;
#[cfg(doc)]
use crate::outgoing::Outgoing;
use crate::path_map::{PathMap, PathMapError};
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::burst::Driven;
use cloudburst_core::error::Receipt;
use cloudburst_core::path::PathStats;
use cloudburst_core::proto::{Latencies, Message, PeerStats, SendOptions};
use cloudburst_core::wire::Role;
use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use std::{io, thread};

/// An [`Endpoint`](AsyncEndpoint) whose methods block. Do not use it in async code.
///
/// It and its clones share the endpoint that it was made from.
///
/// # Example
///
/// ```
/// # let (client, server) = cloudburst_net::doc::pair();
/// let peer = server.local_addr();
/// client.connect(peer)?;
/// let receipt = client.send(peer, "hello")?;
/// assert_eq!(receipt.bytes, 5);
/// assert_eq!(server.recv()?.bytes, "hello");
///
/// println!("{:?}", client.counters().sender);
/// println!("p99 {:?}", client.latencies().sent.quantile(0.99));
/// for path in client.paths(peer) {
///     println!("{:?}: {} of 1,000 lost", path.via, path.loss_permille);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    endpoint: AsyncEndpoint,
    settings: Settings,
}

/// An iterator over the messages or requests that arrive at an endpoint, made by [`Endpoint::messages`] and
/// [`Endpoint::requests`]. It waits for each, and ends when the endpoint does.
///
/// It holds a clone of the endpoint. Any number of iterators and of other receivers may be used at a time:
/// each message goes to one of them.
#[must_use = "iterators do nothing unless they are consumed"]
pub struct Incoming<T> {
    endpoint: Endpoint,
    next: fn(&Endpoint) -> Result<T, Closed>,
}

impl<T> Iterator for Incoming<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        (self.next)(&self.endpoint).ok()
    }
}

impl<T> fmt::Debug for Incoming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").finish_non_exhaustive()
    }
}

impl AsyncEndpoint {
    /// The same endpoint, with blocking methods.
    pub fn blocking(&self) -> Endpoint {
        self.clone().into()
    }
}

impl Endpoint {
    /// Returns a handle of the same endpoint whose messages, calls and replies have these settings,
    /// and whose connects have their deadline. Other handles keep their own: unlike the `options` of an
    /// [`Outgoing`], this sets nothing of the handle that it is called on.
    pub fn with(&self, options: SendOptions) -> Self {
        Self { settings: Settings::new(options), ..self.clone() }
    }

    /// Returns a handle of the same endpoint whose messages, calls, replies and connects must have ended at
    /// `at`, instead of within a duration. Its other settings are those of this handle.
    pub fn deadline_at(&self, at: Instant) -> Self {
        Self { settings: self.settings.deadline_at(at), ..self.clone() }
    }

    /// The same endpoint for async callers.
    pub const fn as_async(&self) -> &AsyncEndpoint {
        &self.endpoint
    }

    /// The address that peers send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// The sizes of the socket buffers that the system granted.
    pub fn granted_buffers(&self) -> GrantedBuffers {
        self.endpoint.granted_buffers()
    }

    /// The counters so far. See [`AsyncEndpoint::counters`].
    pub fn counters(&self) -> Counters {
        self.endpoint.counters()
    }

    /// The claimed source address of the last handshake under an unknown key. See
    /// [`AsyncEndpoint::refused_from`].
    pub fn refused_from(&self) -> Option<SocketAddr> {
        self.endpoint.refused_from()
    }

    /// The latencies of messages so far. See [`AsyncEndpoint::latencies`].
    pub fn latencies(&self) -> Latencies {
        self.endpoint.latencies()
    }

    /// The traffic with each peer. See [`AsyncEndpoint::peers`].
    pub fn peers(&self) -> Vec<PeerStats> {
        self.endpoint.peers()
    }

    /// The traffic with `peer`. See [`AsyncEndpoint::peer`].
    pub fn peer(&self, peer: SocketAddr) -> Option<PeerStats> {
        self.endpoint.peer(peer)
    }

    /// Live counts of the paths to `peer`. See [`AsyncEndpoint::paths`].
    pub fn paths(&self, peer: SocketAddr) -> Vec<PathStats> {
        self.endpoint.paths(peer)
    }

    /// Replaces the paths. See [`AsyncEndpoint::set_paths`].
    ///
    /// # Errors
    ///
    /// See [`PathMapError`]. On error, nothing changes.
    pub fn set_paths(&self, paths: PathMap) -> Result<(), PathMapError> {
        self.endpoint.set_paths(paths)
    }

    /// Opens a session before the first message. See [`AsyncEndpoint::connect`].
    ///
    /// # Errors
    ///
    /// See [`AsyncEndpoint::connect`].
    pub fn connect(&self, peer: SocketAddr) -> Result<(), SendError> {
        self.block_on(self.endpoint.connect_with(peer, self.settings.now()))
    }

    /// Bursts a message until its receiver has it. The deadline counts from the call. See
    /// [`AsyncEndpoint::send`].
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn send(&self, peer: SocketAddr, bytes: impl Into<Bytes>) -> Result<Receipt, SendError> {
        let options = self.settings.now();
        let sending =
            self.endpoint.inner.send_when_possible(peer, Role::Plain, bytes.into(), options);
        Sending::new(self.block_on(sending)?).wait()
    }

    /// Begins to burst a message. See [`Outgoing::begin`].
    ///
    /// # Errors
    ///
    /// See [`Outgoing::begin`].
    ///
    /// # Example
    ///
    /// ```
    /// # let (client, server) = cloudburst_net::doc::pair();
    /// let peer = server.local_addr();
    /// let (one, two) = (client.try_send(peer, "one")?, client.try_send(peer, "two")?);
    /// // Both are on their way.
    /// one.wait()?;
    /// two.wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_send(
        &self,
        peer: SocketAddr,
        bytes: impl Into<Bytes>,
    ) -> Result<Sending, SendError> {
        let options = self.settings.now();
        self.endpoint.inner.try_send(peer, Role::Plain, bytes.into(), &options).map(Sending::new)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// [`Closed`] when the endpoint is closed and all messages have been taken.
    pub fn recv(&self) -> Result<Message, Closed> {
        loop {
            if let Some(message) = self.endpoint.try_recv()? {
                return Ok(message);
            }
            if self.endpoint.inner.drive_until_message(None) != Driven::Done {
                return self.block_on(self.endpoint.recv());
            }
        }
    }

    /// Waits for the next message for at most `timeout`. Returns `None` if none arrives in time.
    ///
    /// # Errors
    ///
    /// See [`recv`](Self::recv).
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Option<Message>, Closed> {
        let deadline = self.endpoint.now() + timeout;
        loop {
            if let Some(message) = self.endpoint.try_recv()? {
                return Ok(Some(message));
            }
            match self.endpoint.inner.drive_until_message(Some(deadline)) {
                Driven::Done => {}
                Driven::TimedOut => return Ok(None),
                Driven::ByAnother | Driven::Stopped => {
                    let left = deadline.saturating_since(self.endpoint.now());
                    return self.block_on_for(left, self.endpoint.recv()).transpose();
                }
            }
        }
    }

    /// Returns the next message if there is one.
    ///
    /// # Errors
    ///
    /// See [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Option<Message>, Closed> {
        self.endpoint.try_recv()
    }

    /// Returns an iterator over the messages that arrive, as from [`recv`](Self::recv).
    pub fn messages(&self) -> Incoming<Message> {
        Incoming { endpoint: self.clone(), next: Self::recv }
    }

    /// Resolves a name to an address. See [`AsyncEndpoint::resolve`].
    ///
    /// # Errors
    ///
    /// See [`AsyncEndpoint::resolve`].
    pub fn resolve(&self, name: &str) -> io::Result<SocketAddr> {
        names::resolve(name, self.local_addr())
    }

    /// Sends a request and waits for its response. See [`AsyncEndpoint::call`].
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    ///
    /// # Example
    ///
    /// ```
    /// # let (client, server) = cloudburst_net::doc::pair();
    /// let address = server.local_addr();
    /// let service = server.clone();
    /// let thread = std::thread::spawn(move || {
    ///     service.serve(8, |request| request.bytes.to_ascii_uppercase());
    /// });
    /// assert_eq!(client.call(address, "hello")?, "HELLO");
    ///
    /// server.shutdown(std::time::Duration::from_secs(1)); // ends `serve`
    /// thread.join().expect("it does not panic");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call(&self, peer: SocketAddr, bytes: impl Into<Bytes>) -> Result<Bytes, SendError> {
        self.block_on(self.endpoint.call_with(peer, bytes.into(), self.settings.now()))
    }

    /// Sends several requests at once, each to its peer. See [`AsyncEndpoint::call_many`].
    pub fn call_many<B: Into<Bytes>>(
        &self,
        requests: impl IntoIterator<Item = (SocketAddr, B)>,
    ) -> Calls {
        Calls(self.endpoint.call_many(requests).options(self.settings.now()).begin())
    }

    /// Waits for the next request. See [`AsyncEndpoint::recv_request`].
    ///
    /// # Errors
    ///
    /// [`Closed`] when the endpoint is shutting down.
    pub fn recv_request(&self) -> Result<Request, Closed> {
        self.block_on(self.endpoint.recv_request()).map(|request| self.take(request))
    }

    const fn take(&self, request: AsyncRequest) -> Request {
        Request { request, settings: self.settings }
    }

    /// Returns the next request if there is one.
    ///
    /// # Errors
    ///
    /// See [`recv_request`](Self::recv_request).
    pub fn try_recv_request(&self) -> Result<Option<Request>, Closed> {
        Ok(self.endpoint.try_recv_request()?.map(|request| self.take(request)))
    }

    /// Returns an iterator over the requests that arrive, as from [`recv_request`](Self::recv_request).
    pub fn requests(&self) -> Incoming<Request> {
        Incoming { endpoint: self.clone(), next: Self::recv_request }
    }

    /// Waits for the next request for at most `timeout`. Returns `None` if none arrives in time.
    ///
    /// # Errors
    ///
    /// See [`recv_request`](Self::recv_request).
    pub fn recv_request_timeout(&self, timeout: Duration) -> Result<Option<Request>, Closed> {
        let came = self.block_on_for(timeout, self.endpoint.recv_request()).transpose()?;
        Ok(came.map(|request| self.take(request)))
    }

    /// Serves requests with `handler` in `limit` threads, this one included, until the endpoint
    /// shuts down and all requests taken are answered. A `limit` of 0 counts as 1. If the system
    /// refuses a thread, fewer threads serve, which is logged.
    ///
    /// A long-running handler should check [`RequestParts::is_cancelled`] from time to time,
    /// because it cannot be dropped. Everything else, panics included, is as with
    /// [`AsyncEndpoint::serve`].
    pub fn serve<B: Into<Bytes>>(&self, limit: usize, handler: impl Fn(RequestParts) -> B + Sync) {
        self.serve_in_threads(limit, |request| Handled::Answered(handler(request).into()));
    }

    /// Serves requests with a `handler` that may fail, as [`serve`](Self::serve) does with one that cannot.
    /// Errors are as with [`AsyncEndpoint::try_serve`].
    pub fn try_serve<B, E>(
        &self,
        limit: usize,
        handler: impl Fn(RequestParts) -> Result<B, E> + Sync,
    ) where
        B: Into<Bytes>,
        E: Into<BoxError>,
    {
        self.serve_in_threads(limit, |request| handler(request).into());
    }

    fn serve_in_threads(&self, limit: usize, handler: impl Fn(RequestParts) -> Handled + Sync) {
        thread::scope(|scope| {
            for threads in 1..limit.max(1) {
                let builder = thread::Builder::new().name("cbrst-serve".into());
                if let Err(error) = builder.spawn_scoped(scope, || self.serve_here(&handler)) {
                    tracing::warn!(%error, limit, threads, "fewer threads serve requests than configured");
                    break;
                }
            }
            self.serve_here(&handler);
        });
    }

    fn serve_here(&self, handler: &impl Fn(RequestParts) -> Handled) {
        while let Ok(request) = self.block_on(self.endpoint.recv_request()) {
            let handle = || handler(request.parts());
            let handled = catch_unwind(AssertUnwindSafe(handle)).unwrap_or(Handled::Panicked);
            self.block_on(self.endpoint.finish(request, handled));
        }
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on(Some(self.endpoint.inner.engine.clone()), future)
    }

    fn block_on_for<F: Future>(&self, timeout: Duration, future: F) -> Option<F::Output> {
        block_on_for(Some(self.endpoint.inner.engine.clone()), timeout, future)
    }

    /// Shuts the endpoint down gracefully. Returns whether everything under way ended in time. See
    /// [`AsyncEndpoint::shutdown`].
    pub fn shutdown(&self, within: Duration) -> bool {
        self.endpoint.inner.shutdown(within)
    }

    /// Whether the endpoint is closed. See [`AsyncEndpoint::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.endpoint.is_closed()
    }
}

impl From<AsyncEndpoint> for Endpoint {
    fn from(endpoint: AsyncEndpoint) -> Self {
        Self { endpoint, settings: Settings::default() }
    }
}

impl From<Endpoint> for AsyncEndpoint {
    /// The same endpoint for async callers. The settings of the blocking handle stay behind.
    fn from(endpoint: Endpoint) -> Self {
        endpoint.endpoint
    }
}
