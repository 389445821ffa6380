//! A TCP flow: CUBIC with SACK (RFC 9438), of which each packet is acknowledged.

use cloudburst_core::time::Instant;
use core::time::Duration;
use std::collections::VecDeque;

const BETA: f64 = 0.7;
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
const C: f64 = 0.4;
/// Packets that must be acknowledged after one that is lost.
const REORDERED: usize = 3;
const RTO: Duration = Duration::from_millis(200);

/// A packet that was sent: when it is acknowledged, if it arrives.
struct Sent {
    number: u64,
    acked_at: Option<Instant>,
    sent_at: Instant,
}

pub(crate) struct Tcp {
    window: f64,
    threshold: f64,
    before: f64,
    reduced_at: Instant,
    /// Losses of packets before this one are of the same event.
    recover: u64,
    next: u64,
    sent: VecDeque<Sent>,
    round_trip: Duration,
    pub(crate) delivered: u64,
}

impl Tcp {
    pub(crate) fn new() -> Self {
        Self {
            window: 10.0,
            threshold: f64::MAX,
            before: 0.0,
            reduced_at: Instant::ZERO,
            recover: 0,
            next: 0,
            sent: VecDeque::new(),
            round_trip: Duration::from_millis(1),
            delivered: 0,
        }
    }

    /// When [`advance`](Self::advance) is due.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let acked = self.sent.iter().filter_map(|sent| sent.acked_at).min();
        acked.or_else(|| self.sent.front().map(|sent| sent.sent_at + RTO))
    }

    /// Takes the acknowledgements that have arrived. Returns how many packets may be sent.
    pub(crate) fn advance(&mut self, now: Instant) -> usize {
        while let Some(at) = self.sent.iter().position(|s| s.acked_at.is_some_and(|at| at <= now)) {
            // They arrive in order.
            let Some(acked) = self.sent.remove(at) else { break };
            let sample = now.saturating_since(acked.sent_at);
            self.round_trip = (self.round_trip * 7 + sample) / 8;
            self.delivered += 1;
            self.on_ack(now);
            while at > 0
                && self.sent.front().is_some_and(|s| {
                    s.acked_at.is_none() && acked.number >= s.number + REORDERED as u64
                })
            {
                let lost = self.sent.pop_front();
                self.on_loss(now, lost.map_or(0, |lost| lost.number));
                if self.sent.front().is_none_or(|s| s.acked_at.is_some()) {
                    break;
                }
            }
        }
        if self.sent.front().is_some_and(|s| s.acked_at.is_none() && s.sent_at + RTO <= now) {
            let first = self.sent.pop_front();
            self.on_loss(now, first.map_or(0, |first| first.number));
            self.sent.retain(|sent| sent.acked_at.is_some());
            self.window = 1.0;
        }
        (self.window.max(1.0) as usize).saturating_sub(self.sent.len())
    }

    fn on_ack(&mut self, now: Instant) {
        if self.window < self.threshold {
            self.window += 1.0;
            return;
        }
        let since = now.saturating_since(self.reduced_at).as_secs_f64();
        let trip = self.round_trip.as_secs_f64();
        let k = (self.before * (1.0 - BETA) / C).cbrt();
        let cubic = C * (since + trip - k).powi(3) + self.before;
        let friendly = self.before * BETA + ALPHA * since / trip;
        let target = cubic.max(friendly).clamp(self.window, self.window * 1.5);
        self.window += (target - self.window) / self.window;
    }

    fn on_loss(&mut self, now: Instant, number: u64) {
        if number < self.recover {
            return;
        }
        self.recover = self.next;
        self.before = self.window;
        self.reduced_at = now;
        self.window = (self.window * BETA).max(2.0);
        self.threshold = self.window;
    }

    /// Sends a packet, which is acknowledged at `acked_at`, or lost.
    pub(crate) fn send(&mut self, now: Instant, acked_at: Option<Instant>) {
        self.sent.push_back(Sent { number: self.next, acked_at, sent_at: now });
        self.next += 1;
    }
}
