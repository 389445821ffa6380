//! The endpoint.

use crate::driver::{Inner, Notifier, block_on};
use crate::error::{Closed, SendError};
use crate::io::{GrantedBuffers, IoCounters, UdpIo};
use crate::names::{self, Peer};
use crate::operation::{Kind, Operation, Parcel};
use crate::path_map::{PathMap, PathMapError};
use crate::sending::Sending;
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::burst::{Engine, PacketIo};
use cloudburst_core::config::Security;
use cloudburst_core::error::Receipt;
use cloudburst_core::naming::Naming;
use cloudburst_core::path::PathStats;
use cloudburst_core::proto::{
    CallCounters, Latencies, Message, PeerStats, ReceiverCounters, SenderCounters,
};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::fmt;
use core::future::IntoFuture;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{io, thread};
use tokio::sync::{Notify, oneshot};

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
/// A fork of the process must not use or drop an endpoint, whose threads it does not have: build endpoints after
/// forking.
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
/// # cloudburst_net::doc::run(async |client, server| {
/// client.send(server.local_addr(), "hello").await?;
/// let counters = client.counters();
/// assert_eq!(counters.sender.delivered, 1);
/// println!("{} datagrams in {} system calls", counters.io.datagrams_sent, counters.io.batches_sent);
/// # Ok(())
/// # });
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

impl Counters {
    /// The counters with their names, such as `sender.delivered` or `io.ecn.ce`, for programs that export all:
    /// the same names as in C and in Python.
    pub fn fields(&self) -> impl Iterator<Item = (String, u64)> + use<> {
        let Self { sender, receiver, io, calls } = self;
        let sender = sender.fields().map(|(name, value)| (format!("sender.{name}"), value));
        let receiver = receiver.fields().map(|(name, value)| (format!("receiver.{name}"), value));
        let io = io.fields().map(|(name, value)| (format!("io.{name}"), value));
        let calls = calls.fields().map(|(name, value)| (format!("calls.{name}"), value));
        sender.chain(receiver).chain(io).chain(calls)
    }
}

impl Endpoint {
    pub(crate) fn new(inner: Inner, paths: &PathMap) -> io::Result<Self> {
        let inner = Arc::new(inner);
        inner.watch_paths(paths)?;
        Ok(Self { inner })
    }

    /// The address that peers send to. Other endpoints may share it: see
    /// [`Builder::reuse_port`](crate::Builder::reuse_port).
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.engine.io().local_addr()
    }

    /// The addresses that packets leave from. In a pool of source ports, the `k`-th is the address of path
    /// `k`; the reserve sockets, which are tried for peers that do not answer, come after these. All belong to this
    /// endpoint alone. With [`Builder::reuse_port`](crate::Builder::reuse_port), [`local_addr`] is not among
    /// them, and messages to the first one reach this endpoint only.
    ///
    /// [`local_addr`]: Self::local_addr
    pub fn local_addrs(&self) -> &[SocketAddr] {
        self.inner.engine.io().local_addrs()
    }

    /// Whether `address` is this endpoint's own, one that it is [known as](crate::Builder::known_as), or
    /// neither.
    ///
    /// A handshake to any other address is not accepted: its initiator reports [`SendError::NotAccepted`].
    /// Addresses of interfaces are looked up at most five times a second.
    pub fn naming(&self, address: SocketAddr) -> Naming {
        self.inner.paths.addresses().naming(address)
    }

    /// Resolves `name`, such as `cache-7.example:7000`, to the first address of the system's
    /// resolver that this endpoint can send to. An endpoint on an IPv4 address can send only to
    /// IPv4 addresses.
    ///
    /// The look-up runs in threads of its own, takes milliseconds to seconds, and is not cached.
    /// Dropping the future leaves them to finish by themselves.
    ///
    /// # Errors
    ///
    /// The error of the resolver; [`io::ErrorKind::NotFound`] if it knows no usable address.
    pub async fn resolve(&self, name: impl Into<String>) -> io::Result<SocketAddr> {
        names::resolve(name.into(), self.local_addr(), Duration::MAX).await
    }

    /// The sizes of the socket buffers that the system granted.
    pub fn granted_buffers(&self) -> GrantedBuffers {
        self.inner.engine.io().granted_buffers()
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        let core = self.inner.engine.counters();
        let io = self.inner.engine.io().counters();
        Counters { sender: core.sender, receiver: core.receiver, io, calls: core.calls }
    }

    /// The claimed source address of the last handshake under an unknown key. For logs only: the address is
    /// not verified, and nothing was sent to it. The counter `refused_handshakes` counts such handshakes.
    pub fn refused_from(&self) -> Option<SocketAddr> {
        self.inner.engine.refused_from().map(crate::io::canonical)
    }

    /// The latencies so far: a copy of about 108 KB. Taking it delays sending and receiving by a
    /// few microseconds each.
    pub fn latencies(&self) -> Latencies {
        self.inner.engine.latencies()
    }

    /// The traffic with each peer that this endpoint remembers, sorted by address. There are at most three
    /// times [`Limits::max_peers`](crate::Limits::max_peers) peers.
    pub fn peers(&self) -> Vec<PeerStats> {
        self.inner.engine.peers()
    }

    /// The traffic with `peer`; `None` if the endpoint does not remember it.
    pub fn peer(&self, peer: SocketAddr) -> Option<PeerStats> {
        let peer = crate::io::canonical(peer);
        self.peers().into_iter().find(|stats| stats.peer == peer)
    }

    /// The time on the endpoint's clock, to which all times in its counters refer.
    pub fn now(&self) -> Instant {
        self.inner.engine.io().now()
    }

    /// Live counts of the paths to `peer`, by path number, including removed ones. Empty if nothing
    /// was sent there.
    ///
    /// # Example
    ///
    /// ```
    /// # cloudburst_net::doc::run(async |client, server| {
    /// client.send(server.local_addr(), "hello").await?;
    /// for path in client.paths(server.local_addr()) {
    ///     let via = path.via.egress;
    ///     println!("egress {via}: {} sent, {} of 1,000 lost", path.sent, path.loss_permille);
    /// }
    /// # Ok(())
    /// # });
    /// ```
    pub fn paths(&self, peer: SocketAddr) -> Vec<PathStats> {
        self.inner.engine.paths(crate::io::canonical(peer))
    }

    /// Changes the keys while the endpoint is in use: handshakes that begin from now on use those of
    /// `security`. Open sessions and everything under way go on, also in sessions that were opened under a
    /// key which is no longer accepted: to end those, restart the endpoint.
    ///
    /// To replace a key without a failed message, do each of these steps on all endpoints of the group before
    /// you begin the next one: accept the new key ([`Security::also_accept`]), begin with it and accept the old
    /// one, drop the old one.
    pub fn set_security(&self, security: impl Into<Security>) {
        self.inner.engine.set_security(&security.into());
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
    /// # use cloudburst_net::PathMap;
    /// # let endpoint = cloudburst_net::doc::endpoint();
    /// endpoint.set_paths(PathMap::ecmp(8))?;
    /// assert!(endpoint.set_paths(PathMap::ecmp(64)).is_err()); // more ports than were opened
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_paths(&self, paths: PathMap) -> Result<(), PathMapError> {
        self.inner.set_paths(paths)
    }

    /// Sends a message to `peer`, in a burst that ends when the receiver has it. Await the returned
    /// [`Operation`], [wait](Operation::wait) for it, or [begin](Operation::begin) it. Before that, you can set a
    /// priority, a code, a burst policy, and a deadline.
    ///
    /// The peer is an address, or a name that is looked up: see [`Peer`]. If the limits on messages under way are
    /// reached ([`Limits`](crate::Limits)), the message waits in line, as long as its deadline allows. Peers take
    /// turns, messages to one start in order of arrival, and they start whether or not their futures are polled
    /// again. Dropping the future takes the message out of the line, or stops the burst at once.
    ///
    /// # Errors
    ///
    /// See [`SendError`], which says whether the message may still have been delivered.
    ///
    /// # Example
    ///
    /// ```
    /// # use std::time::Duration;
    /// # cloudburst_net::doc::run(async |client, server| {
    /// let receipt = client.send(server.local_addr(), "hello").deadline(Duration::from_secs(1)).await?;
    /// println!("{} bytes in {} packets, {:?}", receipt.bytes, receipt.packets, receipt.total());
    /// # Ok(())
    /// # });
    /// ```
    pub fn send(&self, peer: impl Into<Peer>, bytes: impl Into<Bytes>) -> Operation<Plain> {
        Operation::new(Plain(self.parcel(peer, bytes)))
    }

    pub(crate) fn parcel(&self, peer: impl Into<Peer>, bytes: impl Into<Bytes>) -> Parcel {
        Parcel { inner: self.inner.clone(), peer: peer.into(), bytes: bytes.into() }
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
    /// # cloudburst_net::doc::run(async |client, server| {
    /// client.send(server.local_addr(), "hello").await?;
    /// let message = server.recv().await?;
    /// assert_eq!(message.bytes, "hello");
    /// server.send(message.peer, "hello yourself").await?;
    /// # Ok(())
    /// # });
    /// ```
    pub fn recv(&self) -> Operation<Receive<Message>> {
        let endpoint = self.clone();
        Operation::new(Receive {
            endpoint,
            take: Self::try_recv,
            readable: |notifier| &notifier.messages,
        })
    }

    /// Returns the next message if there is one.
    ///
    /// # Errors
    ///
    /// See [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Option<Message>, Closed> {
        let closed = self.inner.is_closed();
        let message = self.inner.engine.recv();
        if message.is_none() && closed { Err(Closed) } else { Ok(message) }
    }

    /// Shuts the endpoint down gracefully. Returns whether everything under way ended in time.
    ///
    /// 1. At once, it refuses new messages, connects and calls, and those that wait for capacity, with
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
    /// # use cloudburst_net::{Closed, doc};
    /// # use std::time::Duration;
    /// # doc::run(async |client, server| {
    /// client.send(server.local_addr(), "hello").await?;
    /// if !client.shutdown(Duration::from_secs(10)).await {
    ///     eprintln!("some messages had not ended");
    /// }
    /// assert_eq!(client.recv().await, Err(Closed));
    /// # Ok(())
    /// # });
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
            Ok(_) => matches!(wait.await, Ok(true)),
            Err(_) => self.inner.shutdown(within),
        }
    }

    /// [Shuts the endpoint down](Self::shutdown), and blocks this thread meanwhile.
    pub fn blocking_shutdown(&self, within: Duration) -> bool {
        self.inner.shutdown(within)
    }

    /// Runs `future` on this thread, which receives the endpoint's packets while it waits: for what has no
    /// [`wait`](Operation::wait) of its own, such as [`Calls::next`](crate::Calls::next). Do not use it in async
    /// code.
    pub fn block_on<F: IntoFuture>(&self, future: F) -> F::Output {
        block_on(Some(self.inner.engine.clone()), future.into_future())
    }

    /// Whether the endpoint is closed, because it was shut down: nothing more arrives.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Waits until the endpoint is [closed](Self::is_closed), for tasks that must end with it.
    pub async fn closed(&self) {
        let mut closed = self.inner.closed.subscribe();
        // The sender lives as long as `self`.
        let _ = closed.wait_for(|closed| *closed).await;
    }
}

/// A plain message: see [`Endpoint::send`].
#[derive(Debug)]
pub struct Plain(Parcel);

impl Operation<Plain> {
    /// Begins to burst the message, without waiting for capacity: when this returns, its first packets have left,
    /// or are about to leave together with those of other messages.
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] if the limits on messages under way are reached; [`SendError::NoAddress`] if the peer is
    /// a name, since a look-up takes time.
    ///
    /// # Example
    ///
    /// ```
    /// # cloudburst_net::doc::run(async |client, server| {
    /// let peer = server.local_addr();
    /// let (one, two) = (client.send(peer, "one").begin()?, client.send(peer, "two").begin()?);
    /// // Both are on their way.
    /// one.await?;
    /// two.await?;
    /// # Ok(())
    /// # });
    /// ```
    ///
    /// # Panics
    ///
    /// If it was polled before.
    pub fn begin(self) -> Result<Sending, SendError> {
        let Plain(Parcel { inner, peer, bytes }) = self.kind.expect("it was not polled");
        inner.send(peer.address()?, Role::Plain, bytes, &self.options.now().wait(false))
    }
}

impl Kind for Plain {
    type Options = Settings;
    type Output = Result<Receipt, SendError>;

    fn engine(&self) -> Option<Arc<Engine<UdpIo>>> {
        Some(self.0.inner.engine.clone())
    }

    async fn run(self, settings: Settings) -> Self::Output {
        let Parcel { inner, peer, bytes } = self.0;
        let (peer, options) = inner.find(peer, settings.now()).await?;
        inner.send(peer, Role::Plain, bytes, &options)?.await
    }
}

/// The next message or request: see [`Endpoint::recv`] and [`Endpoint::recv_request`].
#[derive(Debug)]
pub struct Receive<T> {
    pub(crate) endpoint: Endpoint,
    pub(crate) take: fn(&Endpoint) -> Result<Option<T>, Closed>,
    /// Notified when there may be one to take.
    pub(crate) readable: fn(&Notifier) -> &Notify,
}

impl<T: Send + Sync + 'static> Kind for Receive<T> {
    type Options = ();
    type Output = Result<T, Closed>;

    fn engine(&self) -> Option<Arc<Engine<UdpIo>>> {
        Some(self.endpoint.inner.engine.clone())
    }

    fn ready(&self) -> Option<Self::Output> {
        (self.take)(&self.endpoint).transpose()
    }

    async fn run(self, (): ()) -> Self::Output {
        let Self { endpoint, take, readable } = self;
        let _ = endpoint.inner.join_runtime();
        loop {
            let readable = readable(&endpoint.inner.notifier).notified();
            if let Some(next) = take(&endpoint)? {
                return Ok(next);
            }
            readable.await;
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}
