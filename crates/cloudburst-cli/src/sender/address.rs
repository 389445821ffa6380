//! Resolves the receiver's address, and finds out why a receiver does not answer.

use super::failure::Failure;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc;
use std::thread;

/// How long to wait for the ICMP message that a port is closed.
const PROBE: Duration = Duration::from_millis(500);
/// The same if there is something else to try.
const QUICK_PROBE: Duration = Duration::from_millis(50);
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
    let asked = host.to_owned();
    // The system's resolver has timeouts of its own.
    thread::spawn(move || answer.send(asked.to_socket_addrs().map(Vec::from_iter)));
    let host = host.to_owned();
    let all = match answers.recv_timeout(deadline) {
        Ok(Ok(all)) => all,
        Ok(Err(source)) => return Err(ResolveError::Failed { host, source }),
        Err(_) => return Err(ResolveError::TimedOut { host, waited: deadline }),
    };
    let open = all.iter().find(|addr| all.len() == 1 || probe(**addr, QUICK_PROBE).is_ok());
    open.or(all.first()).copied().ok_or(ResolveError::Nothing { host })
}

/// Returns this host's source address for packets to `peer`, with port 0.
pub(crate) fn local_for(peer: SocketAddr) -> io::Result<SocketAddr> {
    let mut local = connected(peer)?.local_addr()?;
    local.set_port(0);
    Ok(local)
}

/// Finds out why `peer` did not answer in the time `waited`.
pub(crate) fn explain_silence(peer: SocketAddr, waited: Duration) -> Failure {
    refusal(peer, PROBE).unwrap_or(Failure::NoAnswer { peer, waited })
}

/// Returns the error that the network reports at once about packets to `peer`. Call it before any others are sent to
/// a closed port: its host limits the rate of ICMP messages.
pub(crate) fn early_refusal(peer: SocketAddr) -> Option<Failure> {
    refusal(peer, QUICK_PROBE)
}

fn refusal(peer: SocketAddr, patience: Duration) -> Option<Failure> {
    let source = probe(peer, patience).err()?;
    Some(match source.kind() {
        ErrorKind::ConnectionRefused => Failure::NoReceiver { peer },
        _ => Failure::Unreachable { peer, source },
    })
}

/// Sends junk from a connected socket, which reports ICMP errors; returns such an error.
fn probe(peer: SocketAddr, patience: Duration) -> io::Result<()> {
    let socket = connected(peer)?;
    socket.set_read_timeout(Some(patience))?;
    socket.send(&JUNK)?;
    match socket.recv(&mut [0; 16]) {
        Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Returns the likely cause of an error to connect; empty if the error says it.
pub(crate) fn after_connect(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => ": it is a broadcast address, or a local rule forbids it",
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
