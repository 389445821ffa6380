//! Ports in a row, so that a peer can be told of all by the first and their number.

use super::socket::EgressSocket;
use crate::error::BuildError;
use std::io;
use std::net::SocketAddr;

/// How often another first port is tried, where the system may pick it.
const RETRIES: usize = 64;

/// Binds `ports` sockets from the port of `bind` on; from any on, if that is 0.
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
        let Some(next) = addr.port().checked_add(1) else {
            let source = io::Error::other(format!("the path map wants {ports} ports in a row"));
            return Err(BuildError::Bind { addr, source });
        };
        addr.set_port(next);
        egresses.push(open(addr)?);
    }
    Ok(egresses)
}
