//! Builds endpoints.

use crate::driver::Inner;
use crate::endpoint::Endpoint;
use crate::error::BuildError;
use crate::io::{UdpConfig, UdpIo, link_speed, plain};
use crate::path_map::{PathMap, is_of_a_host};
use crate::paths::{Addresses, Resolver};
use crate::qlog::Qlog;
use cloudburst_core::burst::PacketIo;
use cloudburst_core::config::{Capacity, Config, ConfigError, Security};
use cloudburst_core::path::Order;
use cloudburst_core::proto;
use cloudburst_core::rng::Seed;
use core::time::Duration;
use rand::RngReader;
use rand::rngs::SysRng;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

/// The default DSCP of packets. See [`Builder::dscp`] and [`Builder::dscps`].
pub const DEFAULT_DSCP: u8 = 43;
/// The default size in bytes to request for each socket buffer. See [`Builder::socket_buffers`].
pub const DEFAULT_SOCKET_BUFFERS: usize = 4 << 20;

/// Settings from which an [`Endpoint`] is built. All but [`security`](Self::security) have defaults, and
/// [`build`](Self::build) checks all of them.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Endpoint, PathMap, Security};
/// let endpoint = Endpoint::builder()
///     .bind("127.0.0.1:0".parse()?)
///     .paths(PathMap::ecmp(8))
///     .security(Security::pre_shared([7; 32])) // 32 bytes from a safe place
///     .capacity(25_000_000_000) // bits per second
///     .dscp(43)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `build`"]
pub struct Builder {
    bind: SocketAddr,
    known_as: Vec<SocketAddr>,
    paths: PathMap,
    security: Option<Security>,
    config: Config,
    capacity: Option<Capacity>,
    rate: Option<f64>,
    order: Option<Order>,
    busy_poll: Option<Duration>,
    reuse_port: Option<bool>,
    adaptive_rate: Option<bool>,
    aeolus: Option<bool>,
    ecn: Option<bool>,
    dscps: Vec<u8>,
    trim_dscp: Option<u8>,
    socket_buffers: usize,
    qlog: Option<PathBuf>,
}

impl Endpoint {
    /// Returns a builder with the default settings.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// let builder = Endpoint::builder().bind("127.0.0.1:0".parse()?).security(Security::pre_shared([7; 32]));
    /// let (one, other) = (builder.clone().build()?, builder.build()?);
    /// assert_ne!(one.local_addr(), other.local_addr());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            bind: (Ipv4Addr::UNSPECIFIED, 0).into(),
            known_as: Vec::new(),
            paths: PathMap::default(),
            security: None,
            config: Config::default(),
            capacity: None,
            rate: None,
            order: None,
            busy_poll: None,
            reuse_port: None,
            adaptive_rate: None,
            aeolus: None,
            ecn: None,
            dscps: vec![DEFAULT_DSCP],
            trim_dscp: None,
            socket_buffers: DEFAULT_SOCKET_BUFFERS,
            qlog: None,
        }
    }

    /// The address that peers send to. Default `0.0.0.0:0`: any IPv4 address of this host and a port that the
    /// system picks.
    ///
    /// An endpoint at an IPv6 address takes only IPv6, except that one at `[::]` takes IPv4 as well.
    pub const fn bind(mut self, addr: SocketAddr) -> Self {
        self.bind = addr;
        self
    }

    /// The addresses that peers send to, if a device in between translates them into an address of
    /// this host: destination NAT, the virtual IP address of a load balancer, or the published port
    /// of a container. Default: none.
    ///
    /// A handshake names the address that it is meant for, and an endpoint accepts only its own addresses and
    /// these, so that an attacker cannot relay a handshake to another host. Its own address is that of
    /// [`bind`](Self::bind) or, if that is unspecified, every address that an interface of this host has at
    /// the time, `lo` included. Also list an address here if packets to it reach this host only by a local
    /// route (`ip route add local`), or if it moves between hosts, as to a standby: otherwise, both hosts may
    /// deliver a message that is under way when it moves.
    ///
    /// Give the IP address and the port that peers send to; of several ports ([`PathMap::ecmp_pairs`]), the
    /// first. A second call replaces the addresses of the first. Cannot be combined with
    /// [`reuse_port`](Self::reuse_port): peers then send to ports of individual endpoints, which no
    /// translator forwards.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Naming, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let public = "203.0.113.7:443".parse()?; // which a device translates into this host's address
    /// let endpoint =
    ///     Endpoint::builder().bind(loopback).known_as([public]).security(security).build()?;
    /// assert_eq!(endpoint.naming(public), Naming::Translated);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn known_as(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.known_as = addresses.into_iter().map(plain).collect();
        self
    }

    /// The paths to spread packets over. Default [`PathMap::ecmp(16)`](PathMap::ecmp).
    pub fn paths(mut self, paths: PathMap) -> Self {
        self.paths = paths;
        self
    }

    /// The order in which packets visit the paths. Default [`Order::RoundRobin`].
    ///
    /// A digit reversal must have as many paths as the map.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Order, PathMap, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .paths(PathMap::ecmp(16))
    ///     .order(Order::Recycled) // prefer paths that delivered
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }

    /// How peers are authenticated: a [`Security`], or a [`PresharedKey`](crate::PresharedKey). Mandatory.
    pub fn security(mut self, security: impl Into<Security>) -> Self {
        self.security = Some(security.into());
        self
    }

    /// All settings of the protocol.
    ///
    /// [`capacity`](Self::capacity), [`rate`](Self::rate), [`order`](Self::order),
    /// [`adaptive_rate`](Self::adaptive_rate), [`aeolus`](Self::aeolus), [`ecn`](Self::ecn),
    /// [`busy_poll`](Self::busy_poll) and [`reuse_port`](Self::reuse_port) override the fields of the same
    /// names, and [`paths`](Self::paths) determines `ports`. A `port` of 0 stands for the port of
    /// [`bind`](Self::bind), or, with `reuse_port`, for the endpoint's own.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Config, Endpoint, Security};
    /// # use std::time::Duration;
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let config = Config {
    ///     deadline: Duration::from_millis(50),
    ///     max_message: 1 << 20,
    ///     ..Config::default()
    /// };
    /// let endpoint = Endpoint::builder().bind(loopback).config(config).security(security).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// The link's capacity, as [`Capacity`] or in bits per second. Default [`Capacity::Auto`]: the speed that
    /// the interface reports; 10 Gb/s for loopback; 1 Gb/s, with a warning, if the speed is unknown.
    ///
    /// Too high a value overflows queues and receive buffers; too low a value leaves the link idle.
    pub fn capacity(mut self, capacity: impl Into<Capacity>) -> Self {
        self.capacity = Some(capacity.into());
        self
    }

    /// The share of the capacity that all messages together may use, above 0 and at most 1.
    /// Default 1.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .capacity(10_000_000_000)
    ///     .rate(0.5) // at most 5 Gb/s, where links above this host's are over-subscribed 2:1
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn rate(mut self, share: f64) -> Self {
        self.rate = Some(share);
        self
    }

    /// Whether the rate is lowered while packets are lost on every path to every peer. See
    /// [`Config::adaptive_rate`]. Default false.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .capacity(10_000_000_000) // what the interface says; a hypervisor may allow less
    ///     .adaptive_rate(true)
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn adaptive_rate(mut self, adaptive: bool) -> Self {
        self.adaptive_rate = Some(adaptive);
        self
    }

    /// The DSCP of every packet, from 0 to 63. Default [`DEFAULT_DSCP`].
    ///
    /// Switches should give it a queue that is a few packets deep: in a deep one, surplus symbols delay
    /// needed ones. Set the same DSCP at both ends: each end warns once of packets that arrive with another
    /// one.
    pub fn dscp(self, dscp: u8) -> Self {
        self.dscps([dscp])
    }

    /// The DSCPs of the classes of packets: one to eight values, each from 0 to 63. Default [`DEFAULT_DSCP`]
    /// for all classes.
    ///
    /// Class 0 is control: handshakes and answers. Class 1 is symbols or, if [`Config::classes`] has several
    /// classes, the most urgent symbols; less urgent symbols have the classes after it. Classes beyond the
    /// last DSCP share it. With `dscps([46, 43])`, switches can prefer answers, which are small and end
    /// bursts, to symbols; with `dscps([43, 43, 45])`, answers and short messages to long ones in two queues.
    /// An answer that leaves in the same batch as symbols of class 1 has their DSCP.
    ///
    /// Set the same DSCPs at both ends: each end warns once of packets that arrive with none of them.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Classes, Config, Endpoint, Security, Thresholds};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// // Answers have a queue of their own, and so have symbols of long messages.
    /// let classes = Classes::ByLeft(Thresholds::new(&[20_000])?);
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .config(Config { classes, ..Config::default() })
    ///     .dscps([46, 43, 45])
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dscps(mut self, dscps: impl IntoIterator<Item = u8>) -> Self {
        self.dscps = dscps.into_iter().collect();
        self
    }

    /// Allows switches to trim symbols ([`Config::trimmable`]), and tells the endpoint the DSCP, from 0 to
    /// 63, that they set in trimmed packets. Default: not allowed.
    ///
    /// Set it at both ends, with the same DSCP: packets that arrive with it cause no warning. In packets that
    /// they trim, switches must adjust the lengths in the IP and UDP headers and the UDP checksum; otherwise,
    /// the system drops the packets before this endpoint sees them. Cannot be combined with outer headers
    /// ([`PathMap::xpath_ipip`], [`PathMap::bounce`]): the device that removes the header drops trimmed
    /// packets.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .dscp(43)
    ///     .trimmable(44) // what switches are configured to set in packets that they trim
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn trimmable(mut self, dscp: u8) -> Self {
        self.trim_dscp = Some(dscp);
        self
    }

    /// Whether ECN bits tell switches which packets to drop first. Default false. Set it at both
    /// ends, and only where switches are configured for it: see [`Config::aeolus`].
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{BurstPolicy, Config, Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let policy = BurstPolicy::Pulled { window: None };
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .config(Config { policy, ..Config::default() })
    ///     .aeolus(true)
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn aeolus(mut self, aeolus: bool) -> Self {
        self.aeolus = Some(aeolus);
        self
    }

    /// Whether all packets are marked as ECN-capable, so that switches mark them instead of
    /// dropping them. See [`Config::ecn`]. Default false.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Order, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .ecn(true)
    ///     .order(Order::Recycled) // paths with marks are not reused
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn ecn(mut self, ecn: bool) -> Self {
        self.ecn = Some(ecn);
        self
    }

    /// How long a thread that waits for packets busy-polls before it sleeps, if its previous wait was about
    /// as short. Default 100 us. See [`Config::busy_poll`].
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::Duration;
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint = Endpoint::builder()
    ///     .bind(loopback)
    ///     .busy_poll(Duration::ZERO) // always sleep: leave the processor to others
    ///     .security(security)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn busy_poll(mut self, time: Duration) -> Self {
        self.busy_poll = Some(time);
        self
    }

    /// Whether other endpoints may bind to the same address (SO_REUSEPORT), so that a service has one
    /// receiving thread per endpoint, in one process or in several. Default false.
    ///
    /// The system distributes handshakes among them by a hash of both addresses and ports. The endpoint that
    /// accepts a handshake tells the peer a port of its own, to which the peer sends everything else: all
    /// messages and requests of a peer reach the same endpoint, which also replies. Peers need not know this:
    /// they send to the shared address, and [`Message::peer`](crate::Message::peer) of messages that come
    /// back names it. However, if the endpoint sends first, the peer knows it by its own port, not by the
    /// shared one.
    ///
    /// - The hash spreads peers unevenly: of 32 peers over 4 endpoints, one may have 12 and another 4. It
    ///   ignores how much they send, and may lead all of a few peers to the same endpoint.
    /// - Each endpoint has its own memory limits and its own pacer: give each of n endpoints on one link 1/n
    ///   of the [`rate`](Self::rate).
    /// - When an endpoint dies, its peers notice its silence, retry for 0.25 s, and move to another one after
    ///   0.3 s, or later if their round-trip times are long. Messages under way then end with
    ///   [`SendError::PeerRestarted`](crate::SendError::PeerRestarted). A peer that the network cuts off for
    ///   that long may move as well. Adding an endpoint moves no peers.
    /// - An endpoint that is closing leaves new peers to the others. Its existing peers stay, and their new
    ///   messages are rejected, until it is dropped.
    /// - Firewalls must admit peers at ports that the system picks (`net.ipv4.ip_local_port_range`), and no
    ///   device in between may translate these ports.
    /// - All endpoints should have the same key and offer the same service; Linux requires that they run as
    ///   the same user.
    ///
    /// [`bind`](Self::bind) must name a port. Peers are told this address, which [`Endpoint::local_addr`]
    /// returns. [`Endpoint::local_addrs`] returns the endpoint's own addresses, of which the first accepts
    /// messages.
    ///
    /// # Example
    ///
    /// One endpoint per core, each with a thread that answers:
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::thread;
    /// let address = "127.0.0.7:7000".parse()?;
    /// let builder = Endpoint::builder().security(Security::pre_shared([7; 32]));
    /// let cores = thread::available_parallelism()?.get();
    /// for _ in 0..cores {
    ///     let shard = builder.clone().bind(address).reuse_port(true).rate(1.0 / cores as f64);
    ///     let shard = shard.build()?.blocking();
    ///     thread::spawn(move || shard.serve(1, |question| question.bytes.to_ascii_uppercase()));
    /// }
    ///
    /// let client = builder.build()?.blocking();
    /// assert_eq!(client.call(address, "hello")?, "HELLO");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn reuse_port(mut self, reuse: bool) -> Self {
        self.reuse_port = Some(reuse);
        self
    }

    /// The size in bytes to request for the receive buffer and the send buffer of each socket. Default
    /// [`DEFAULT_SOCKET_BUFFERS`].
    ///
    /// The system may grant less: see [`Endpoint::granted_buffers`].
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// let endpoint =
    ///     Endpoint::builder().bind(loopback).socket_buffers(64 << 10).security(security).build()?;
    /// assert_eq!(endpoint.granted_buffers().wanted, 64 << 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn socket_buffers(mut self, bytes: usize) -> Self {
        self.socket_buffers = bytes;
        self
    }

    /// Records the endpoint's events in a new file in the directory `dir`, which must exist. Default: nothing
    /// is recorded.
    ///
    /// The file is a qlog (draft-ietf-quic-qlog-main-schema) in the form of JSON text sequences (RFC 7464),
    /// with the events that `docs/qlog.md` lists: each message, train, report and loss, but no contents of
    /// messages. A separate thread writes it; events that arrive faster than it can write, and those beyond
    /// 64 MiB, are dropped and counted in the last record.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let dir = tempfile::tempdir()?;
    /// # let dir = dir.path();
    /// let endpoint = Endpoint::builder().bind(loopback).qlog(dir).security(security).build()?;
    /// assert_eq!(std::fs::read_dir(dir)?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn qlog(mut self, dir: impl Into<PathBuf>) -> Self {
        self.qlog = Some(dir.into());
        self
    }

    /// Opens the sockets and starts the threads. This needs no runtime; one of tokio that uses the endpoint
    /// later must have I/O enabled: see [`Endpoint`].
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{BuildError, Endpoint};
    /// let refused = Endpoint::builder().bind("127.0.0.1:0".parse()?).build();
    /// assert!(matches!(refused, Err(BuildError::NoSecurity)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<Endpoint, BuildError> {
        self.build_on(Vec::new())
    }

    /// Like [`build`](Self::build), with `sockets` that are already bound, such as those of systemd's socket
    /// activation: they outlive the process, with the packets in their buffers, and the process needs no
    /// privilege for low ports. If `sockets` is empty, this is the same as `build`.
    ///
    /// There must be one socket for each address at which the endpoint takes messages: that of
    /// [`bind`](Self::bind), which must name a port, and with [`PathMap::ecmp_pairs`] the ports after it. The
    /// endpoint opens all other sockets itself. It sets the options of the given sockets, too, but does not
    /// shrink buffers that are larger than [`socket_buffers`](Self::socket_buffers). A socket for `[::]` must
    /// take IPv4, too. Cannot be combined with [`reuse_port`](Self::reuse_port).
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::net::UdpSocket;
    /// let socket = UdpSocket::bind("127.0.0.1:0")?; // in practice, by the crate listenfd
    /// let builder = Endpoint::builder().bind(socket.local_addr()?);
    /// let endpoint = builder.security(Security::pre_shared([7; 32])).build_on(vec![socket])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_on(self, sockets: Vec<UdpSocket>) -> Result<Endpoint, BuildError> {
        let (io, parts) = self.open(sockets)?;
        parts.start(io)
    }

    /// Checks all settings and opens the sockets that were not given.
    fn open(self, sockets: Vec<UdpSocket>) -> Result<(UdpIo, Parts), BuildError> {
        let security = self.security.ok_or(BuildError::NoSecurity)?;
        let paths = self.paths;
        let bind = plain(self.bind);
        paths.check(bind.ip())?;
        let needs = paths.needs();
        let mut config = self.config;
        config.rate = self.rate.unwrap_or(config.rate);
        config.order = self.order.unwrap_or(config.order);
        config.busy_poll = self.busy_poll.unwrap_or(config.busy_poll);
        config.adaptive_rate = self.adaptive_rate.unwrap_or(config.adaptive_rate);
        config.aeolus = self.aeolus.unwrap_or(config.aeolus);
        config.ecn = self.ecn.unwrap_or(config.ecn);
        config.trimmable |= self.trim_dscp.is_some();
        config.reuse_port = self.reuse_port.unwrap_or(config.reuse_port);
        config.capacity = self.capacity.unwrap_or(config.capacity);
        config.ports = needs.ports;
        check(&config, bind, &self.known_as, &sockets, &paths)?;

        let udp = UdpConfig {
            bind,
            reuse_port: config.reuse_port,
            sockets: needs.sockets + needs.reserve,
            ports: needs.ports,
            flow_labels: needs.labels,
            encapsulates: !needs.outer.is_empty(),
            dscps: self.dscps.clone(),
            trim_dscp: self.trim_dscp,
            socket_buffers: self.socket_buffers,
        };
        let io = UdpIo::open(&udp, sockets).map_err(|error| error.of_map(&paths))?;
        if config.capacity == Capacity::Auto {
            config.capacity = link_speed::detect(bind.ip()).into();
        }
        if config.port == 0 {
            config.port = io.local_addrs()[0].port();
        }
        if security.is_trusted_network() && !bind.ip().is_loopback() {
            tracing::warn!(
                addr = %io.local_addr(),
                "any host that reaches this address can send to this endpoint, and an attacker on the \
                 path can read and forge packets: `Security::trusted_network` was chosen"
            );
        }
        tracing::info!(
            addr = %io.local_addr(),
            %paths,
            dscps = ?self.dscps,
            capacity = config.capacity.bits_per_second(),
            buffers = ?io.granted_buffers(),
            "endpoint opened"
        );
        Ok((io, Parts { config, security, paths, bind, known_as: self.known_as, qlog: self.qlog }))
    }
}

/// Checks settings, also against each other.
fn check(
    config: &Config,
    bind: SocketAddr,
    known_as: &[SocketAddr],
    sockets: &[UdpSocket],
    paths: &PathMap,
) -> Result<(), BuildError> {
    let not_addressed = |known: &&SocketAddr| !is_of_a_host(known.ip()) || known.port() == 0;
    if let Some(&address) = known_as.iter().find(not_addressed) {
        return Err(BuildError::KnownAs { address });
    }
    config.check()?;
    if config.reuse_port && bind.port() == 0 {
        return Err(ConfigError {
            field: "bind",
            value: bind.to_string(),
            expected: "an address with a port, to be shared, if `reuse_port` is set",
        }
        .into());
    }
    if let Some(address) = known_as.first().filter(|_| config.reuse_port) {
        return Err(ConfigError {
            field: "known_as",
            value: address.to_string(),
            expected: "left out if `reuse_port` is set: peers send to ports of individual \
                       endpoints, which no translator forwards",
        }
        .into());
    }
    if config.reuse_port && !sockets.is_empty() {
        return Err(ConfigError {
            field: "reuse_port",
            value: "true".into(),
            expected: "false if sockets are given: their address cannot be shared",
        }
        .into());
    }
    if config.trimmable && !paths.needs().outer.is_empty() {
        return Err(ConfigError {
            field: "paths",
            value: paths.to_string(),
            expected: "paths without outer headers if `trimmable` is set: the device that removes \
                       them drops trimmed packets",
        }
        .into());
    }
    paths.check_order(config.order)?;
    Ok(())
}

/// The parts of an endpoint, apart from its sockets.
struct Parts {
    config: Config,
    security: Security,
    paths: PathMap,
    bind: SocketAddr,
    known_as: Vec<SocketAddr>,
    qlog: Option<PathBuf>,
}

impl Parts {
    fn start(self, io: UdpIo) -> Result<Endpoint, BuildError> {
        let mut secret = [0; 32];
        let read = RngReader(SysRng).read_exact(&mut secret);
        read.map_err(BuildError::refused("random bytes"))?;
        let seed = Seed::new(secret);
        let ports = io
            .local_addrs()
            .iter()
            .chain([&io.local_addr()])
            .map(SocketAddr::port)
            .collect::<Vec<_>>();
        let ip = self.bind.ip();
        let addresses = Addresses::new(ip, ports, self.known_as);
        let resolver = Resolver { bind: ip, order: self.config.order, addresses: addresses.into() };
        let path_map = Box::new(resolver.resolve(self.paths.clone(), &self.paths, &io)?);
        let mut protocol =
            proto::Endpoint::new(io.now(), self.config.clone(), &self.security, seed, path_map)?;
        let qlog = self.qlog.map(|dir| {
            // With `reuse_port`, other endpoints share the address that peers send to.
            let own = io.local_addrs().first().copied().unwrap_or(io.local_addr());
            Qlog::start(&dir, own).map_err(|source| BuildError::Qlog { dir, source })
        });
        let qlog = qlog.transpose()?;
        if let Some(qlog) = &qlog {
            protocol.observe(qlog.observer());
        }
        let paths = self.paths.clone();
        let inner = Inner::start(protocol, io, &self.config, resolver, paths, qlog)?;
        Endpoint::new(inner, &self.paths).map_err(BuildError::refused("a thread"))
    }
}
