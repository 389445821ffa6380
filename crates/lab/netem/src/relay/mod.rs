//! A UDP relay on the loopback interface whose paths are emulated links.
//!
//! ```text
//!   client 0 ─┐              ┌─ link up 0 ─▶ NAT socket 0 ─┐
//!             ├─▶ one socket ┤                             ├─▶ target
//!   client 1 ─┘   (`addr`)   └─ link up 1 ─▶ NAT socket 1 ─┘
//! ```
//!
//! Each client address (IP and port) that has ever sent is one path, numbered in the order of first
//! appearance. The target sees a different source address for each path, and its answers to that
//! address return through that path's down link to the same client. Several local sockets of one
//! endpoint thus become several paths.
//!
//! A path needs one thread, the relay two more. A packet that a link lets through at once is
//! forwarded by the thread that read it, within some tens of microseconds. An idle relay wakes only
//! to check whether it should end.
//!
//! Unlike a [`Link`], the relay is not reproducible to the packet: its times are real, and the
//! kernel drops packets that overflow a socket's receive buffer, which no counter here sees. The
//! usual default of 208 KiB holds about 90 packets of 1,400 bytes: a client that sends more at once,
//! over all its paths, loses some even on perfect links. A packet counts as delivered once it has
//! left its link, just before it is forwarded.
//!
//! # Example
//!
//! ```
//! use cloudburst_netem::{LinkConfig, Relay};
//! use std::net::UdpSocket;
//!
//! let target = UdpSocket::bind("127.0.0.1:0")?;
//! let perfect = LinkConfig::default();
//! let relay = Relay::start(target.local_addr()?, vec![(perfect.clone(), perfect)], 7)?;
//!
//! let client = UdpSocket::bind("127.0.0.1:0")?;
//! client.send_to(b"ping", relay.addr())?;
//! let mut buffer = [0; 16];
//! let (len, nat) = target.recv_from(&mut buffer)?;
//! assert_eq!(&buffer[..len], b"ping");
//!
//! target.send_to(b"pong", nat)?;
//! let (len, from) = client.recv_from(&mut buffer)?;
//! assert_eq!((&buffer[..len], from), (b"pong".as_slice(), relay.addr()));
//!
//! let (up, down) = relay.stats(0).expect("one client has sent");
//! assert_eq!((up.delivered, down.delivered), (1, 1));
//! # Ok::<(), std::io::Error>(())
//! ```

mod shared;
mod threads;

use crate::link::{ConfigError, Link, LinkConfig, LinkStats};
use core::fmt;
use shared::{Path, Shared, State};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A running relay. Dropping it ends its threads and closes its sockets.
#[derive(Debug)]
pub struct Relay {
    addr: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Maximum number of client addresses that a relay serves. Packets of further ones are ignored.
    pub const MAX_PATHS: usize = 256;

    /// Starts a relay between a new loopback address, of the family of `target`, and `target`.
    ///
    /// The k-th client address gets the pair `links[k % links.len()]`: the link up to the target
    /// first, the link down from it second. `seed` determines the seeds of all links.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if `links` is empty or a [`LinkConfig`] is refused (the
    /// [`ConfigError`] is inside); otherwise the system's error for sockets and threads.
    pub fn start(
        target: SocketAddr,
        links: Vec<(LinkConfig, LinkConfig)>,
        seed: u64,
    ) -> io::Result<Self> {
        let loopback: IpAddr = match target {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        Self::start_at(UdpSocket::bind((loopback, 0))?, target, links, seed)
    }

    /// Starts a relay at the address of `front`, for a target that must know it before it starts.
    ///
    /// # Errors
    ///
    /// See [`start`](Self::start).
    pub fn start_at(
        front: UdpSocket,
        target: SocketAddr,
        links: Vec<(LinkConfig, LinkConfig)>,
        seed: u64,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::open(front, target, links, seed)?);
        let addr = shared.front.local_addr()?;
        // Built step by step: if the second thread fails to start, dropping this ends the first.
        let mut relay = Self { addr, shared, threads: Vec::new() };
        relay.spawn("netem clients", threads::read_clients)?;
        relay.spawn("netem timer", threads::forward_when_due)?;
        Ok(relay)
    }

    /// Returns the loopback address that clients send to, and receive answers from.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the number of client addresses seen, at most [`Self::MAX_PATHS`].
    pub fn paths(&self) -> usize {
        self.shared.lock().paths.len()
    }

    /// Returns the path of the client at this address, or `None` before its first packet.
    pub fn path_of(&self, client: SocketAddr) -> Option<usize> {
        self.shared.lock().path_of(client)
    }

    /// Returns the counters of the links of `path`, up and down, or `None` if there is no such path.
    pub fn stats(&self, path: usize) -> Option<(LinkStats, LinkStats)> {
        let state = self.shared.lock();
        state.paths.get(path).map(|path| (*path.up.stats(), *path.down.stats()))
    }

    /// Returns the number of packets without a path: from clients beyond [`Self::MAX_PATHS`], or for
    /// which the system had no socket or thread.
    pub fn ignored(&self) -> u64 {
        self.shared.lock().ignored
    }

    /// Turns both links of `path` into blackholes, or heals them. See [`Link::set_down`].
    ///
    /// For a blackhole in one direction, [reconfigure](Self::reconfigure) that link to a loss of 1.
    ///
    /// # Errors
    ///
    /// [`RelayError::UnknownPath`].
    pub fn set_down(&self, path: usize, down: bool) -> Result<(), RelayError> {
        let mut state = self.shared.lock();
        let path = known(&mut state, path)?;
        path.up.set_down(down);
        path.down.set_down(down);
        Ok(())
    }

    /// Changes both links of `path`. See [`Link::reconfigure`].
    ///
    /// # Errors
    ///
    /// [`RelayError::UnknownPath`], or [`RelayError::Config`] if one of the two is refused.
    /// Both links are then unchanged.
    pub fn reconfigure(
        &self,
        path: usize,
        up: LinkConfig,
        down: LinkConfig,
    ) -> Result<(), RelayError> {
        let mut state = self.shared.lock();
        let path = known(&mut state, path)?;
        down.check().map_err(RelayError::Config)?;
        path.up.reconfigure(up).map_err(RelayError::Config)?;
        path.down.reconfigure(down).map_err(RelayError::Config)
    }

    fn spawn(&mut self, name: &str, role: fn(&Shared)) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || role(&shared))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already reported it on standard error.
            let _ = thread.join();
        }
    }
}

fn known(state: &mut State, path: usize) -> Result<&mut Path, RelayError> {
    let paths = state.paths.len();
    state.paths.get_mut(path).ok_or(RelayError::UnknownPath { path, paths })
}

/// Why a path was not changed. The caller is to blame.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RelayError {
    /// There is no such path yet: a path is created by a client's first packet.
    UnknownPath {
        /// The path requested.
        path: usize,
        /// The number of paths.
        paths: usize,
    },
    /// A configuration was refused.
    Config(ConfigError),
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPath { path, paths } => {
                write!(f, "there is no path {path}: {paths} client addresses have been seen")
            }
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RelayError {}
