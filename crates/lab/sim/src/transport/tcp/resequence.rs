//! The re-sequencing buffer of section 5 of the DRB paper, between the network and TCP.
//!
//! Packets that arrive early are held until earlier ones have arrived, or until the first of them has been held for so
//! long that the gap before it counts as a loss. TCP then sees the gap.

use crate::engine::Time;
use std::collections::VecDeque;

/// A packet for TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) sequence: u32,
    /// When it was sent.
    pub(super) sent: Time,
    /// When it arrived.
    pub(super) arrived: Time,
    /// Its bytes on the wire.
    pub(super) size: u16,
    pub(super) is_marked: bool,
}

/// A re-sequencing buffer.
#[derive(Debug)]
pub(super) struct Resequencer {
    hold_for: Time,
    /// The next packet for TCP.
    next: u32,
    /// The held packets from `next` on. The last one is always present.
    held: VecDeque<Option<Arrival>>,
    /// The time of the pending timer, if any.
    timer_at: Option<Time>,
}

impl Resequencer {
    pub(super) const fn new(hold_for: Time) -> Self {
        Self { hold_for, next: 0, held: VecDeque::new(), timer_at: None }
    }

    /// Takes a packet. Returns it if it need not be held; [`pop`](Self::pop) then returns those that it releases.
    pub(super) fn take(&mut self, arrival: Arrival) -> Option<Arrival> {
        if arrival.sequence <= self.next {
            if arrival.sequence == self.next {
                self.next += 1;
                self.held.pop_front();
            }
            return Some(arrival);
        }
        let place = (arrival.sequence - self.next) as usize;
        if place >= self.held.len() {
            self.held.resize(place + 1, None);
        }
        // The first of duplicates is kept.
        self.held[place].get_or_insert(arrival);
        None
    }

    /// The next packet that need not be held any longer.
    pub(super) fn pop(&mut self, now: Time) -> Option<Arrival> {
        if let Some(Some(arrival)) = self.held.front() {
            let arrival = *arrival;
            self.held.pop_front();
            self.next += 1;
            return Some(arrival);
        }
        if self.deadline()? > now {
            return None;
        }
        while self.held.front().is_some_and(Option::is_none) {
            self.held.pop_front();
            self.next += 1;
        }
        self.pop(now)
    }

    /// The time until which the first packet is held.
    fn deadline(&self) -> Option<Time> {
        let first = self.held.iter().flatten().next();
        first.map(|arrival| arrival.arrived + self.hold_for)
    }

    /// The time for which to set a timer, unless a pending one is early enough.
    pub(super) fn poll_timer(&mut self) -> Option<Time> {
        let deadline = self.deadline()?;
        if self.timer_at.is_some_and(|at| at <= deadline) {
            return None;
        }
        self.timer_at = Some(deadline);
        self.timer_at
    }

    /// Handles the timer.
    pub(super) const fn on_timer(&mut self) {
        self.timer_at = None;
    }
}
