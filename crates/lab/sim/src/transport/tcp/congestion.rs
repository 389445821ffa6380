//! The congestion window: slow start, congestion avoidance (RFC 5681), and reactions to marks (RFC 3168, DCTCP).

use super::Config;
use super::config::Reaction;

/// The minimum window after marks and fast recovery.
const SMALLEST: f64 = 2.0;

/// The congestion window, in packets.
#[derive(Debug)]
pub(super) struct Congestion {
    reaction: Reaction,
    window: f64,
    /// ssthresh.
    threshold: f64,
    /// The window is not reduced for marks before this packet is acknowledged, so at most once per window.
    reduced_until: u32,
    /// DCTCP's estimate of the share of packets that are marked; 1 at first (RFC 8257, 4.2).
    alpha: f64,
    /// The estimate is updated when this packet is acknowledged.
    observed_until: u32,
    acknowledged: u32,
    marked: u32,
}

/// The facts of an ACK that determine the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The number of newly acknowledged packets.
    pub(super) newly: u32,
    /// Whether the acknowledged packet was marked.
    pub(super) is_marked: bool,
    /// The first packet that is not acknowledged.
    pub(super) first: u32,
    /// The packet that will be sent next.
    pub(super) next: u32,
    /// Whether the window may grow: it limited the sender, which is not in fast recovery.
    pub(super) may_grow: bool,
    /// The growth per acknowledged packet in congestion avoidance, in packets, if it is not that of RFC 5681.
    pub(super) increase: Option<f64>,
}

impl Congestion {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            reaction: config.reaction,
            window: f64::from(config.initial_window.max(1)),
            threshold: f64::INFINITY,
            reduced_until: 0,
            alpha: 1.0,
            observed_until: 0,
            acknowledged: 0,
            marked: 0,
        }
    }

    /// Packets that may be in flight.
    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    pub(super) fn on_progress(&mut self, progress: Progress) {
        if let Reaction::Dctcp { gain } = self.reaction {
            self.observe(gain, &progress);
        }
        if progress.is_marked {
            // An ACK that echoes a mark does not make the window grow (RFC 3168, 6.1.2).
            if progress.first >= self.reduced_until {
                self.reduce();
                self.reduced_until = progress.next;
            }
        } else if progress.may_grow {
            let newly = f64::from(progress.newly);
            self.window += if self.window < self.threshold {
                newly
            } else {
                newly * progress.increase.unwrap_or(1.0 / self.window)
            };
        }
    }

    fn observe(&mut self, gain: f64, progress: &Progress) {
        self.acknowledged += progress.newly;
        self.marked += if progress.is_marked { progress.newly } else { 0 };
        if progress.first >= self.observed_until {
            if self.acknowledged > 0 {
                let share = f64::from(self.marked) / f64::from(self.acknowledged);
                self.alpha = (1.0 - gain) * self.alpha + gain * share;
            }
            self.acknowledged = 0;
            self.marked = 0;
            self.observed_until = progress.next;
        }
    }

    fn reduce(&mut self) {
        let share = match self.reaction {
            Reaction::None => return,
            Reaction::Halve => 0.5,
            Reaction::Dctcp { .. } => self.alpha / 2.0,
        };
        self.window = (self.window * (1.0 - share)).max(SMALLEST);
        self.threshold = self.window;
    }

    /// Begins fast recovery while `flight` packets, up to `next`, are outstanding (RFC 6675, 5, step 4.2).
    pub(super) fn on_loss(&mut self, flight: usize, next: u32) {
        self.reduced_until = next;
        self.threshold = (flight as f64 / 2.0).max(SMALLEST);
        self.window = self.threshold;
    }

    /// Handles a timeout (RFC 5681, 3.1). The threshold stays unless this is the first timeout since progress.
    pub(super) fn on_timeout(&mut self, flight: usize, next: u32, is_first: bool) {
        self.reduced_until = next;
        if is_first {
            self.threshold = (flight as f64 / 2.0).max(SMALLEST);
        }
        self.window = 1.0;
    }
}
