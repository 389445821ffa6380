//! IP addresses and ports as bytes: IPv6, or IPv4 as `::ffff:a.b.c.d`.

use super::super::{cursor::Cursor, error::WireError};
use bytes::BufMut;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Returns the 16 bytes of `ip`. An IPv4 address and its mapped form give the same bytes.
pub(super) fn ip_bytes(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// Appends 16 bytes of address and 2 of port. Scope and flow label mean nothing to another host.
pub(super) fn write(address: SocketAddr, out: &mut impl BufMut) {
    out.put_slice(&ip_bytes(address.ip()));
    out.put_u16(address.port());
}

/// Reads an address that [`write`] wrote; a mapped address is returned as IPv4.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<SocketAddr, WireError> {
    let ip = Ipv6Addr::from(cursor.array::<16>()?).to_canonical();
    Ok(SocketAddr::new(ip, cursor.u16()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddrV6;

    #[test]
    fn addresses_come_back_canonical_and_without_scope() {
        let v6: Ipv6Addr = "fe80::1".parse().unwrap();
        let mapped: Ipv6Addr = "::ffff:192.0.2.7".parse().unwrap();
        let cases = [
            (SocketAddrV6::new(v6, 9, 5, 3).into(), SocketAddrV6::new(v6, 9, 0, 0).into()),
            (SocketAddrV6::new(mapped, 80, 0, 0).into(), "192.0.2.7:80".parse().unwrap()),
            ("192.0.2.7:80".parse().unwrap(), "192.0.2.7:80".parse::<SocketAddr>().unwrap()),
        ];
        for (written, expected) in cases {
            let mut out = Vec::new();
            write(written, &mut out);
            assert_eq!(out.len(), 18);
            assert_eq!(read(&mut Cursor::new(&out)), Ok(expected));
        }
    }
}
