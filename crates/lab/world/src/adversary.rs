//! An on-path adversary without the key. It sees every packet, keeps some, and replays them to any
//! host, from any address.

use crate::choices::Choices;
use crate::host::Departure;
use crate::network::Hop;
use crate::setup::{PORT, address};
use cloudburst_core::path::Via;
use cloudburst_core::wire::Kind;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Packets that are remembered for replay.
const MAX_PAST: usize = 256;
/// Packets that are held back at a time; the oldest are lost.
const MAX_HELD: usize = 600;

/// The treatment of packets as they leave, until another rule is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Packets take their normal route.
    #[default]
    Pass,
    /// Packets are held back.
    Hold,
    /// Packets of `from` to `to` return to `from`, as if `to` had sent them.
    Mirror {
        /// The host whose packets return to it.
        from: usize,
        /// The host that it addresses.
        to: usize,
    },
    /// Packets of `from` to `meant` go to `instead`, whose answers seem to come from `meant`.
    Relay {
        /// The host that is deceived.
        from: usize,
        /// The host that it addresses.
        meant: usize,
        /// The host that gets its packets.
        instead: usize,
    },
}

/// A change to a packet before it is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tampering {
    /// Nothing.
    None,
    /// Its source and destination are swapped.
    Reflect,
    /// It goes to another host.
    Redirect(usize),
    /// It comes from another egress of its sender.
    FromEgress(u16),
    /// It comes from another host.
    FromHost(usize),
    /// It comes from an address without a host.
    FromStranger(u8),
    /// Its bytes are damaged.
    Damage(Damage),
}

/// Damage to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// One bit of it is flipped, counted modulo its length.
    Flip(u16),
    /// It is cut, modulo its length.
    Cut(u16),
    /// These bytes are appended.
    Extend(Vec<u8>),
    /// From this offset, modulo its length, these bytes replace its own.
    Overwrite(u16, Vec<u8>),
    /// From this offset, modulo its length, it has the tail of another packet to its receiver.
    Splice(u16, u8),
    /// These bytes replace it as a whole.
    Replace(Vec<u8>),
}

/// A packet and its intended route.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    hop: Hop,
    destination: SocketAddr,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Adversary {
    pub(crate) rule: Rule,
    past: VecDeque<Packet>,
    held: VecDeque<Packet>,
}

impl Adversary {
    /// Sees a packet leave. Returns the route that it takes, or `None` if it is held back.
    pub(crate) fn on_departure(&mut self, departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        let Departure { source, ref transmit, ref packet, .. } = *departure;
        let hop = hop?;
        let destination = transmit.via.remote;
        let seen = Packet { hop, destination, bytes: packet.clone() };
        push(&mut self.past, seen.clone(), MAX_PAST);
        match self.rule {
            Rule::Pass => Some(hop),
            Rule::Hold => {
                self.hold(seen);
                None
            }
            Rule::Mirror { from, to } if (hop.from, hop.to) == (from, to) => {
                let egress = transmit.via.egress;
                Some(Hop { from, to: from, egress, source: destination })
            }
            Rule::Relay { from, meant, instead } if (hop.from, hop.to) == (from, meant) => {
                Some(Hop { to: instead, ..hop })
            }
            Rule::Relay { from, meant, instead } if (hop.from, hop.to) == (instead, from) => {
                Some(Hop { source: address(meant, source.port() - PORT), ..hop })
            }
            Rule::Mirror { .. } | Rule::Relay { .. } => Some(hop),
        }
    }

    /// Holds a packet back, behind all others.
    pub(crate) fn hold(&mut self, packet: Packet) {
        push(&mut self.held, packet, MAX_HELD);
    }

    /// A packet that was sent before, whatever happened to it; 0 is the latest.
    pub(crate) fn past(&self, choice: u8) -> Option<&Packet> {
        let back = usize::from(choice).checked_rem(self.past.len())?;
        self.past.iter().rev().nth(back)
    }

    /// Handshakes that were sent before.
    pub(crate) fn handshakes(&self) -> impl Iterator<Item = &Packet> {
        let is_asked =
            |packet: &&Packet| matches!(Kind::of(&packet.bytes), Ok(Kind::Hello | Kind::Open));
        self.past.iter().filter(is_asked)
    }

    /// Removes and returns one of the packets that are held back.
    pub(crate) fn take_held(&mut self, choice: u8) -> Option<Packet> {
        let at = usize::from(choice).checked_rem(self.held.len())?;
        self.held.remove(at)
    }

    /// Leaves the network; the packets that it holds back are lost.
    pub(crate) fn leave(&mut self) {
        self.rule = Rule::Pass;
        self.held.clear();
    }

    /// The receiver, the path and the bytes of `packet` after `tampering`.
    pub(crate) fn tamper(&self, packet: &Packet, tampering: &Tampering) -> (usize, Via, Vec<u8>) {
        let Packet { hop, destination, ref bytes } = *packet;
        let mut to = hop.to;
        let mut via = hop.via();
        let mut bytes = bytes.clone();
        match tampering {
            Tampering::None => {}
            Tampering::Reflect => {
                to = hop.from;
                via = Via { egress: hop.source.port() - PORT, local: None, remote: destination };
            }
            Tampering::Redirect(host) => to = *host,
            Tampering::FromEgress(egress) => via.remote = address(hop.from, *egress),
            Tampering::FromHost(host) => via.remote = address(*host, hop.source.port() - PORT),
            Tampering::FromStranger(number) => via.remote = ([192, 0, 2, *number], 9).into(),
            Tampering::Damage(damage) => self.damage(hop, &mut bytes, damage),
        }
        (to, via, bytes)
    }

    fn damage(&self, hop: Hop, bytes: &mut Vec<u8>, damage: &Damage) {
        let len = bytes.len();
        let place = |at: u16| usize::from(at) % len.max(1);
        match damage {
            Damage::Flip(bit) => {
                let bit = usize::from(*bit) % (8 * len).max(1);
                bytes.iter_mut().skip(bit / 8).take(1).for_each(|byte| *byte ^= 1 << (bit % 8));
            }
            Damage::Cut(at) => bytes.truncate(place(*at)),
            Damage::Extend(more) => bytes.extend(more),
            Damage::Overwrite(at, new) => {
                bytes.iter_mut().skip(place(*at)).zip(new).for_each(|(byte, new)| *byte = *new);
            }
            Damage::Splice(at, other) => {
                let at = place(*at);
                bytes.truncate(at);
                // With the tail of a packet to another host it could become that packet, which
                // only `Redirect` may do.
                let other = self.past(*other).filter(|other| other.hop.to == hop.to);
                let other = other.and_then(|other| other.bytes.get(at..));
                bytes.extend_from_slice(other.unwrap_or_default());
            }
            Damage::Replace(new) => bytes.clone_from(new),
        }
    }
}

impl Damage {
    pub(crate) fn read(choices: &mut Choices<'_>) -> Self {
        let kind = choices.below(6);
        let at = choices.u16();
        match kind {
            0 => Self::Flip(at),
            1 => Self::Cut(at),
            2 => Self::Extend(choices.take(1 + usize::from(at % 40))),
            3 => Self::Overwrite(at, choices.take(4)),
            4 => Self::Splice(at, choices.u8()),
            _ => Self::Replace(choices.take(usize::from(at % 100))),
        }
    }
}

fn push(queue: &mut VecDeque<Packet>, packet: Packet, max: usize) {
    if queue.len() == max {
        queue.pop_front();
    }
    queue.push_back(packet);
}
