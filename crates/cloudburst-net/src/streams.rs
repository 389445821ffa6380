//! Endpoints as streams of what arrives, and as sinks for one peer.

use crate::calls::Request;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::sending::Sending;
use bytes::Bytes;
use cloudburst_core::proto::{Message, SendOptions};
use cloudburst_core::wire::Role;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use futures_core::Stream;
use futures_sink::Sink;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use std::net::SocketAddr;

/// A [`Stream`] of the messages or requests that arrive at an endpoint, made by
/// [`Endpoint::messages`] and [`Endpoint::requests`]. It ends when the endpoint does.
///
/// It holds a clone of the endpoint. Any number of streams and of other receivers may be used at a
/// time: each message goes to one of them. Dropping a stream loses no message.
#[must_use = "streams do nothing unless they are polled"]
pub struct Incoming<T>(Pin<Box<dyn Stream<Item = T> + Send + Sync>>);

/// Sends messages to one peer: a [`Sink`], made by [`Endpoint::sink`].
///
/// - A message beyond the limits on messages under way ([`Limits`](crate::Limits)) waits in line.
///   `poll_ready` then waits until one of the sink's messages has ended.
/// - `poll_flush` and `poll_close` wait until the receiver has all messages.
/// - Messages are independent of each other: they may arrive in another order, and each has its own
///   deadline.
///
/// An error concerns one message, and is reported by the next `poll_ready`, `poll_flush` or
/// `poll_close`; the sink can still be used. If it matters which message failed, use
/// [`Endpoint::send`]. Dropping the sink stops the bursts of messages that are under way: flush it
/// first.
#[must_use = "sinks do nothing unless they are polled"]
// For one peer: a sink for many would be held up by the slowest of them.
pub struct PeerSink {
    endpoint: Endpoint,
    peer: SocketAddr,
    options: SendOptions,
    under_way: FuturesUnordered<Sending>,
    /// Whether one of these has found no capacity, and none has ended since.
    is_full: bool,
}

impl Endpoint {
    /// Returns a [`Stream`] of the messages that arrive, as from [`recv`](Self::recv).
    ///
    /// # Example
    ///
    /// ```
    /// # use futures_util::StreamExt;
    /// # cloudburst_net::doc::run(async |client, server| {
    /// for number in 0..3 {
    ///     client.send(server.local_addr(), number.to_string()).await?;
    /// }
    /// let lengths = server.messages().map(|message| message.bytes.len());
    /// assert_eq!(lengths.take(3).collect::<Vec<_>>().await, [1, 1, 1]);
    /// # Ok(())
    /// # });
    /// ```
    pub fn messages(&self) -> Incoming<Message> {
        let next = async |endpoint: Self| Some((endpoint.recv().await.ok()?, endpoint));
        Incoming(Box::pin(stream::unfold(self.clone(), next).fuse()))
    }

    /// Returns a [`Stream`] of the requests that arrive, as from
    /// [`recv_request`](Self::recv_request).
    pub fn requests(&self) -> Incoming<Request> {
        let next = async |endpoint: Self| Some((endpoint.recv_request().await.ok()?, endpoint));
        Incoming(Box::pin(stream::unfold(self.clone(), next).fuse()))
    }

    /// Returns a [`Sink`] for messages to `peer`, which sends each as [`send`](Self::send) does.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Bytes, doc};
    /// # use futures_util::{SinkExt, StreamExt, stream};
    /// # doc::run(async |client, server| {
    /// let mut numbers = stream::iter(0..100).map(|number| Ok(Bytes::from(number.to_string())));
    /// let mut sink = client.sink(server.local_addr());
    /// sink.send_all(&mut numbers).await?; // Ok: the server has all of them
    /// assert_eq!(server.messages().take(100).count().await, 100);
    /// # Ok(())
    /// # });
    /// ```
    pub fn sink(&self, peer: SocketAddr) -> PeerSink {
        PeerSink {
            endpoint: self.clone(),
            peer,
            options: SendOptions::default(),
            under_way: FuturesUnordered::new(),
            is_full: false,
        }
    }
}

impl<T> Stream for Incoming<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.as_mut().poll_next(context)
    }
}

impl<T> fmt::Debug for Incoming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").finish_non_exhaustive()
    }
}

impl PeerSink {
    /// Uses these settings for messages from now on. Each message has the deadline for itself, from when it is
    /// put into the sink.
    pub fn options(mut self, options: SendOptions) -> Self {
        self.options = options;
        self
    }

    /// The peer that messages go to.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }
}

impl Sink<Bytes> for PeerSink {
    type Error = SendError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        while let Poll::Ready(Some(ended)) = self.under_way.poll_next_unpin(context) {
            self.is_full = false;
            ended?;
        }
        if self.is_full { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn start_send(mut self: Pin<&mut Self>, bytes: Bytes) -> Result<(), SendError> {
        let send = |wait| {
            let options = self.options.wait(wait);
            self.endpoint.inner.send(self.peer, Role::Plain, bytes.clone(), &options)
        };
        // `poll_ready` cannot reserve capacity, because it does not know the length yet.
        let sent = send(false);
        let is_full = matches!(sent, Err(SendError::Full { .. }));
        let sending = if is_full { send(true) } else { sent }?;
        self.is_full |= is_full;
        self.under_way.push(sending);
        Ok(())
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        while let Some(ended) = ready!(self.under_way.poll_next_unpin(context)) {
            self.is_full = false;
            ended?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_flush(context)
    }
}

impl fmt::Debug for PeerSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerSink")
            .field("peer", &self.peer)
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}
