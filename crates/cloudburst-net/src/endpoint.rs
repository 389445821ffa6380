//! The async endpoint.

use crate::driver::{Inner, contained};
use crate::error::{Closed, SendError};
use crate::io::{GrantedBuffers, IoCounters, UdpIo};
use crate::outgoing::{Outgoing, Plain};
use crate::path_map::{PathMap, PathMapError};
use crate::sending::Sending;
use crate::settings::left;
use crate::trace;
use bytes::Bytes;
use cloudburst_core::burst::{Engine, PacketIo};
use cloudburst_core::error::Outcome;
use cloudburst_core::id::MessageId;
use cloudburst_core::naming::Naming;
use cloudburst_core::path::PathStats;
use cloudburst_core::proto::{
    CallCounters, Latencies, Message, PeerStats, ReceiverCounters, SendOptions, SenderCounters,
};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::fmt;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{io, thread};
use tokio::sync::oneshot;

/// Sends messages to peers and receives theirs.
///
/// Cloning is cheap. All clones are one endpoint, and any number of tasks and threads may use them. Dropping
/// the last one stops the endpoint's threads and bursts at once, and notifies peers;
/// [`shutdown`](Self::shutdown) first lets them finish.
///
/// A tokio runtime whose tasks use an endpoint must have I/O enabled (`enable_io` or `enable_all`): otherwise,
/// a task panics once, which aborts programs that are built with `panic = "abort"`. See the
/// [documentation of the crate](crate).
///
/// In a fork of the process, an endpoint can neither send nor receive, and its state is not
/// visible: build endpoints after forking.
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
/// assert!(one.shutdown(std::time::Duration::from_secs(1)).await);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) inner: Arc<Inner>,
}

/// Counters of an endpoint since it was built.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Endpoint, Security};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let security = Security::pre_shared([7; 32]);
/// # let loopback = "127.0.0.1:0".parse()?;
/// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
/// # let (client, server) = (build()?, build()?);
/// client.send(server.local_addr(), "hello").await?;
/// let counters = client.counters();
/// assert_eq!(counters.sender.delivered, 1);
/// println!("{} datagrams in {} system calls", counters.io.datagrams_sent, counters.io.batches_sent);
/// # Ok(())
/// # }
/// ```
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

    /// The address that peers send to. Other endpoints may share it: see
    /// [`Builder::reuse_port`](crate::Builder::reuse_port).
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.engine.io().local_addr()
    }

    /// The addresses that packets leave from. In a pool of source ports, the `k`-th is the address of path
    /// `k`; the spares, which are tried for peers that do not answer, come after these. All belong to this
    /// endpoint alone. With [`Builder::reuse_port`](crate::Builder::reuse_port), [`local_addr`] is not among
    /// them, and messages to the first one reach this endpoint only.
    ///
    /// [`local_addr`]: Self::local_addr
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, PathMap, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint =
    ///     Endpoint::builder().bind(loopback).paths(PathMap::ecmp(4)).security(security).build()?;
    /// assert_eq!(endpoint.local_addrs().len(), 8); // four paths and four spares
    /// assert_eq!(endpoint.local_addrs()[0], endpoint.local_addr());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn local_addrs(&self) -> &[SocketAddr] {
        self.inner.engine.io().local_addrs()
    }

    /// Whether `address` is this endpoint's own, one that it is [known as](crate::Builder::known_as), or
    /// neither. In a fork, no address is its own.
    ///
    /// A handshake to any other address is not accepted: its initiator reports [`SendError::NotAccepted`].
    /// Addresses of interfaces are looked up at most five times a second.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Naming, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint = Endpoint::builder().bind(loopback).security(security).build()?;
    /// assert_eq!(endpoint.naming(endpoint.local_addr()), Naming::Own);
    /// assert_eq!(endpoint.naming("203.0.113.7:7000".parse()?), Naming::Foreign);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn naming(&self, address: SocketAddr) -> Naming {
        self.inner.naming(address)
    }

    /// The sizes of the socket buffers that the system granted.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let endpoint = Endpoint::builder().bind(loopback).security(security).build()?;
    /// let granted = endpoint.granted_buffers();
    /// if granted.receive < granted.wanted {
    ///     eprintln!("raise it: sysctl -w net.core.rmem_max={}", granted.wanted);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn granted_buffers(&self) -> GrantedBuffers {
        self.inner.engine.io().granted_buffers()
    }

    /// The engine, unless this is a fork: a thread that held one of its locks at the fork does not exist
    /// here.
    fn here(&self) -> Option<&Engine<UdpIo>> {
        (!self.inner.is_forked()).then_some(&self.inner.engine)
    }

    /// The counters so far. In a fork, those of the protocol are zero.
    pub fn counters(&self) -> Counters {
        let core = self.here().map(Engine::counters).unwrap_or_default();
        let io = self.inner.engine.io().counters();
        Counters { sender: core.sender, receiver: core.receiver, io, calls: core.calls }
    }

    /// The claimed source address of the last handshake under an unknown key. For logs only: the address is
    /// not verified, and nothing was sent to it. The counter `refused_handshakes` counts such handshakes.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let endpoint = Endpoint::builder().bind(loopback).security(security).build()?;
    /// if let Some(address) = endpoint.refused_from() {
    ///     let count = endpoint.counters().receiver.refused_handshakes;
    ///     eprintln!("{count} handshakes under another key; the last claims to be from {address}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refused_from(&self) -> Option<SocketAddr> {
        self.here().and_then(Engine::refused_from).map(crate::io::plain)
    }

    /// The latencies of messages so far: a copy of about 54 KB. Taking it delays sending and receiving by a
    /// few microseconds each.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// client.send(server.local_addr(), "hello").await?;
    /// let sent = client.latencies().sent;
    /// assert_eq!(sent.count(), 1);
    /// println!("median {:?}, p99 {:?}", sent.quantile(0.5), sent.quantile(0.99));
    /// # Ok(())
    /// # }
    /// ```
    pub fn latencies(&self) -> Latencies {
        self.here().map(Engine::latencies).unwrap_or_default()
    }

    /// The traffic with each peer that this endpoint remembers, sorted by address. There are at most three
    /// times [`Config::max_peers`](crate::Config::max_peers) peers.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// client.send(server.local_addr(), "hello").await?;
    /// for stats in client.peers() {
    ///     println!("{}: {} delivered, {:?}", stats.peer, stats.sent.delivered, stats.sent.round_trip);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn peers(&self) -> Vec<PeerStats> {
        self.here().map(Engine::peers).unwrap_or_default()
    }

    /// The traffic with `peer`; `None` if the endpoint does not remember it.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// client.send(server.local_addr(), "hello").await?;
    /// let sent = client.peer(server.local_addr()).map(|stats| stats.sent.delivered);
    /// assert_eq!(sent, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn peer(&self, peer: SocketAddr) -> Option<PeerStats> {
        let peer = crate::io::plain(peer);
        self.peers().into_iter().find(|stats| stats.peer == peer)
    }

    /// The time on the endpoint's clock, to which all times in its counters refer.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// client.send(server.local_addr(), "hello").await?;
    /// if let Some(heard) = client.peer(server.local_addr()).and_then(|stats| stats.sent.last_heard) {
    ///     println!("last heard of {:?} ago", client.now().saturating_since(heard));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn now(&self) -> Instant {
        self.inner.engine.io().now()
    }

    /// Live counts of the paths to `peer`, by path number, including removed ones. Empty if nothing
    /// was sent there.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// client.send(server.local_addr(), "hello").await?;
    /// for path in client.paths(server.local_addr()) {
    ///     let via = path.via.egress;
    ///     println!("egress {via}: {} sent, {} of 1,000 lost", path.sent, path.loss_permille);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn paths(&self, peer: SocketAddr) -> Vec<PathStats> {
        self.here().map(|engine| engine.paths(crate::io::plain(peer))).unwrap_or_default()
    }

    /// Replaces the paths, also for messages under way: removed paths carry no more packets, and
    /// new ones are used at once. Paths that stay keep their counts.
    ///
    /// New messages to peers that the map does not cover are refused; those under way to them continue as
    /// before. The map must not need more sockets, ports, flow labels or privileges than the one that the
    /// endpoint was built with. If the order is a digit reversal, the map must have as many paths as the
    /// order, or be a subset of a map that had them; missing paths leave gaps in the order. If the map is
    /// from a file, the file is watched from now on, as with [`PathMap::file`]; that of the previous map no
    /// longer is.
    ///
    /// # Errors
    ///
    /// See [`PathMapError`]. On error, nothing changes.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, PathMap, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint =
    ///     Endpoint::builder().bind(loopback).paths(PathMap::ecmp(16)).security(security).build()?;
    /// endpoint.set_paths(PathMap::ecmp(8))?;
    /// assert!(endpoint.set_paths(PathMap::ecmp(64)).is_err()); // more ports than were opened
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_paths(&self, paths: PathMap) -> Result<(), PathMapError> {
        self.inner.set_paths(paths)
    }

    /// Sends a message to `peer`, in a burst that ends when the receiver has it. Await the returned
    /// [`Outgoing`], or [begin](Outgoing::begin) it. Before that, you can set a priority, a code, a burst
    /// policy, and a deadline.
    ///
    /// If the limits on messages under way are reached, the future first waits for room, as long as the
    /// deadline allows. Dropping it stops the burst at once.
    ///
    /// # Errors
    ///
    /// See [`SendError`], which says whether the message may still have been delivered.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let receipt = client.send(server.local_addr(), "hello").deadline(Duration::from_secs(1)).await?;
    /// println!("{} bytes in {} packets, {:?}", receipt.bytes, receipt.packets, receipt.total());
    /// # Ok(())
    /// # }
    /// ```
    pub fn send(&self, peer: SocketAddr, bytes: impl Into<Bytes>) -> Outgoing<Plain<'_>> {
        Outgoing::new(Plain { endpoint: self, peer, bytes: bytes.into() })
    }

    /// Receives the next message.
    ///
    /// # Errors
    ///
    /// [`Closed`] when the endpoint is closed and all messages have been taken.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// client.send(server.local_addr(), "hello").await?;
    /// let message = server.recv().await?;
    /// assert_eq!(message.bytes, "hello");
    /// server.send(message.peer, "hello yourself").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recv(&self) -> Result<Message, Closed> {
        let _ = self.inner.join_runtime();
        loop {
            let readable = self.inner.readable.messages.notified();
            if let Some(message) = self.try_recv()? {
                return Ok(message);
            }
            self.inner.process.wait(contained(readable)).await.map_err(|_forked| Closed)?;
        }
    }

    /// Returns the next message if there is one.
    ///
    /// # Errors
    ///
    /// See [`recv`](Self::recv).
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// assert_eq!(server.try_recv()?, None);
    /// client.send(server.local_addr(), "hello").await?; // Ok: it is in the queue
    /// assert_eq!(server.try_recv()?.map(|message| message.bytes), Some("hello".into()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_recv(&self) -> Result<Option<Message>, Closed> {
        let closed = self.inner.is_closed()?;
        let message = self.inner.engine.recv();
        if message.is_none() && closed { Err(Closed) } else { Ok(message) }
    }

    /// Shuts the endpoint down gracefully. Returns whether everything under way ended in time.
    ///
    /// 1. At once, it refuses new messages, connects and calls, and those that wait for room, with
    ///    [`SendError::Closing`]: nothing of them was sent. It also refuses requests that the application has
    ///    not taken. Peers are told [`RejectReason::Closing`](crate::RejectReason::Closing), after which it is
    ///    safe to try elsewhere. [`serve`](Self::serve) and [`recv_request`](Self::recv_request) take no more
    ///    requests.
    /// 2. It waits at most `within` for sends, connects and calls that are under way, for replies to
    ///    requests that the application has taken, and for messages that are being received.
    /// 3. It stops. Sends, connects and calls that have not ended resolve to [`SendError::Closed`], callers
    ///    without a reply are told that there is none, and handlers that are still running are dropped.
    ///
    /// Messages that have arrived can still be received. The shutdown continues if this future is dropped.
    /// Dropping the last clone of the endpoint shuts it down without waiting: peers are notified once, and
    /// those that the notice does not reach find out by their deadlines.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Closed, Endpoint, Security};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// client.send(server.local_addr(), "hello").await?;
    /// if !client.shutdown(Duration::from_secs(10)).await {
    ///     eprintln!("some messages had not ended");
    /// }
    /// assert_eq!(client.recv().await, Err(Closed));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self, within: Duration) -> bool {
        let (done, wait) = oneshot::channel();
        let endpoint = self.clone();
        // This blocks, and there may be no runtime to lend a thread.
        let shutdown = move || {
            let drained = endpoint.inner.shutdown(within);
            drop(endpoint);
            let _ = done.send(drained);
        };
        match thread::Builder::new().name("cbrst-shutdown".into()).spawn(shutdown) {
            Ok(_) => matches!(self.inner.process.wait(wait).await, Ok(Ok(true))),
            Err(_) => self.inner.shutdown(within),
        }
    }

    /// Whether the endpoint is closed, because it was shut down: nothing more arrives. Always `true` in a fork.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let endpoint = Endpoint::builder().bind(loopback).security(security).build()?;
    /// assert!(!endpoint.is_closed());
    /// endpoint.shutdown(Duration::ZERO).await;
    /// assert!(endpoint.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed().unwrap_or(true)
    }

    /// Waits until the endpoint is [closed](Self::is_closed), for tasks that must end with it.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let endpoint = Endpoint::builder().bind(loopback).security(security).build()?;
    /// let watched = endpoint.clone();
    /// let watch = tokio::spawn(async move {
    ///     watched.closed().await;
    ///     println!("{} is closed", watched.local_addr());
    /// });
    /// endpoint.shutdown(Duration::from_secs(1)).await;
    /// watch.await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn closed(&self) {
        if !self.is_closed() {
            let mut over = self.inner.over.subscribe();
            // An error says that this is a fork, where the endpoint is closed.
            let _ = self.inner.process.wait(contained(over.wait_for(|over| *over))).await;
        }
    }

    /// Begins to burst a message once there is room for it.
    pub(crate) async fn burst_when_room(
        &self,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: SendOptions,
    ) -> Result<Sending, SendError> {
        self.when_room(options, |options| self.burst(peer, role, bytes.clone(), options)).await
    }

    /// Tries to begin a send until there is room for it or its deadline passes. `begin` gets `options` with
    /// what is left of the deadline.
    pub(crate) async fn when_room<T>(
        &self,
        options: SendOptions,
        mut begin: impl FnMut(&SendOptions) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        // In a fork, the senders that wait for room belong to another process, and so may the holder of the
        // lock.
        self.inner.check_process()?;
        let is_full = |begun: &Result<T, SendError>| matches!(begun, Err(SendError::Full { .. }));
        let mut begun = begin(&options);
        if is_full(&begun) {
            let until = self.inner.end_of(&options);
            // Entered before the retry, so that it learns of room that becomes free right after.
            let place = self.inner.room.enter(self.inner.process.clone());
            begun = begin(&options);
            while is_full(&begun) {
                self.inner.within(until, place.pass()).await?;
                begun = begin(&left(options, until));
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

    /// Begins to burst a message. `on_end` is called when the send has ended; it must not block.
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
        self.inner.send(peer, role, bytes, options, Box::new(on_end)).map_err(SendError::from)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}
