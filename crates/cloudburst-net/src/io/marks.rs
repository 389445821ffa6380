//! DSCP and ECN, which share one byte of the IP header: what packets carry.

use super::UdpIo;
use nix::sys::socket::ControlMessage;
use std::net::SocketAddr;

/// The ECN bits of ECT(0), RFC 3168, section 5.
const ECT_0: u8 = 0b10;

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
}
