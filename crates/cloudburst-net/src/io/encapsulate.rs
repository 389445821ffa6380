//! Encapsulation: an outer IPv4 header whose destination is a path ID or a spine (RFC 2003, and
//! section 4.1 of the DRB paper).
//!
//! Both IP headers and the UDP header are written here, and sent by a raw socket. Without the outer
//! header, a packet looks as if egress 0 had sent it, which is where answers go.

use crate::error::BuildError;
use crate::limits::MAX_OUTER;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{MsgFlags, SockaddrIn, sendmsg};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::HashMap;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::sync::{PoisonError, RwLock};

/// Bytes that the outer header adds.
pub(crate) const OUTER_LEN: usize = IP_LEN;

/// Bytes of an IPv4 header, and of a UDP header.
const IP_LEN: usize = 20;
const UDP_LEN: usize = 8;
/// The default of most systems.
const TTL: u8 = 64;
const IN_IP: u8 = 4;
const UDP: u8 = 17;

type Headers = [u8; 2 * IP_LEN + UDP_LEN];

/// The raw socket, and the destinations of its outer headers.
#[derive(Debug)]
pub(super) struct Encapsulator {
    socket: Socket,
    /// The source in the inner headers: the address of egress 0.
    // Known in advance: to ask the system for each packet costs more than sending it, and to cache
    // its answer would be wrong after a change of addresses.
    source: SocketAddrV4,
    outer: RwLock<Vec<Ipv4Addr>>,
}

impl Encapsulator {
    /// `bound` is the address of egress 0; it must be an IPv4 address of this host.
    pub(super) fn open(bound: SocketAddr, buffers: usize) -> Result<Self, BuildError> {
        let refused = |source| BuildError::NoRawSocket { map: String::new(), source };
        let SocketAddr::V4(source) = bound else {
            return Err(refused(Errno::EAFNOSUPPORT.into()));
        };
        // An IPPROTO_RAW socket sends packets with the headers that it is given, and receives
        // nothing. A socket of protocol 4 would receive a copy of each such packet to the host.
        let protocol = Some(Protocol::from(libc::IPPROTO_RAW));
        let socket = Socket::new(Domain::IPV4, Type::RAW, protocol).map_err(refused)?;
        let set = socket.set_nonblocking(true);
        set.map_err(|source| BuildError::SocketOption { option: "O_NONBLOCK", source })?;
        // A smaller buffer only holds less of a burst.
        let _ = socket.set_send_buffer_size(buffers.min(i32::MAX as usize));
        Ok(Self { socket, source, outer: RwLock::default() })
    }

    /// Returns the numbers of all destinations so far, those in `wanted` included. If there are
    /// not enough numbers for all in `wanted`, the new ones get none.
    pub(super) fn numbers(&self, wanted: &[Ipv4Addr]) -> HashMap<Ipv4Addr, u16> {
        numbers(&mut self.outer.write().unwrap_or_else(PoisonError::into_inner), wanted)
    }

    /// The destination with this number.
    pub(super) fn destination(&self, number: usize) -> Option<Ipv4Addr> {
        self.outer.read().unwrap_or_else(PoisonError::into_inner).get(number).copied()
    }

    /// Sends a datagram in an outer packet to `outer`.
    pub(super) fn send(
        &self,
        tos: u8,
        outer: Ipv4Addr,
        to: SocketAddrV4,
        payload: &[u8],
    ) -> Result<(), Errno> {
        let headers = headers(tos, outer, self.source, to, payload.len());
        let hop = SockaddrIn::from(SocketAddrV4::new(outer, 0));
        loop {
            let parts = [IoSlice::new(&headers), IoSlice::new(payload)];
            let fd = self.socket.as_raw_fd();
            match sendmsg(fd, &parts, &[], MsgFlags::MSG_DONTWAIT, Some(&hop)) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// See [`Encapsulator::numbers`]. Destinations are numbered in the order of first use.
fn numbers(outer: &mut Vec<Ipv4Addr>, wanted: &[Ipv4Addr]) -> HashMap<Ipv4Addr, u16> {
    let known = outer.len();
    for ip in wanted {
        if !outer.contains(ip) {
            outer.push(*ip);
        }
    }
    if outer.len() > MAX_OUTER {
        // A map that is refused must not use up numbers, which are never freed.
        outer.truncate(known);
    }
    outer.iter().zip(0..).map(|(&ip, number)| (ip, number)).collect()
}

/// Both IP headers and the UDP header, for a payload of `len` bytes. Switches see the outer header
/// and, once it is removed, the inner one: both have the same byte for DSCP and ECN.
fn headers(tos: u8, outer: Ipv4Addr, from: SocketAddrV4, to: SocketAddrV4, len: usize) -> Headers {
    let mut headers = [0; 2 * IP_LEN + UDP_LEN];
    let (first, rest) = headers.split_at_mut(IP_LEN);
    let (second, udp) = rest.split_at_mut(IP_LEN);
    let udp_len = UDP_LEN + len;
    first.copy_from_slice(&ipv4(tos, 2 * IP_LEN + udp_len, IN_IP, *from.ip(), outer));
    second.copy_from_slice(&ipv4(tos, IP_LEN + udp_len, UDP, *from.ip(), *to.ip()));
    udp[..2].copy_from_slice(&from.port().to_be_bytes());
    udp[2..4].copy_from_slice(&to.port().to_be_bytes());
    udp[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
    // No checksum, which IPv4 allows (RFC 768): the payload is sealed, and a misdelivered packet
    // fails to open.
    headers
}

/// An IPv4 header without options, not to be fragmented (RFC 791, RFC 6864).
fn ipv4(tos: u8, len: usize, protocol: u8, from: Ipv4Addr, to: Ipv4Addr) -> [u8; IP_LEN] {
    let mut header = [0; IP_LEN];
    header[0] = 0x45;
    header[1] = tos;
    header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    header[6] = 0x40;
    header[8] = TTL;
    header[9] = protocol;
    header[12..16].copy_from_slice(&from.octets());
    header[16..].copy_from_slice(&to.octets());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_destinations_that_do_not_all_fit_use_up_no_numbers() {
        let address = |number: usize| Ipv4Addr::from_bits(0x0a00_0000 + number as u32);
        let mut outer = Vec::new();
        let most: Vec<_> = (0..MAX_OUTER).map(address).collect();
        let first = numbers(&mut outer, &[most[1], most[0], most[1]]);
        assert_eq!(first, [(most[1], 0), (most[0], 1)].into());
        let more: Vec<_> = (2..=MAX_OUTER).map(address).collect();
        assert_eq!(numbers(&mut outer, &more), first, "one too many");
        assert_eq!(numbers(&mut outer, &most).len(), MAX_OUTER);
        assert_eq!(numbers(&mut outer, &most[..1])[&most[0]], 1, "numbers stay");
    }

    #[test]
    fn a_header_is_that_of_rfc_791() {
        // The example of many textbooks, with TTL 64 and "do not fragment".
        let header = ipv4(0, 115, UDP, [192, 168, 0, 1].into(), [192, 168, 0, 199].into());
        let expected = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(header, expected);
        assert_eq!(checksum(&header), 0);
    }

    #[test]
    fn both_ip_headers_have_the_dscp_of_the_packet_and_their_own_destination() {
        let from = "10.0.0.1:7".parse().unwrap();
        let to = "10.0.0.2:8".parse().unwrap();
        let headers = headers(46 << 2 | 2, [10, 3, 0, 1].into(), from, to, 100);
        let outer = &headers[..IP_LEN];
        let inner = &headers[IP_LEN..2 * IP_LEN];
        assert_eq!((outer[1], inner[1]), (46 << 2 | 2, 46 << 2 | 2));
        assert_eq!((&outer[16..], &inner[16..]), (&[10, 3, 0, 1][..], &[10, 0, 0, 2][..]));
        assert_eq!(headers[2 * IP_LEN..], [0, 7, 0, 8, 0, 108, 0, 0]);
    }
}
