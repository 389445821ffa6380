//! The pause of a message for which its receiver has no capacity.
//!
//! A paused message sends probes alone, ever less often: its symbols would be refused, and cost the link
//! what others need. Before its deadline it is given up, so that the receiver can say for certain that
//! nothing was delivered.

use crate::proto::limits::{MAX_HELD_PAUSE, MAX_PAUSE};
use crate::time::Instant;
use core::time::Duration;

/// The first pause of a message that the receiver has not begun, and of one that it holds. The latter ends
/// by the receiver's STOP, and its probes are for a STOP that is lost.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const FIRST_HELD_PAUSE: Duration = Duration::from_millis(25);
/// A message is given up this long before its deadline, or in the last quarter of its time if that is less:
/// two RTOs even of the longest. Until then it says so this many times.
const GIVE_UP_WITHIN: Duration = Duration::from_millis(200);
const GIVE_UP_TIMES: u32 = 4;

// A peer that is busy answers: it lacks capacity for this message, perhaps not for a shorter one. The
// pause is therefore the message's and not part of the peer's liveness.
#[derive(Debug)]
pub(super) struct Busy {
    /// When the message is given up if it is paused by then.
    give_up_at: Instant,
    /// When the next probe is due; `None` without a pause.
    until: Option<Instant>,
    /// The length of the next pause.
    delay: Duration,
    /// Whether the receiver has the whole message.
    held: bool,
    /// Whether a probe is to be sent.
    probe: bool,
    /// Whether the message was given up: its probes are final, and nothing ends the pause.
    given_up: bool,
}

impl Busy {
    /// No pause, of a message that is accepted at `now` and has until `deadline`.
    pub(super) fn new(now: Instant, deadline: Instant) -> Self {
        let within = (deadline.saturating_since(now) / 4).min(GIVE_UP_WITHIN);
        Self {
            give_up_at: deadline - within,
            until: None,
            delay: FIRST_PAUSE,
            held: false,
            probe: false,
            given_up: false,
        }
    }

    /// Whether the message is paused.
    pub(super) const fn is_paused(&self) -> bool {
        self.until.is_some()
    }

    /// Whether a probe is to be sent.
    pub(super) const fn has_probe(&self) -> bool {
        self.probe
    }

    pub(super) const fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Handles a refusal. `held` says that the receiver has the whole message. Returns whether a pause
    /// begins.
    pub(super) fn pause(&mut self, now: Instant, held: bool) -> bool {
        let begins = self.until.is_none();
        let is_held = held && !self.held;
        self.held = held;
        if is_held {
            self.delay = FIRST_HELD_PAUSE;
        }
        if begins || is_held && !self.given_up {
            self.until = Some(now + self.delay);
        }
        begins
    }

    /// When a paused message needs attention.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let until = self.until?;
        Some(if self.given_up { until } else { until.min(self.give_up_at) })
    }

    /// Makes a probe due if it is time for one. Returns whether it is.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        if self.wake_at().is_none_or(|at| at > now) {
            return false;
        }
        self.probe = true;
        self.given_up |= now >= self.give_up_at;
        self.delay = if self.given_up {
            GIVE_UP_WITHIN / GIVE_UP_TIMES
        } else {
            (self.delay * 2).min(if self.held { MAX_HELD_PAUSE } else { MAX_PAUSE })
        };
        self.until = Some(now + self.delay);
        true
    }

    /// Makes a probe due at once, because the peer may have capacity now.
    pub(super) fn hasten(&mut self, now: Instant) {
        self.until = self.until.map(|until| until.min(now));
    }

    /// Makes a probe due at once, because the peer does not answer.
    pub(super) const fn retry(&mut self) {
        self.probe = true;
    }

    /// Records that a probe is being sent.
    pub(super) const fn on_probe_sent(&mut self) {
        self.probe = false;
    }

    /// Records that the receiver works on the message. Returns whether that ends a pause.
    pub(super) const fn end(&mut self) -> bool {
        let ends = self.is_paused() && !self.given_up;
        if ends {
            self.cut_short();
            self.delay = FIRST_PAUSE;
        }
        ends
    }

    /// Ends a pause because the message starts over, but keeps the length of the next.
    pub(super) const fn cut_short(&mut self) {
        self.until = None;
        self.held = false;
        self.probe = false;
        self.given_up = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Instant = Instant::from_nanos(10_000_000_000);

    /// When probes are due, in milliseconds, and whether they are final.
    fn probes(held: bool) -> Vec<(u128, bool)> {
        let mut busy = Busy::new(Instant::ZERO, DEADLINE);
        assert!(busy.pause(Instant::ZERO, held) && !busy.pause(Instant::ZERO, held));
        let mut probes = Vec::new();
        while let Some(at) = busy.wake_at().filter(|at| *at < DEADLINE) {
            assert!(busy.on_timeout(at) && busy.has_probe());
            busy.on_probe_sent();
            probes.push((at.saturating_since(Instant::ZERO).as_millis(), busy.is_given_up()));
        }
        probes
    }

    #[test]
    fn probes_are_ever_less_frequent_and_the_last_ones_are_final() {
        let refused = probes(false);
        let held = probes(true);
        assert_eq!([0, 1, 2, 9, 10].map(|at| refused[at].0), [1, 3, 7, 911, 1_311]);
        assert_eq!([0, 1, 2, 7].map(|at| held[at].0), [25, 75, 175, 6_375]);
        let last = [(9_800, true), (9_850, true), (9_900, true), (9_950, true)];
        for probes in [&refused, &held] {
            assert_eq!(probes[probes.len() - 4..], last);
            assert!(!probes[probes.len() - 5].1);
        }
        assert!(refused.len() < 40 && held.len() < 13, "{} and {}", refused.len(), held.len());
    }

    #[test]
    fn a_receiver_that_works_on_the_message_ends_the_pause_unless_it_was_given_up() {
        let mut busy = Busy::new(Instant::ZERO, DEADLINE);
        busy.pause(Instant::ZERO, false);
        assert!(busy.end() && !busy.end() && !busy.is_paused());
        busy.pause(Instant::ZERO, true);
        assert!(busy.on_timeout(DEADLINE) && busy.is_given_up());
        assert!(!busy.end() && busy.is_paused());
    }
}
