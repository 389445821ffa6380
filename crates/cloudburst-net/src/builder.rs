//! Builds endpoints.

use crate::driver::Inner;
use crate::endpoint::Endpoint;
use crate::error::BuildError;
use crate::io::{Routes, UdpConfig, UdpIo, canonical, link_speed};
use crate::path_map::{PathMap, is_of_a_host};
use crate::paths::{Addresses, Resolver};
use crate::qlog::Qlog;
use cloudburst_core::config::{Capacity, Config, ConfigError, ListenPorts, Security};
use cloudburst_core::proto;
use cloudburst_core::rng::Seed;
use core::time::Duration;
use rand::RngReader;
use rand::rngs::SysRng;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

/// The default size in bytes to request for each socket buffer. See [`Builder::socket_buffers`].
pub const DEFAULT_SOCKET_BUFFERS: usize = 4 << 20;

/// Builds an [`Endpoint`] from the settings of its sockets, its keys, and a [`Config`] for everything else. All but
/// [`security`](Self::security) have defaults, and [`build`](Self::build) checks everything.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Config, Endpoint, PathMap, Security};
/// let endpoint = Endpoint::builder()
///     .bind("127.0.0.1:0".parse()?)
///     .paths(PathMap::ecmp(8))
///     .security(Security::pre_shared([7; 32])) // 32 bytes from a safe place
///     .config(Config { capacity: 25_000_000_000.into(), ..Config::default() })
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
    reuse_port: bool,
    keep_alive: Option<Duration>,
    socket_buffers: usize,
    qlog: Option<PathBuf>,
}

impl Endpoint {
    /// Returns a builder with the default settings.
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
            reuse_port: false,
            keep_alive: None,
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
    /// route (`ip route add local`), or if it moves between hosts, as to a standby.
    ///
    /// Give the IP address and the port that peers send to; of several ports ([`PathMap::ecmp_pairs`]), the
    /// first. A second call replaces the addresses of the first. Cannot be combined with
    /// [`reuse_port`](Self::reuse_port): peers then send to ports of individual endpoints, which no
    /// translator forwards.
    pub fn known_as(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.known_as = addresses.into_iter().map(canonical).collect();
        self
    }

    /// The paths to spread packets over. Default [`PathMap::ecmp(16)`](PathMap::ecmp).
    pub fn paths(mut self, paths: PathMap) -> Self {
        self.paths = paths;
        self
    }

    /// How peers are authenticated: a [`Security`], or a [`PresharedKey`](crate::PresharedKey). Mandatory.
    pub fn security(mut self, security: impl Into<Security>) -> Self {
        self.security = Some(security.into());
        self
    }

    /// All settings that do not concern sockets. Default [`Config::default`]. A second call replaces the
    /// settings of the first.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Whether other endpoints may bind to the same address (SO_REUSEPORT), so that a service
    /// can receive on several cores, in one process or in several. Default false.
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
    ///   of the [`rate`](Config::rate).
    /// - When an endpoint dies, its peers notice that it does not respond, retry for 0.25 s, and move to
    ///   another one after 0.3 s, or later if their round-trip times are long. Messages under way then end with
    ///   [`SendError::PeerRestarted`](crate::SendError::PeerRestarted). A peer that the network cuts off for
    ///   that long may move as well. Adding an endpoint moves no peers.
    /// - An endpoint whose [shutdown](Endpoint::shutdown) begins leaves the shared address to the others at
    ///   once. Its peers go to one of them with all that it has not begun to receive; no such message fails
    ///   or is delivered twice. Replies to the requests that it has taken still arrive. So a new process that
    ///   is bound before the old one shuts down serves all callers, whatever the old one still has to do.
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
    /// # use cloudburst_net::{Config, Endpoint, Security};
    /// # use std::thread;
    /// let address = "127.0.0.7:7000".parse()?;
    /// let builder = Endpoint::builder().security(Security::pre_shared([7; 32]));
    /// let cores = thread::available_parallelism()?.get();
    /// let config = Config { rate: (1.0 / cores as f64).into(), ..Config::default() };
    /// for _ in 0..cores {
    ///     let shard = builder.clone().bind(address).reuse_port(true).config(config.clone());
    ///     let shard = shard.build()?;
    ///     thread::spawn(move || shard.blocking_serve(1, |request| request.bytes.to_ascii_uppercase()));
    /// }
    ///
    /// let client = builder.build()?;
    /// assert_eq!(client.call(address, "hello").wait()?, "HELLO");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn reuse_port(mut self, reuse: bool) -> Self {
        self.reuse_port = reuse;
        self
    }

    /// Sends a packet by each socket to each peer with a session at least once in `every`, which counts as 1 s if it
    /// is shorter. Default: never.
    ///
    /// Translators (NAT) and firewalls forget who may send to this endpoint when nothing has passed for a while,
    /// usually 30 s to some minutes: a response that takes longer, or a message that comes later, is then lost.
    /// Set it at the end behind the translator, to half of that time. Each interval costs two packets of some 80
    /// bytes for each socket and peer.
    pub const fn keep_alive(mut self, every: Duration) -> Self {
        self.keep_alive = Some(every);
        self
    }

    /// The size in bytes to request for the receive buffer and the send buffer of each socket. Default
    /// [`DEFAULT_SOCKET_BUFFERS`].
    ///
    /// The system may grant less: see [`Endpoint::granted_buffers`].
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
    pub fn qlog(mut self, dir: impl Into<PathBuf>) -> Self {
        self.qlog = Some(dir.into());
        self
    }

    /// Opens the sockets and starts a thread. This needs no runtime; one of tokio that uses the endpoint
    /// later must have I/O enabled: see [`Endpoint`].
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
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
    /// Give a socket to one process at a time. While two read it, each gets some of the packets for the
    /// other: no message is delivered twice, or said to be delivered when it was not, but what is under way may
    /// end as [`SendError::PeerRestarted`](crate::SendError::PeerRestarted).
    ///
    /// # Errors
    ///
    /// See [`BuildError`].
    pub fn build_on(self, sockets: Vec<UdpSocket>) -> Result<Endpoint, BuildError> {
        let (io, parts) = self.open(sockets)?;
        parts.start(io)
    }

    /// Checks all settings and opens the sockets that were not given.
    fn open(self, sockets: Vec<UdpSocket>) -> Result<(UdpIo, Parts), BuildError> {
        let security = self.security.ok_or(BuildError::NoSecurity)?;
        let paths = self.paths;
        let bind = canonical(self.bind);
        paths.check(bind.ip())?;
        let needs = paths.needs();
        let mut config = self.config;
        check(&config, bind, &self.known_as, self.reuse_port, &sockets, &paths)?;

        let udp = UdpConfig {
            bind,
            reuse_port: self.reuse_port,
            sockets: needs.sockets + needs.reserve,
            ports: needs.ports,
            flow_labels: needs.labels,
            encapsulates: !needs.outer.is_empty(),
            dscps: config.fabric.dscps.clone(),
            trim_dscp: config.fabric.trim_dscp,
            socket_buffers: self.socket_buffers,
        };
        let io = UdpIo::open(&udp, sockets).map_err(|error| error.of_map(&paths))?;
        if config.capacity == Capacity::Auto {
            let link = link_speed::detect(bind.ip());
            config.capacity = link.bits_per_second.into();
            if !link.is_known {
                config.rate = config.rate.or_adaptive(true);
                if !config.rate.is_adaptive() {
                    tracing::warn!(
                        ip = %bind.ip(),
                        capacity = link.bits_per_second,
                        "the link may be slower than this, and the rate is fixed: set the link's bits per \
                         second with `Config::capacity`, or `Rate::Adaptive`"
                    );
                }
            }
        }
        let ports = ListenPorts {
            first: io.local_addrs()[0].port(),
            count: needs.ports,
            is_shared: self.reuse_port,
        };
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
            dscps = ?config.fabric.dscps,
            capacity = config.capacity.bits_per_second(),
            rate = %config.rate,
            buffers = ?io.granted_buffers(),
            "endpoint opened"
        );
        Ok((
            io,
            Parts {
                config,
                ports,
                security,
                paths,
                bind,
                known_as: self.known_as,
                keep_alive: self.keep_alive,
                qlog: self.qlog,
            },
        ))
    }
}

/// Checks settings, also against each other.
fn check(
    config: &Config,
    bind: SocketAddr,
    known_as: &[SocketAddr],
    reuse_port: bool,
    sockets: &[UdpSocket],
    paths: &PathMap,
) -> Result<(), BuildError> {
    let not_addressed = |known: &&SocketAddr| !is_of_a_host(known.ip()) || known.port() == 0;
    if let Some(&address) = known_as.iter().find(not_addressed) {
        return Err(BuildError::KnownAs { address });
    }
    config.check()?;
    if reuse_port && bind.port() == 0 {
        return Err(ConfigError {
            field: "bind",
            value: bind.to_string(),
            expected: "an address with a port, to be shared, if `reuse_port` is set",
        }
        .into());
    }
    if let Some(address) = known_as.first().filter(|_| reuse_port) {
        return Err(ConfigError {
            field: "known_as",
            value: address.to_string(),
            expected: "left out if `reuse_port` is set: peers send to ports of individual \
                       endpoints, which no translator forwards",
        }
        .into());
    }
    // SO_REUSEPORT must be set before a socket is bound.
    if reuse_port && !sockets.is_empty() {
        return Err(ConfigError {
            field: "reuse_port",
            value: "true".into(),
            expected: "false if sockets are given: their address cannot be shared",
        }
        .into());
    }
    if config.fabric.trim_dscp.is_some() && !paths.needs().outer.is_empty() {
        return Err(ConfigError {
            field: "paths",
            value: paths.to_string(),
            expected: "paths without outer headers if `fabric.trim_dscp` is set: the device that removes \
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
    ports: ListenPorts,
    security: Security,
    paths: PathMap,
    bind: SocketAddr,
    known_as: Vec<SocketAddr>,
    keep_alive: Option<Duration>,
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
        let routes = Routes::of(ip);
        if let Err(error) = &routes {
            tracing::debug!(%error, "no socket that asks for the MTU of routes");
        }
        let resolver = Resolver {
            bind: ip,
            order: self.config.order,
            addresses: addresses.into(),
            routes: routes.ok().map(Arc::new),
        };
        let path_map = Box::new(resolver.resolve(self.paths.clone(), &self.paths, &io)?);
        let mut protocol = proto::Transceiver::new(
            self.config.clone(),
            self.ports,
            &self.security,
            seed,
            path_map,
        )?;
        if let Some(every) = self.keep_alive {
            protocol.set_keep_alive(UdpIo::time(), every);
        }
        let qlog = self.qlog.map(|dir| {
            // With `reuse_port`, other endpoints share the address that peers send to.
            let own = io.local_addrs().first().copied().unwrap_or(io.local_addr());
            Qlog::start(&dir, own).map_err(|source| BuildError::Qlog { dir, source })
        });
        let qlog = qlog.transpose()?;
        if let Some(qlog) = &qlog {
            protocol.observe(qlog.observer.clone());
        }
        let paths = self.paths.clone();
        let inner = Inner::start(protocol, io, &self.config, resolver, paths, qlog)?;
        Endpoint::new(inner, &self.paths).map_err(BuildError::refused("a thread"))
    }
}
