//! Fields that have no method in [`Buf`].

use bytes::{Buf, Bytes, TryGetError};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Reads bytes.
pub(super) fn get_array<const N: usize>(rest: &mut Bytes) -> Result<[u8; N], TryGetError> {
    let mut bytes = [0; N];
    rest.try_copy_to_slice(&mut bytes).map(|()| bytes)
}

/// Reads an address; `None` if its port is 0.
pub(super) fn get_address(rest: &mut Bytes) -> Result<Option<SocketAddr>, TryGetError> {
    let ip = IpAddr::from(get_array::<16>(rest)?).to_canonical();
    let port = rest.try_get_u16()?;
    Ok((port != 0).then_some(SocketAddr::new(ip, port)))
}

/// Writes an address for [`get_address`].
pub(super) fn put_address(address: Option<SocketAddr>, out: &mut Vec<u8>) {
    let (ip, port) = match address.map(|address| (address.ip(), address.port())) {
        Some((IpAddr::V4(ip), port)) => (ip.to_ipv6_mapped(), port),
        Some((IpAddr::V6(ip), port)) => (ip, port),
        None => (Ipv6Addr::UNSPECIFIED, 0),
    };
    out.extend_from_slice(&ip.octets());
    out.extend_from_slice(&port.to_be_bytes());
}
