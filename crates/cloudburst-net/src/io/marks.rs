//! DSCP and ECN, which share one byte of the IP header: what packets carry, and what arrived.

use super::UdpIo;
use cloudburst_core::wire::Kind;
use nix::sys::socket::ControlMessage;
use std::net::SocketAddr;

/// The ECN bits of ECT(0), RFC 3168, section 5.
const ECT_0: u8 = 0b10;
/// Both ECN bits.
const ECN: u8 = 0b11;

/// The byte of a packet that has another one than its socket, as IPv4 or IPv6 wants it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    V4(u8),
    V6(i32),
}

impl Mark {
    pub(super) const fn control(&self) -> ControlMessage<'_> {
        match self {
            Self::V4(byte) => ControlMessage::Ipv4Tos(byte),
            Self::V6(byte) => ControlMessage::Ipv6TClass(byte),
        }
    }
}

/// The byte of packets whose ECN bits are 00, which is that of the sockets.
pub(super) const fn not_ect(dscp: u8) -> u8 {
    dscp << 2
}

impl UdpIo {
    /// The byte of packets whose headers are written here.
    pub(super) const fn byte(&self, ect: bool) -> u8 {
        not_ect(self.dscp) | if ect { ECT_0 } else { 0 }
    }

    /// The byte of packets to `to` that are ECT(0). IPv4 packets want theirs by the name of IPv4,
    /// from sockets for both families too.
    pub(super) const fn ect_mark(&self, to: SocketAddr) -> Mark {
        let byte = self.byte(true);
        match to {
            SocketAddr::V4(_) => Mark::V4(byte),
            SocketAddr::V6(_) => Mark::V6(byte as i32),
        }
    }

    /// Takes in the byte of datagrams that came together: the system joins only what has the same.
    pub(super) fn note_mark(&self, byte: u8, datagrams: usize, from: SocketAddr, first: &[u8]) {
        self.meter.ecn[usize::from(byte & ECN)].add(datagrams);
        // Junk says nothing of the packets that are to arrive here.
        if byte & !ECN != not_ect(self.dscp) && Kind::of(first).is_ok() {
            self.note_foreign_dscp(byte >> 2, datagrams, from);
        }
    }

    #[cold]
    fn note_foreign_dscp(&self, got: u8, datagrams: usize, from: SocketAddr) {
        self.meter.foreign_dscp.add(datagrams);
        if self.meter.first_foreign_dscp.set(got).is_ok() {
            tracing::warn!(
                expected = self.dscp,
                got,
                %from,
                "packets come with another DSCP than this endpoint's own: a switch on the way \
                 rewrites it, or the peer was given another; they may miss the shallow queue. \
                 Set the same `Builder::dscp` at both ends, and have the switches trust it"
            );
        }
    }
}
