//! DSCP and ECN, which share one byte of the IP header, in outgoing and in arriving packets.

use super::counters::Meter;
use cloudburst_core::config::{ConfigError, Fabric};
use cloudburst_core::proto::{Class, Ecn, Marking};
use cloudburst_core::wire::Kind;
use core::fmt;
use nix::sys::socket::ControlMessage;
use std::net::SocketAddr;

/// The ECN bits of ECT(0), RFC 3168, section 5.
const ECT_0: u8 = 0b10;
/// Both ECN bits.
const ECN: u8 = 0b11;

/// Whether a packet with this byte met congestion (CE, RFC 3168, section 5).
pub(super) const fn is_ce(byte: u8) -> bool {
    byte & ECN == ECN
}

/// The byte of a packet whose byte is not that of its socket, in the form for IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The DSCPs of an endpoint.
#[derive(Debug)]
pub(super) struct Dscps {
    /// By class. Classes beyond the last DSCP share it.
    own: Vec<u8>,
    /// The DSCP that switches set in packets that they trim.
    trimmed: Option<u8>,
}

impl Dscps {
    pub(super) fn new(own: &[u8], trimmed: Option<u8>) -> Result<Self, ConfigError> {
        Fabric { dscps: own.to_vec(), trim_dscp: trimmed, ..Fabric::default() }.check()?;
        Ok(Self { own: own.to_vec(), trimmed })
    }

    /// The byte of packets with this marking.
    pub(super) fn byte(&self, marking: Marking) -> u8 {
        let ecn = match marking.ecn {
            Ecn::NotEct => 0,
            Ecn::Ect0 => ECT_0,
        };
        let Class(class) = marking.class;
        self.own[usize::from(class).min(self.own.len() - 1)] << 2 | ecn
    }

    /// The byte set on the sockets, for packets without a mark of their own: that of most packets.
    pub(super) fn socket_byte(&self) -> u8 {
        // So that symbols, nearly all packets, need no control message.
        self.byte(Marking { class: Class::DATA, ecn: Ecn::NotEct })
    }

    /// The mark that a packet to `to` needs if its byte is not that of the sockets. IPv4 packets
    /// need the control message of IPv4, even on sockets for both families.
    pub(super) fn mark(&self, marking: Marking, to: SocketAddr) -> Option<Mark> {
        let byte = self.byte(marking);
        (byte != self.socket_byte()).then_some(match to {
            SocketAddr::V4(_) => Mark::V4(byte),
            SocketAddr::V6(_) => Mark::V6(byte.into()),
        })
    }

    /// Counts datagrams that arrived in one buffer, by their byte: the system coalesces only
    /// datagrams with the same byte.
    pub(super) fn note(
        &self,
        meter: &Meter,
        byte: u8,
        datagrams: usize,
        from: SocketAddr,
        first: &[u8],
    ) {
        // Counted and logged only: any stranger can forge the byte, which nothing authenticates.
        meter.ecn[usize::from(byte & ECN)].add(datagrams);
        let dscp = byte >> 2;
        let is_known = self.own.contains(&dscp) || self.trimmed == Some(dscp);
        // Packets of other protocols say nothing about how peers are configured.
        if !is_known && Kind::of(first).is_ok() {
            self.note_foreign(meter, dscp, datagrams, from);
        }
    }

    #[cold]
    fn note_foreign(&self, meter: &Meter, got: u8, datagrams: usize, from: SocketAddr) {
        meter.foreign_dscp.add(datagrams);
        if meter.first_foreign_dscp.set(got).is_ok() {
            tracing::warn!(
                expected = %self,
                got,
                %from,
                "packets arrive with a DSCP other than this endpoint's own: a switch on the way \
                 rewrites it, or the peer is set to another; they may miss the shallow queue. \
                 Set the same `Fabric::dscps` at both ends, and have the switches trust it"
            );
        }
    }
}

impl fmt::Display for Dscps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (class, dscp) in self.own.iter().chain(&self.trimmed).enumerate() {
            let separator = if class == 0 { "" } else { "," };
            write!(f, "{separator}{dscp}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudburst_core::wire::packet::VERSION;

    fn dscps<const N: usize>(dscps: [u8; N]) -> Dscps {
        Dscps::new(&dscps, None).unwrap()
    }

    fn marking(class: u8, ecn: Ecn) -> Marking {
        Marking { class: Class(class), ecn }
    }

    #[test]
    fn classes_beyond_the_last_dscp_share_it() {
        let bytes =
            |dscps: Dscps| [0, 1, 2, 255].map(|class| dscps.byte(marking(class, Ecn::NotEct)));
        assert_eq!(bytes(dscps([43])), [43 << 2; 4]);
        assert_eq!(bytes(dscps([46, 43])), [46 << 2, 43 << 2, 43 << 2, 43 << 2]);
        assert_eq!(bytes(dscps([63, 0, 1])), [0xfc, 0, 4, 4]);
    }

    #[test]
    fn the_dscp_of_trimmed_packets_is_not_foreign() {
        let from = "10.0.0.1:1".parse().unwrap();
        let symbol = [VERSION << 4 | Kind::Symbol as u8];
        let foreign = |trimmed| {
            let dscps = Dscps::new(&[46, 43], trimmed).unwrap();
            let meter = Meter::default();
            for dscp in [46, 43, 48] {
                dscps.note(&meter, dscp << 2, 1, from, &symbol);
            }
            meter.read().foreign_dscp
        };
        assert_eq!((foreign(None), foreign(Some(48))), (1, 0));
        assert!(Dscps::new(&[43], Some(64)).is_err());
        assert_eq!(Dscps::new(&[46, 43], Some(48)).unwrap().to_string(), "46,43,48");
    }

    #[test]
    fn a_packet_with_the_dscp_of_its_socket_needs_no_control_message() {
        let v4 = "10.0.0.1:1".parse().unwrap();
        let v6 = "[fd00::1]:1".parse().unwrap();
        let one = dscps([43]);
        let two = dscps([46, 43]);
        for class in 0..3 {
            assert_eq!(one.mark(marking(class, Ecn::NotEct), v4), None);
            assert_eq!(one.mark(marking(class, Ecn::Ect0), v4), Some(Mark::V4(43 << 2 | 2)));
        }
        assert_eq!(two.mark(marking(1, Ecn::NotEct), v6), None);
        assert_eq!(two.mark(marking(0, Ecn::NotEct), v6), Some(Mark::V6(46 << 2)));
        assert_eq!(two.mark(marking(0, Ecn::Ect0), v6), Some(Mark::V6(46 << 2 | 2)));
    }
}
