//! Resolves the receiver's address, and finds out why a receiver does not answer.

use super::failure::Failure;
use core::time::Duration;
use nix::sys::socket::{getsockopt, sockopt};
use std::io::{
    self,
    ErrorKind::{ConnectionRefused, PermissionDenied, TimedOut, WouldBlock},
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// How long to wait for an ICMP message after each probe.
const INTERVAL: Duration = Duration::from_millis(50);
/// How long to probe a peer that was sent many packets: a host limits the rate of its ICMP messages, Linux to one a
/// second for each destination.
// Linux first sends six at once. After a receiver was killed in mid-transfer, its chunks use them
// up: 18 of 18 single probes went unanswered.
pub(crate) const PROBE_FOR: Duration = Duration::from_millis(1_250);
/// Not empty, and shorter than any packet: the receiver drops it unread.
const JUNK: [u8; 1] = [0];

/// Why a name could not be resolved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("{host}: {source}")]
    Failed { host: String, source: io::Error },
    #[error("{host}: the name has no address")]
    Nothing { host: String },
    #[error("{host}: no name server answered in {} s", waited.as_secs_f64())]
    TimedOut { host: String, waited: Duration },
}

/// Resolves `host`. Of several addresses, returns the first whose host does not report at once that
/// the port is closed.
///
/// # Errors
///
/// Within `deadline`: see [`ResolveError`].
pub(crate) fn resolve(host: &str, deadline: Duration) -> Result<SocketAddr, ResolveError> {
    let (answer, answers) = mpsc::channel();
    let name = host.to_owned();
    // The system's resolver has timeouts of its own.
    thread::spawn(move || answer.send(name.to_socket_addrs().map(Vec::from_iter)));
    let host = host.to_owned();
    let all = match answers.recv_timeout(deadline) {
        Ok(Ok(all)) => all,
        Ok(Err(source)) => return Err(ResolveError::Failed { host, source }),
        Err(_) => return Err(ResolveError::TimedOut { host, waited: deadline }),
    };
    let open = all.iter().find(|addr| all.len() == 1 || refusal(**addr, Duration::ZERO).is_none());
    open.or(all.first()).copied().ok_or(ResolveError::Nothing { host })
}

/// Returns this host's source address for packets to `peer`, with port 0.
pub(crate) fn local_for(peer: SocketAddr) -> io::Result<SocketAddr> {
    let mut local = connected(peer)?.local_addr()?;
    local.set_port(0);
    Ok(local)
}

/// Returns the MTU of the path to `peer`, as far as this system knows it from its routes and from ICMP messages.
pub(crate) fn path_mtu(peer: SocketAddr) -> Option<usize> {
    // Linux takes this option of IPv4 on sockets of IPv6, too.
    let mtu = getsockopt(&connected(peer).ok()?, sockopt::IpMtu).ok()?;
    usize::try_from(mtu).ok()
}

/// Returns the error that the network reports about packets to `peer`. Sends a probe at once, and more until
/// `patience` has passed.
pub(super) fn refusal(peer: SocketAddr, patience: Duration) -> Option<Failure> {
    match Probe::send(peer) {
        Ok(probe) => probe.refusal(patience),
        Err(source) => Some(Failure::Unreachable { peer, source }),
    }
}

/// A connected socket, which learns of ICMP errors. It keeps one that comes while nothing waits for it.
pub(crate) struct Probe {
    peer: SocketAddr,
    socket: UdpSocket,
}

impl Probe {
    /// Sends a first probe.
    pub(crate) fn send(peer: SocketAddr) -> io::Result<Self> {
        let socket = connected(peer)?;
        socket.set_read_timeout(Some(INTERVAL))?;
        socket.send(&JUNK)?;
        Ok(Self { peer, socket })
    }

    /// Returns the error that the network has reported, or reports in a moment. Sends more probes until `patience`
    /// has passed.
    pub(crate) fn refusal(&self, patience: Duration) -> Option<Failure> {
        let peer = self.peer;
        let until = Instant::now() + patience;
        let source = loop {
            match self.socket.recv(&mut [0; 16]) {
                Ok(_) => return None,
                Err(error) if !matches!(error.kind(), WouldBlock | TimedOut) => break error,
                Err(_) if Instant::now() >= until => return None,
                Err(_) => {}
            }
            if let Err(error) = self.socket.send(&JUNK) {
                break error;
            }
        };
        Some(match source.kind() {
            ConnectionRefused => Failure::NoReceiver { peer },
            _ => Failure::Unreachable { peer, source },
        })
    }
}

/// Returns the likely cause of an error to connect; empty if the error itself names it.
pub(crate) fn after_connect(error: &io::Error) -> &'static str {
    match error.kind() {
        PermissionDenied => ": it is a broadcast address, or a local rule forbids it",
        _ => "",
    }
}

fn connected(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    Ok(socket)
}
