//! Packets under way, and what can become of them.

use super::setup::PORT;
use crate::input::Input;
use cloudburst_core::path::Via;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Packets under way at a time; older ones are lost.
const MAX_FLIGHTS: usize = 600;
/// Packets that are remembered, to be replayed.
const MAX_PAST: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    A,
    B,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::A, Self::B];

    pub(super) const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    pub(super) fn choose(input: &mut Input<'_>) -> Self {
        if input.flag() { Self::B } else { Self::A }
    }

    pub(super) fn address(self, lane: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1 + self as u8], PORT + lane))
    }
}

/// One packet under way, as its receiver will see it.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) to: Side,
    pub(super) via: Via,
    pub(super) bytes: Vec<u8>,
    /// It is as its sender made it.
    pub(super) genuine: bool,
}

#[derive(Debug, Default)]
pub(super) struct Network {
    flights: VecDeque<Flight>,
    past: VecDeque<Flight>,
}

impl Network {
    /// Takes a packet that `from` put on the wire; what goes to no known address is lost.
    pub(super) fn put(&mut self, from: Side, via: Via, bytes: &[u8]) {
        let to = from.other();
        let Some(lane) = via.remote.port().checked_sub(PORT) else { return };
        if to.address(lane) != via.remote {
            return;
        }
        let via = Via { lane, remote: from.address(via.lane) };
        let flight = Flight { to, via, bytes: bytes.to_vec(), genuine: true };
        if self.past.len() == MAX_PAST {
            self.past.pop_front();
        }
        self.past.push_back(flight.clone());
        self.put_back(flight);
    }

    /// Puts a packet (back) on its way, behind all others.
    pub(super) fn put_back(&mut self, flight: Flight) {
        if self.flights.len() == MAX_FLIGHTS {
            self.flights.pop_front();
        }
        self.flights.push_back(flight);
    }

    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    /// The oldest packet.
    pub(super) fn take(&mut self) -> Option<Flight> {
        self.flights.pop_front()
    }

    /// Any packet.
    pub(super) fn take_at(&mut self, choice: u8) -> Option<Flight> {
        let at = usize::from(choice).checked_rem(self.flights.len())?;
        self.flights.remove(at)
    }

    /// A packet that was sent before, whatever became of it; 0 is the latest.
    pub(super) fn past(&self, choice: u8) -> Option<Flight> {
        let back = usize::from(choice).checked_rem(self.past.len())?;
        self.past.iter().rev().nth(back).cloned()
    }

    pub(super) fn lose_all(&mut self) {
        self.flights.clear();
    }
}

/// Damages a packet as the input says.
pub(super) fn damage(flight: &mut Flight, other: &[u8], input: &mut Input<'_>) {
    let before = flight.bytes.clone();
    if before.is_empty() {
        return;
    }
    let (bytes, kind, choice) = (&mut flight.bytes, input.u8(), usize::from(input.u16()));
    match kind % 6 {
        0 => {
            let at = choice % (8 * bytes.len());
            bytes[at / 8] ^= 1 << (at % 8);
        }
        1 => bytes.truncate(choice % bytes.len()),
        2 => bytes.extend_from_slice(input.bytes(1 + choice % 40)),
        3 => {
            // The head of one packet, the tail of another.
            let at = choice % bytes.len();
            bytes.truncate(at);
            bytes.extend_from_slice(other.get(at..).unwrap_or_default());
        }
        4 => {
            let at = choice % bytes.len();
            let drawn = input.bytes(4);
            bytes.iter_mut().skip(at).zip(drawn).for_each(|(byte, new)| *byte = *new);
        }
        _ => *bytes = input.bytes(choice % 200).to_vec(),
    }
    // The tail of another that differs from this one in its tail alone makes the other of it.
    flight.genuine &= flight.bytes == before || flight.bytes == other;
}
