//! Sockets that a service manager has bound, as systemd does for a socket unit.

use listenfd::ListenFd;
use std::io;
use std::net::UdpSocket;

/// A descriptor that a receiver cannot use.
#[derive(Debug, thiserror::Error)]
#[error(
    "the service manager handed over something else than a UDP socket (LISTEN_FDS): {0}; name each \
     socket by ListenDatagram=ADDR:PORT in the socket unit"
)]
pub(super) struct NotUdp(io::Error);

/// What the service manager has handed over. To be called once, before there are other threads: it removes
/// LISTEN_FDS and LISTEN_PID from the environment.
///
/// # Errors
///
/// When something else than UDP sockets was handed over.
pub(super) fn sockets() -> Result<Vec<UdpSocket>, NotUdp> {
    let mut given = ListenFd::from_env();
    let sockets = (0..given.len()).filter_map(|nth| given.take_udp_socket(nth).transpose());
    sockets.collect::<io::Result<_>>().map_err(NotUdp)
}
