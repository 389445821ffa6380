//! The sender of one sequence of packets: SACK-based loss recovery (RFC 6675).
//!
//! Packets are counted rather than bytes. A packet counts as lost once three packets sent after it have been
//! SACKed. A retransmission that is lost itself is left to the timeout, as in the RFC.

use super::Config;
use super::congestion::{Congestion, Progress};
use super::rto::Rto;
use super::wire::Ack;
use crate::engine::Time;
use std::collections::VecDeque;

/// The state of an outstanding packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    InFlight,
    Sacked,
    /// Lost, and not yet retransmitted.
    Lost,
    Retransmitted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Open,
    /// Fast recovery until this packet is acknowledged.
    Fast(u32),
    /// After a timeout, until this packet is acknowledged.
    Loss(u32),
}

/// The sender of one sequence of packets.
#[derive(Debug)]
pub(super) struct Sender {
    /// The first packet that has not been acknowledged.
    first: u32,
    /// The states of `first` and of the packets sent after it: the scoreboard.
    states: VecDeque<PacketState>,
    sacked: usize,
    lost: usize,
    /// The three highest SACKed packets, in descending order; 0 stands for none.
    highest: [u32; 3],
    /// Packets before this one have been searched for losses.
    searched: u32,
    /// No packet before this one waits for its retransmission.
    retransmit_from: u32,
    /// Whether the next retransmission ignores the window: it is the first of fast recovery.
    is_urgent: bool,
    mode: Mode,
    /// The number of packets that may be outstanding.
    window: u32,
    pub(super) congestion: Congestion,
    pub(super) rto: Rto,
}

impl Sender {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            first: 0,
            states: VecDeque::new(),
            sacked: 0,
            lost: 0,
            highest: [0; 3],
            searched: 0,
            retransmit_from: 0,
            is_urgent: false,
            mode: Mode::Open,
            window: config.window_packets(),
            congestion: Congestion::new(config),
            rto: Rto::new(config),
        }
    }

    /// The first packet that has not been acknowledged.
    pub(super) const fn first(&self) -> u32 {
        self.first
    }

    /// The first packet that has not been sent.
    pub(super) fn next(&self) -> u32 {
        self.first + self.states.len() as u32
    }

    /// Packets in the network: the RFC's pipe.
    fn in_flight(&self) -> usize {
        self.states.len() - self.sacked - self.lost
    }

    /// The packet to send now, of those before `end`.
    pub(super) fn poll(&mut self, end: u32) -> Option<u32> {
        let is_open = self.in_flight() < self.congestion.window() as usize;
        if !is_open && !self.is_urgent {
            return None;
        }
        if self.lost > 0 {
            let start = self.retransmit_from.saturating_sub(self.first) as usize;
            let mut states = self.states.iter().skip(start);
            if let Some(ahead) = states.position(|&state| state == PacketState::Lost) {
                return Some(self.first + (start + ahead) as u32);
            }
        }
        let may_send = is_open && self.next() < end && self.states.len() < self.window as usize;
        may_send.then(|| self.next())
    }

    /// Records that the packet returned by [`poll`](Self::poll) has been sent.
    pub(super) fn on_sent(&mut self, now: Time, packet: u32) {
        self.rto.on_sent(now);
        match self.states.get_mut((packet - self.first) as usize) {
            Some(state) => {
                *state = PacketState::Retransmitted;
                self.lost -= 1;
                self.retransmit_from = packet + 1;
                self.is_urgent = false;
            }
            None => self.states.push_back(PacketState::InFlight),
        }
    }

    /// Handles an ACK. `increase` is that of [`Progress::increase`].
    pub(super) fn on_ack(&mut self, now: Time, ack: &Ack, increase: Option<f64>) {
        let is_limited = self.in_flight() >= self.congestion.window() as usize;
        let before = self.first;
        self.rto.on_sample(now - ack.sent);
        let newly = self.take_acknowledged(ack.next) + self.take_sacked(ack);
        if self.first > before {
            self.rto.on_progress(now, !self.states.is_empty());
        }
        if let Mode::Fast(until) | Mode::Loss(until) = self.mode
            && self.first >= until
        {
            self.mode = Mode::Open;
            self.is_urgent = false;
        }
        self.congestion.on_progress(Progress {
            newly,
            is_marked: ack.is_marked,
            first: self.first,
            next: self.next(),
            may_grow: is_limited && !matches!(self.mode, Mode::Fast(_)),
            increase,
        });
        let [.., third] = self.highest;
        if self.mode == Mode::Open && third > self.first {
            self.mode = Mode::Fast(self.next());
            self.is_urgent = true;
            self.congestion.on_loss(self.states.len(), self.next());
        }
        if matches!(self.mode, Mode::Fast(_)) {
            self.search(third);
        }
    }

    /// Removes the packets before `next`, which have arrived. Returns how many of them are newly acknowledged.
    fn take_acknowledged(&mut self, next: u32) -> u32 {
        let mut newly = 0;
        while self.first < next
            && let Some(state) = self.states.pop_front()
        {
            self.first += 1;
            newly += u32::from(state != PacketState::Sacked);
            match state {
                PacketState::Sacked => self.sacked -= 1,
                PacketState::Lost => self.lost -= 1,
                PacketState::InFlight | PacketState::Retransmitted => {}
            }
        }
        newly
    }

    /// Marks the packets of a SACK block. Returns how many of them are newly acknowledged.
    fn take_sacked(&mut self, ack: &Ack) -> u32 {
        let mut newly = 0;
        for packet in ack.block().filter(|&packet| packet >= self.first) {
            let Some(state) = self.states.get_mut((packet - self.first) as usize) else {
                break;
            };
            if *state == PacketState::Sacked {
                continue;
            }
            self.lost -= usize::from(*state == PacketState::Lost);
            *state = PacketState::Sacked;
            self.sacked += 1;
            newly += 1;
            let [first, second, third] = self.highest;
            self.highest = match packet {
                _ if packet > first => [packet, first, second],
                _ if packet > second => [first, packet, second],
                _ if packet > third => [first, second, packet],
                _ => self.highest,
            };
        }
        newly
    }

    /// Marks packets before `end` that have not arrived as lost.
    fn search(&mut self, end: u32) {
        for packet in self.searched.max(self.first)..end {
            let state = &mut self.states[(packet - self.first) as usize];
            if *state == PacketState::InFlight {
                *state = PacketState::Lost;
                self.lost += 1;
                self.retransmit_from = self.retransmit_from.min(packet);
            }
        }
        self.searched = self.searched.max(end);
    }

    /// Handles the expiry of the retransmission timer: all packets that have not arrived are lost.
    pub(super) fn on_timeout(&mut self) {
        let is_first = self.rto.doubled() == 1;
        self.congestion.on_timeout(self.states.len(), self.next(), is_first);
        for state in self.states.iter_mut().filter(|state| **state != PacketState::Sacked) {
            *state = PacketState::Lost;
        }
        self.lost = self.states.len() - self.sacked;
        self.retransmit_from = self.first;
        self.searched = self.next();
        self.is_urgent = false;
        self.mode = Mode::Loss(self.next());
    }
}
