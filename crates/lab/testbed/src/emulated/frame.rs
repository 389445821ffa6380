//! Fields of Ethernet frames that a switch reads and writes.

use cloudburst_netem::Mark;
use etherparse::{IpDscp, IpNumber, Ipv4Header, Ipv6Header, UdpHeader};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl Ip {
    /// Returns the header of the packet in a frame, and the bytes that follow it.
    fn of(frame: &[u8]) -> Option<(Self, &[u8])> {
        let packet = frame.get(ETHERNET..)?;
        match frame[ETHERNET - 2..ETHERNET] {
            [0x08, 0x00] => {
                Ipv4Header::from_slice(packet).ok().map(|(ip, rest)| (Self::V4(ip), rest))
            }
            [0x86, 0xdd] => {
                Ipv6Header::from_slice(packet).ok().map(|(ip, rest)| (Self::V6(ip), rest))
            }
            _ => None,
        }
    }
}

/// Returns whether the packet is ECN-capable.
pub(super) fn mark(frame: &[u8]) -> Mark {
    let ecn = match Ip::of(frame) {
        Some((Ip::V4(ip), _)) => ip.ecn.value(),
        Some((Ip::V6(ip), _)) => ip.ecn().value(),
        None => 0,
    };
    Mark { class: 0, ect: ecn != 0 }
}

/// Returns whether the packet is truncated: its headers state more bytes than the frame has.
pub(super) fn is_cut(frame: &[u8]) -> bool {
    match Ip::of(frame) {
        Some((Ip::V4(ip), rest)) => usize::from(ip.total_len) > ip.header_len() + rest.len(),
        Some((Ip::V6(ip), rest)) => usize::from(ip.payload_length) > rest.len(),
        None => false,
    }
}

/// Corrects the lengths and checksums of IP, and of UDP if that follows, for a truncated packet, and
/// sets its DSCP. Otherwise hosts would drop the packet. Returns `None` if it is not IP.
pub(super) fn mend(frame: &mut [u8], dscp: IpDscp) -> Option<()> {
    let (ip, rest) = Ip::of(frame)?;
    let udp = |protocol| {
        let is_udp = protocol == IpNumber::UDP;
        is_udp.then(|| UdpHeader::from_slice(rest).ok()).flatten()
    };
    let mut headers = frame[..ETHERNET].to_vec();
    match ip {
        Ip::V4(mut ip) => {
            ip.dscp = dscp;
            ip.set_payload_len(rest.len()).ok()?;
            ip.header_checksum = ip.calc_header_checksum();
            headers.extend(ip.to_bytes());
            if let Some((udp, data)) = udp(ip.protocol) {
                let from = udp.source_port;
                let to = udp.destination_port;
                let udp = UdpHeader::with_ipv4_checksum(from, to, &ip, data).ok()?;
                headers.extend(udp.to_bytes());
            }
        }
        Ip::V6(mut ip) => {
            ip.set_dscp(dscp);
            ip.set_payload_length(rest.len()).ok()?;
            headers.extend(ip.to_bytes());
            if let Some((udp, data)) = udp(ip.next_header) {
                let from = udp.source_port;
                let to = udp.destination_port;
                let udp = UdpHeader::with_ipv6_checksum(from, to, &ip, data).ok()?;
                headers.extend(udp.to_bytes());
            }
        }
    }
    frame[..headers.len()].copy_from_slice(&headers);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpEcn, SlicedPacket};

    const DATA: [u8; 1000] = [7; 1000];

    /// A datagram with DSCP 43 that is ECN-capable.
    fn frame(v6: bool) -> Vec<u8> {
        let from = 1000;
        let to = 7000;
        let length = (UdpHeader::LEN + DATA.len()) as u16;
        let dscp = IpDscp::try_new(43).unwrap();
        let (kind, ip, udp) = if v6 {
            let mut ip = Ipv6Header { next_header: IpNumber::UDP, ..Ipv6Header::default() };
            ip.payload_length = length;
            ip.set_dscp(dscp);
            ip.set_ecn(IpEcn::TWO);
            let udp = UdpHeader::with_ipv6_checksum(from, to, &ip, &DATA).unwrap();
            ([0x86, 0xdd], ip.to_bytes().to_vec(), udp)
        } else {
            let [source, target] = [[10, 1, 1, 1], [10, 1, 2, 3]];
            let mut ip = Ipv4Header::new(length, 64, IpNumber::UDP, source, target).unwrap();
            ip.dscp = dscp;
            ip.ecn = IpEcn::TWO;
            ip.header_checksum = ip.calc_header_checksum();
            let udp = UdpHeader::with_ipv4_checksum(from, to, &ip, &DATA).unwrap();
            ([0x08, 0x00], ip.to_bytes().to_vec(), udp)
        };
        [&[2; 12][..], &kind, &ip, &udp.to_bytes(), &DATA].concat()
    }

    #[test]
    fn a_trimmed_datagram_is_a_whole_one_that_is_shorter() {
        for v6 in [false, true] {
            let mut frame = frame(v6);
            assert!(!is_cut(&frame) && mark(&frame).ect);
            frame.truncate(128);
            assert!(is_cut(&frame));
            mend(&mut frame, IpDscp::try_new(44).unwrap()).unwrap();
            assert!(!is_cut(&frame) && mark(&frame).ect && frame.len() == 128);
            let (ip, rest) = Ip::of(&frame).unwrap();
            let (udp, data) = UdpHeader::from_slice(rest).unwrap();
            assert!(DATA.starts_with(data) && usize::from(udp.length) == rest.len());
            let (dscp, checksum) = match ip {
                Ip::V4(ip) => {
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    (ip.dscp, udp.calc_checksum_ipv4(&ip, data))
                }
                Ip::V6(ip) => (ip.dscp(), udp.calc_checksum_ipv6(&ip, data)),
            };
            assert_eq!((dscp.value(), checksum), (44, Ok(udp.checksum)));
            assert!(SlicedPacket::from_ethernet(&frame).is_ok());
        }
    }

    #[test]
    fn frames_that_carry_no_ip_packet_are_not_trimmed() {
        for frame in [&[][..], &[0; 13], &[0; 64], &frame(false)[..20], &frame(true)[..50]] {
            let mut mended = frame.to_vec();
            assert_eq!(mend(&mut mended, IpDscp::ZERO), None);
            assert!(!is_cut(frame) && !mark(frame).ect && mended == frame);
        }
    }
}
