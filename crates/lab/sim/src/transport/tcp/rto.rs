//! The retransmission timeout: RFC 6298.

use super::Config;
use crate::engine::{SECOND, Time};
use crate::network::Network;

/// The longest timeout (RFC 6298, 2.5).
const LONGEST: Time = 60 * SECOND;

/// The estimate of the round-trip time, and the timer.
#[derive(Debug)]
pub(super) struct Rto {
    min: Time,
    initial: Time,
    /// SRTT; 0 before the first sample.
    smoothed: Time,
    /// RTTVAR.
    variation: Time,
    /// The number of times that the timeout has been doubled since data was last acknowledged.
    doubled: u32,
    /// When the retransmission timer expires, if it runs.
    deadline: Option<Time>,
    /// The time of the pending timer of the simulator, if any.
    timer_at: Option<Time>,
    /// The number of that timer; older timers have other numbers.
    generation: u16,
}

impl Rto {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            min: config.rto_min,
            initial: config.rto_initial,
            smoothed: 0,
            variation: 0,
            doubled: 0,
            deadline: None,
            timer_at: None,
            generation: 0,
        }
    }

    /// The smoothed round-trip time, if there has been a sample.
    pub(super) const fn smoothed(&self) -> Option<Time> {
        if self.smoothed == 0 { None } else { Some(self.smoothed) }
    }

    /// The number of times that the timeout has been doubled since data was last acknowledged.
    pub(super) const fn doubled(&self) -> u32 {
        self.doubled
    }

    /// Takes a sample. ACKs echo the sending time of their packet, so retransmissions are not ambiguous.
    pub(super) fn on_sample(&mut self, sample: Time) {
        if self.smoothed == 0 {
            self.smoothed = sample.max(1);
            self.variation = sample / 2;
        } else {
            let error = self.smoothed.abs_diff(sample);
            self.variation = (3 * self.variation + error) / 4;
            self.smoothed = ((7 * self.smoothed + sample) / 8).max(1);
        }
    }

    fn duration(&self) -> Time {
        let base = match self.smoothed {
            0 => self.initial,
            smoothed => (smoothed + 4 * self.variation).max(self.min),
        };
        base.saturating_mul(1 << self.doubled.min(32)).min(LONGEST.max(base))
    }

    /// Restarts the timer after data has been acknowledged, or stops it if nothing is outstanding.
    pub(super) fn on_progress(&mut self, now: Time, is_outstanding: bool) {
        self.doubled = 0;
        self.deadline = is_outstanding.then(|| now + self.duration());
    }

    /// Starts the timer after a packet has been sent, unless it runs.
    pub(super) fn on_sent(&mut self, now: Time) {
        if self.deadline.is_none() {
            self.deadline = Some(now + self.duration());
        }
    }

    /// Sets a timer of the simulator, unless a pending one is early enough. `token` is that of the timer without its
    /// low 16 bits.
    pub(super) fn schedule(&mut self, network: &mut Network, number: u8, flow: u32, token: u32) {
        let Some(deadline) = self.deadline else {
            return;
        };
        if self.timer_at.is_none_or(|at| at > deadline) {
            self.timer_at = Some(deadline);
            self.generation = self.generation.wrapping_add(1);
            network.set_timer(number, deadline, flow, token | u32::from(self.generation));
        }
    }

    /// Handles a timer of the simulator. Returns whether the retransmission timer has expired; the timeout is then
    /// doubled.
    pub(super) fn on_timer(&mut self, now: Time, generation: u16) -> bool {
        if generation != self.generation {
            return false;
        }
        self.timer_at = None;
        let has_expired = self.deadline.is_some_and(|deadline| deadline <= now);
        if has_expired {
            self.doubled += 1;
            self.deadline = None;
        }
        has_expired
    }
}
