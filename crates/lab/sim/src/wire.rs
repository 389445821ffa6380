//! The headers of packets that carry real bytes: IPv4 and UDP.

use crate::engine::Ecn;
use etherparse::{IpEcn, IpNumber, Ipv4Header, UdpHeader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes of the two headers.
pub(crate) const HEADERS: usize = Ipv4Header::MIN_LEN + UdpHeader::LEN;

/// The address of host 0; those of others follow.
const FIRST_HOST: u32 = u32::from_be_bytes([10, 0, 0, 1]);

/// The address of a host.
pub(crate) fn address(host: u16) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_HOST + u32::from(host))
}

/// The host with an address, if any.
pub(crate) fn host(address: IpAddr) -> Option<u16> {
    let IpAddr::V4(address) = address else {
        return None;
    };
    u16::try_from(u32::from(address).checked_sub(FIRST_HOST)?).ok()
}

/// A UDP port of a host.
pub(crate) fn socket(host: u16, port: u16) -> SocketAddr {
    SocketAddr::new(address(host).into(), port)
}

/// Appends a datagram to `out`. Its UDP checksum is 0, which over IPv4 means that there is none.
///
/// # Panics
///
/// If the datagram exceeds the maximum size of an IP packet.
pub(crate) fn write(from: (u16, u16), to: (u16, u16), ecn: Ecn, payload: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(HEADERS + payload.len()).expect("packet sizes have 16 bits");
    let mut ip = Ipv4Header {
        ecn: codepoint(ecn),
        total_len: length,
        dont_fragment: true,
        time_to_live: 64,
        protocol: IpNumber::UDP,
        source: address(from.0).octets(),
        destination: address(to.0).octets(),
        ..Ipv4Header::default()
    };
    ip.header_checksum = ip.calc_header_checksum();
    let udp = UdpHeader {
        source_port: from.1,
        destination_port: to.1,
        length: length - Ipv4Header::MIN_LEN_U16,
        checksum: 0,
    };
    out.extend_from_slice(&ip.to_bytes());
    out.extend_from_slice(&udp.to_bytes());
    out.extend_from_slice(payload);
}

/// Splits a datagram into its ports, source and destination, and its payload.
pub(crate) fn split(datagram: &mut [u8]) -> Option<(u16, u16, &mut [u8])> {
    let (headers, payload) = datagram.split_at_mut_checked(HEADERS)?;
    let (udp, _) = UdpHeader::from_slice(&headers[Ipv4Header::MIN_LEN..]).ok()?;
    Some((udp.source_port, udp.destination_port, payload))
}

/// Appends a datagram to `out` with the ECN codepoint that switches have set. Bytes that are not a datagram are
/// appended unchanged.
pub(crate) fn write_marked(datagram: &[u8], ecn: Ecn, out: &mut Vec<u8>) {
    match Ipv4Header::from_slice(datagram) {
        Ok((mut ip, rest)) => {
            ip.ecn = codepoint(ecn);
            ip.header_checksum = ip.calc_header_checksum();
            out.extend_from_slice(&ip.to_bytes());
            out.extend_from_slice(rest);
        }
        Err(_) => out.extend_from_slice(datagram),
    }
}

const fn codepoint(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotCapable => IpEcn::NotEct,
        Ecn::Capable => IpEcn::Ect0,
        Ecn::Marked => IpEcn::CongestionExperienced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_round_trips_through_its_packet() {
        let mut bytes = Vec::new();
        write((0, 7_000), (65_534, 9), Ecn::Capable, b"cloudburst", &mut bytes);
        assert_eq!(bytes.len(), HEADERS + 10);
        let (ip, _) = Ipv4Header::from_slice(&bytes).unwrap();
        assert_eq!((ip.source, usize::from(ip.total_len)), ([10, 0, 0, 1], bytes.len()));
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(host(Ipv4Addr::from(ip.destination).into()), Some(65_534));
        let (source, destination, payload) = split(&mut bytes).unwrap();
        assert_eq!((source, destination, &payload[..]), (7_000, 9, &b"cloudburst"[..]));
    }

    #[test]
    fn a_ce_mark_changes_the_header_and_its_checksum() {
        let mut bytes = Vec::new();
        let mut marked = Vec::new();
        write((1, 1), (2, 2), Ecn::Capable, b"x", &mut bytes);
        write_marked(&bytes, Ecn::Marked, &mut marked);
        let (ip, _) = Ipv4Header::from_slice(&marked).unwrap();
        assert_eq!(ip.ecn, IpEcn::CongestionExperienced);
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(marked[HEADERS..], bytes[HEADERS..]);
    }

    #[test]
    fn only_hosts_have_addresses() {
        for other in ["9.255.255.255", "10.0.0.0", "::1"] {
            assert_eq!(host(other.parse().unwrap()), None, "{other}");
        }
    }
}
