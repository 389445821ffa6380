//! Consecutive ports, which a peer learns from the first port and their number.

use super::socket::{EgressSocket, local_addr};
use crate::error::BuildError;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// How often another first port is tried, if the system picks it.
const RETRIES: usize = 64;

/// Binds `ports` sockets to consecutive ports, starting at the port of `bind`, or at any port if
/// that is 0.
pub(super) fn open_in_a_row(
    bind: SocketAddr,
    ports: u16,
    open: impl Fn(SocketAddr) -> Result<EgressSocket, BuildError>,
) -> Result<Vec<EgressSocket>, BuildError> {
    let mut retries = if bind.port() == 0 && ports > 1 { RETRIES } else { 0 };
    loop {
        match open_from(bind, ports, &open) {
            Err(BuildError::Bind { .. }) if retries > 0 => retries -= 1,
            other => return other,
        }
    }
}

fn open_from(
    bind: SocketAddr,
    ports: u16,
    open: impl Fn(SocketAddr) -> Result<EgressSocket, BuildError>,
) -> Result<Vec<EgressSocket>, BuildError> {
    let mut egresses = vec![open(bind)?];
    let mut addr = egresses[0].local_addr()?;
    for _ in 1..ports {
        addr = next(addr, ports)?;
        egresses.push(open(addr)?);
    }
    Ok(egresses)
}

/// Takes over sockets that are bound to `ports` consecutive ports, starting at that of `bind`.
pub(super) fn adopt_in_a_row(
    bind: SocketAddr,
    ports: u16,
    sockets: Vec<UdpSocket>,
    adopt: impl Fn(UdpSocket, SocketAddr) -> Result<EgressSocket, BuildError>,
) -> Result<Vec<EgressSocket>, BuildError> {
    let mut expected = vec![bind];
    while expected.len() < usize::from(ports) {
        expected.push(next(expected[expected.len() - 1], ports)?);
    }
    let named = |socket: UdpSocket| Ok((local_addr(&socket)?, socket));
    let mut sockets = sockets.into_iter().map(named).collect::<Result<Vec<_>, BuildError>>()?;
    sockets.sort_by_key(|(addr, _)| *addr);
    if !sockets.iter().map(|(addr, _)| addr).eq(&expected) {
        let given = sockets.into_iter().map(|(addr, _)| addr).collect();
        return Err(BuildError::Sockets { expected, given });
    }
    sockets.into_iter().map(|(addr, socket)| adopt(socket, addr)).collect()
}

/// The address with the next port.
fn next(mut addr: SocketAddr, ports: u16) -> Result<SocketAddr, BuildError> {
    let Some(port) = addr.port().checked_add(1) else {
        let source = io::Error::other(format!("the path map needs {ports} consecutive ports"));
        return Err(BuildError::Bind { addr, source });
    };
    addr.set_port(port);
    Ok(addr)
}
