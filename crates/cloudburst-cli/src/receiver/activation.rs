//! Sockets that a service manager has bound and passed, as systemd does for a socket unit.

use listenfd::ListenFd;
use std::io;
use std::net::UdpSocket;

/// A descriptor that a receiver cannot use.
#[derive(Debug, thiserror::Error)]
#[error(
    "the service manager passed something other than a UDP socket (LISTEN_FDS): {0}; declare each \
     socket as ListenDatagram=ADDR:PORT in the socket unit"
)]
pub(super) struct NotUdp(io::Error);

/// Takes the sockets that the service manager has passed. Call it once, before there are other threads: it removes
/// LISTEN_FDS and LISTEN_PID from the environment.
///
/// # Errors
///
/// If a descriptor is not a UDP socket.
pub(super) fn sockets() -> Result<Vec<UdpSocket>, NotUdp> {
    // `listenfd` checks the descriptors without `unsafe` here; with `sd-notify`, that would be left
    // to this function.
    let mut given = ListenFd::from_env();
    let sockets = (0..given.len()).filter_map(|nth| given.take_udp_socket(nth).transpose());
    sockets.collect::<io::Result<_>>().map_err(NotUdp)
}
