//! The endpoint that applications hold.

use crate::error::{Closed, SendError};
use crate::inner::Inner;
use crate::io::{GrantedBuffers, IoCounters, UdpIo};
use crate::path_map::{PathMap, PathMapError};
use crate::sending::Sending;
use crate::trace;
use crate::wakers::contained;
use bytes::Bytes;
use cloudburst_core::burst::{Engine, PacketIo};
use cloudburst_core::error::{Outcome, Receipt, SendError as Refusal};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::PathStats;
use cloudburst_core::proto::{
    CallCounters, Latencies, Message, PeerStats, ReceiverCounters, SendOptions, SenderCounters,
};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{io, thread};
use tokio::sync::oneshot;

/// Sends messages to peers and receives theirs.
///
/// Cloning is cheap, and all clones are one endpoint, for as many tasks and threads as there are.
/// Dropping the last one stops its threads and its bursts at once; [`close`](Self::close) first
/// lets them finish.
///
/// A fork of the process can neither send nor receive with it, and sees nothing of it: build
/// endpoints after forking.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Endpoint, Security};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let security = Security::pre_shared([7; 32]);
/// let loopback = "127.0.0.1:0".parse()?;
/// let one = Endpoint::builder().bind(loopback).security(security.clone()).build()?;
/// let other = Endpoint::builder().bind(loopback).security(security).build()?;
///
/// let receipt = one.send(other.local_addr(), "hello").await?;
/// println!("{} packets, {:?}", receipt.packets, receipt.completed_in);
/// assert_eq!(other.recv().await?.bytes, "hello");
/// assert!(one.close(std::time::Duration::from_secs(1)).await);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) inner: Arc<Inner>,
}

/// What an endpoint has done and seen since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// The sending half.
    pub sender: SenderCounters,
    /// The receiving half.
    pub receiver: ReceiverCounters,
    /// The sockets.
    pub io: IoCounters,
    /// Calls.
    pub calls: CallCounters,
}

impl Endpoint {
    pub(crate) fn new(inner: Inner, paths: &PathMap) -> io::Result<Self> {
        let inner = Arc::new(inner);
        inner.watch(paths)?;
        Ok(Self { inner })
    }

    /// The address that peers send to. Others may have it, too: see
    /// [`Builder::reuse_port`](crate::Builder::reuse_port).
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.engine.io().local_addr()
    }

    /// The addresses that packets leave from: the `k`-th is that of path `k` in a pool of source
    /// ports. They are this endpoint's alone; with
    /// [`Builder::reuse_port`](crate::Builder::reuse_port), [`local_addr`] is none of them, and
    /// messages to the first one reach this endpoint and no other.
    ///
    /// [`local_addr`]: Self::local_addr
    pub fn local_addrs(&self) -> &[SocketAddr] {
        self.inner.engine.io().local_addrs()
    }

    /// The sizes of the socket buffers that the system granted.
    pub fn granted_buffers(&self) -> GrantedBuffers {
        self.inner.engine.io().granted_buffers()
    }

    /// The engine, unless it is another process's: whoever held its locks at the fork does not
    /// exist here.
    fn here(&self) -> Option<&Engine<UdpIo>> {
        (!self.inner.is_forked()).then_some(&self.inner.engine)
    }

    /// What was done and seen so far; of the protocol, nothing in a fork.
    pub fn counters(&self) -> Counters {
        let core = self.here().map(Engine::counters).unwrap_or_default();
        let io = self.inner.engine.io().counters();
        Counters { sender: core.sender, receiver: core.receiver, io, calls: core.calls }
    }

    /// How long messages took so far: a copy of about 54 KB, for which sending and receiving wait
    /// some microseconds each.
    pub fn latencies(&self) -> Latencies {
        self.here().map(Engine::latencies).unwrap_or_default()
    }

    /// What passed between this endpoint and each peer that it remembers, by address: at most
    /// three times [`Config::max_peers`](crate::Config::max_peers).
    pub fn peers(&self) -> Vec<PeerStats> {
        self.here().map(Engine::peers).unwrap_or_default()
    }

    /// What passed between this endpoint and `peer`; `None` if it is not remembered.
    pub fn peer(&self, peer: SocketAddr) -> Option<PeerStats> {
        let peer = crate::io::plain(peer);
        self.peers().into_iter().find(|stats| stats.peer == peer)
    }

    /// The time on the endpoint's clock, which all moments in its counts were read from.
    pub fn now(&self) -> Instant {
        self.inner.engine.io().now()
    }

    /// Live counts of the paths to `peer`, by path number, removed ones among them; empty if
    /// nothing was sent there.
    pub fn paths(&self, peer: SocketAddr) -> Vec<PathStats> {
        self.here().map(|engine| engine.paths(crate::io::plain(peer))).unwrap_or_default()
    }

    /// Uses other paths from now on, for what is under way as well: what the topology lost gets no
    /// more packets, and what it gained takes its turns. Paths that stay keep their counts.
    ///
    /// New messages to peers that the map does not lead to are refused; what is under way to them
    /// goes on as it was. The map may need no more sockets, ports, flow labels or privileges than
    /// the one that the endpoint was built with. If the order is a digit reversal, the map must
    /// have as many paths as it, or be a part of one that had: what is missing leaves a gap in the
    /// order. A map from a file is watched from now on, as with [`PathMap::file`]; the file of the
    /// map before is not any more.
    ///
    /// # Errors
    ///
    /// See [`PathMapError`]; nothing has changed then.
    pub fn set_paths(&self, paths: PathMap) -> Result<(), PathMapError> {
        self.inner.set_paths(paths)
    }

    /// Bursts a message to `peer` until its receiver has it.
    ///
    /// Waits for room first where as much is under way as may be. Dropping the future stops the
    /// burst at once.
    ///
    /// # Errors
    ///
    /// See [`SendError`]: it says whether the message may have been delivered all the same.
    pub async fn send(
        &self,
        peer: SocketAddr,
        bytes: impl Into<Bytes>,
    ) -> Result<Receipt, SendError> {
        self.send_with(peer, bytes, SendOptions::default()).await
    }

    /// [`send`](Self::send) with a deadline, a priority, a code or a burst policy of its own.
    ///
    /// The deadline counts from when there is room.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub async fn send_with(
        &self,
        peer: SocketAddr,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Receipt, SendError> {
        let bytes = bytes.into();
        self.when_room(|| self.burst(peer, Role::Plain, bytes.clone(), &options)).await?.await
    }

    /// Begins to burst a message to `peer`: the first packets are on their way when this returns.
    ///
    /// # Errors
    ///
    /// [`SendError::Refused`] with [`Refusal::Full`] where as much is under way as may be.
    pub fn try_send(
        &self,
        peer: SocketAddr,
        bytes: impl Into<Bytes>,
    ) -> Result<Sending, SendError> {
        self.try_send_with(peer, bytes, SendOptions::default())
    }

    /// [`try_send`](Self::try_send) with a deadline, a priority, a code or a burst policy of its
    /// own.
    ///
    /// # Errors
    ///
    /// See [`try_send`](Self::try_send).
    pub fn try_send_with(
        &self,
        peer: SocketAddr,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Sending, SendError> {
        self.burst(peer, Role::Plain, bytes.into(), &options)
    }

    /// The next message that came in.
    ///
    /// # Errors
    ///
    /// [`Closed`] when the endpoint is closed and all messages were taken.
    pub async fn recv(&self) -> Result<Message, Closed> {
        loop {
            let readable = self.inner.readable.messages.notified();
            if let Some(message) = self.try_recv()? {
                self.inner.readable.pass_on(Role::Plain, &self.inner.engine);
                return Ok(message);
            }
            contained(readable).await;
        }
    }

    /// The next message if there is one.
    ///
    /// # Errors
    ///
    /// See [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Option<Message>, Closed> {
        let closed = self.inner.is_closed()?;
        let message = self.inner.engine.recv();
        if message.is_none() && closed { Err(Closed) } else { Ok(message) }
    }

    /// Takes no new messages, waits at most `within` for those under way and for peers that miss
    /// a STOP, then stops. Returns whether all sends had ended by then.
    ///
    /// Sends that had not ended resolve to [`SendError::Closed`], and so do calls: responses are
    /// new messages. Messages and requests that came in can still be received, but not replied to.
    /// Closing goes on where this future is dropped.
    pub async fn close(&self, within: Duration) -> bool {
        let (done, wait) = oneshot::channel();
        let endpoint = self.clone();
        // Closing blocks, and no runtime is at hand that could spare a thread.
        let close = move || {
            let drained = endpoint.inner.close(within);
            drop(endpoint);
            let _ = done.send(drained);
        };
        match thread::Builder::new().name("cbrst-close".into()).spawn(close) {
            Ok(_) => wait.await.unwrap_or(false),
            Err(_) => self.close_blocking(within),
        }
    }

    pub(crate) fn close_blocking(&self, within: Duration) -> bool {
        self.inner.close(within)
    }

    /// Tries to begin a send until there is room for it.
    pub(crate) async fn when_room<T>(
        &self,
        mut begin: impl FnMut() -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        // In a fork, who waits for room is another process's, and so is whoever held its lock.
        self.inner.check_process()?;
        let is_full = |begun: &Result<T, SendError>| {
            matches!(begun, Err(SendError::Refused(Refusal::Full { .. })))
        };
        let mut begun = begin();
        if is_full(&begun) {
            // Entered before trying again, so that it hears of the room that is left right after.
            let place = self.inner.room.enter(self.inner.process);
            begun = begin();
            while is_full(&begun) {
                place.pass().await;
                begun = begin();
            }
        }
        begun
    }

    pub(crate) fn burst(
        &self,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
    ) -> Result<Sending, SendError> {
        let span = trace::send(crate::io::plain(peer), bytes.len());
        let (ended, outcome) = oneshot::channel();
        let on_end = move |outcome| drop(ended.send(outcome));
        let id = span.in_scope(|| self.start(peer, role, bytes, options, on_end))?;
        span.record("id", id.0);
        Ok(Sending::new(id, outcome, &self.inner, span))
    }

    /// Begins to burst a message, and has `on_end` called when that has ended. It must not block.
    pub(crate) fn start(
        &self,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<MessageId, SendError> {
        self.inner.check_process()?;
        let peer = crate::io::plain(peer);
        self.inner
            .engine
            .send(peer, role, bytes, options, Box::new(on_end))
            .map_err(SendError::Refused)
    }
}
