//! Bouncing (DRB): spines decapsulate IP-in-IP packets and forward them. Hosts may do the same, and
//! forward the packets to themselves.
//!
//! Not every kernel has an `ipip` device, and opening a TUN device takes an `ioctl` that is unsafe in
//! Rust. A pair of raw sockets does the same: one receives packets of protocol 4 addressed to the
//! node, the other sends the inner packets with their headers, by the node's routes.

use crate::Error;
use crate::namespace::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const IP_IN_IP: i32 = 4;
/// `IPPROTO_RAW`: packets sent through the socket include their header.
const WITH_HEADER: i32 = 255;
/// How often the thread checks whether it should end.
const TICK: Duration = Duration::from_millis(100);
/// Enough for all uplinks of a spine to send for longer than this thread may be delayed.
const BUFFER: usize = 4 << 20;

/// A thread that decapsulates at a node until it is dropped.
#[derive(Debug)]
pub(crate) struct Bouncer {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bouncer {
    /// # Errors
    ///
    /// If the namespace does not exist, or raw sockets are not allowed.
    pub(crate) fn start(node: &Namespace) -> Result<Self, Error> {
        let sockets = node.run(|| {
            let incoming = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(IP_IN_IP)))?;
            let outgoing = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(WITH_HEADER)))?;
            incoming.set_read_timeout(Some(TICK))?;
            // If that fails, the default size must do.
            let _ = setsockopt(&incoming, sockopt::RcvBufForce, &BUFFER);
            Ok((incoming, outgoing))
        })?;
        let doing = format!("cannot decapsulate IP-in-IP in {} (CAP_NET_RAW)", node.name());
        let (incoming, outgoing) = sockets.map_err(Error::io(doing))?;
        let ended = Arc::new(AtomicBool::new(false));
        let until = ended.clone();
        let thread = thread::Builder::new()
            .name("bouncer".into())
            .spawn(move || forward(&incoming, &outgoing, &until))
            .map_err(Error::io("cannot start a thread"))?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn forward(mut incoming: &Socket, outgoing: &Socket, ended: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !ended.load(Ordering::Relaxed) {
        match incoming.read(&mut buffer) {
            Ok(length) => {
                if let Some((packet, to)) = decapsulate(&mut buffer[..length]) {
                    // A full queue and a missing route are losses, as in any switch.
                    let _ = outgoing.send_to(packet, &SockAddr::from(SocketAddrV4::new(to, 0)));
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                // A device is gone: others follow, or this thread ends.
                _ => thread::sleep(TICK),
            },
        }
    }
}

/// Returns the inner packet, its TTL decremented, and its destination; `None` if it must not be
/// forwarded. The kernel fills in its checksum.
fn decapsulate(outer: &mut [u8]) -> Option<(&[u8], Ipv4Addr)> {
    // As a router does, so that hop counts and marks survive the detour over a spine (RFC 2003, RFC
    // 6040).
    let congested = outer.get(1)? & 3 == 3;
    let inner = outer.get_mut(header_length(outer)?..)?;
    let header = header_length(inner)?;
    let length = usize::from(u16::from_be_bytes([inner[2], inner[3]]));
    if length < header || inner[8] <= 1 {
        return None;
    }
    if congested {
        // RFC 6040: a mark is copied to ECN-capable packets; others are dropped.
        if inner[1] & 3 == 0 {
            return None;
        }
        inner[1] |= 3;
    }
    inner[8] -= 1;
    let to = Ipv4Addr::new(inner[16], inner[17], inner[18], inner[19]);
    Some((inner.get(..length)?, to))
}

/// Returns the header length of an IPv4 packet, if the whole header is there.
fn header_length(packet: &[u8]) -> Option<usize> {
    let first = *packet.first()?;
    let length = usize::from(first & 15) * 4;
    (first >> 4 == 4 && length >= 20 && packet.len() >= length).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(tos: u8, payload: &[u8]) -> Vec<u8> {
        let length = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, tos, 0, 0, 0, 0, 0, 0, 64, 4, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    #[test]
    fn a_decapsulated_packet_loses_a_hop_and_trailing_bytes() {
        let inner = packet(0xac, b"payload");
        let mut outer = packet(0, &[&inner[..], b"padding"].concat());
        let (sent, to) = decapsulate(&mut outer).unwrap();
        assert_eq!((sent[8], sent.len(), to), (63, inner.len(), Ipv4Addr::new(10, 0, 0, 2)));
        assert!(sent.ends_with(b"payload"));
    }

    #[test]
    fn congestion_marks_pass_to_ecn_capable_inner_packets() {
        let mut capable = packet(3, &packet(0xae, b""));
        assert_eq!(decapsulate(&mut capable).unwrap().0[1], 0xaf);
        assert_eq!(decapsulate(&mut packet(3, &packet(0xac, b""))), None);
    }

    #[test]
    fn packets_too_short_or_without_hops_left_are_dropped() {
        let whole = packet(0, &packet(0, b"payload"));
        for length in 0..whole.len() {
            assert_eq!(decapsulate(&mut whole[..length].to_vec()), None, "{length}");
        }
        let mut old = whole.clone();
        old[28] = 1;
        assert_eq!(decapsulate(&mut old), None);
        let mut another_version = whole;
        another_version[20] = 0x65;
        assert_eq!(decapsulate(&mut another_version), None);
    }
}
