//! How many symbols of one block may be sent, and when to ask: the burst policies.

use crate::config::BurstPolicy;
use crate::time::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// Symbols at the end of a grant that ask: their answers take different paths.
const ASKERS: u32 = 2;
/// Questions whose place in the burst is remembered.
const REMEMBERED: usize = 16;
/// Past this many times the block's symbols, a burst that nobody answers is a trickle; but not
/// before it has had some symbols for each of several paths.
const TRICKLE_AFTER: u32 = 8;
const MIN_BURST: u32 = 32;
/// Symbols in a grant after silences, at most: one for each path, for most may be dead.
const MAX_PROBES: u32 = 8;
const MAX_SILENCE: Duration = Duration::from_millis(100);

/// The sending side of one block: how far it went and how far it may go.
#[derive(Debug)]
pub(super) struct Budget {
    policy: BurstPolicy,
    source_symbols: u32,
    /// Symbols sent so far.
    sent: u32,
    /// Symbols that may have been sent by now.
    granted: u32,
    /// Symbols that may ever be sent: the packet cap.
    cap: u32,
    /// Symbols that the policy opens with.
    opening: u32,
    /// Symbols that are granted after a silence that is not mere lateness.
    probes: u32,
    /// Grants in a row that nobody answered.
    unanswered: u32,
    /// When to grant more if nobody answers.
    wake_at: Option<Instant>,
    /// Packet numbers of symbols that asked, and how many symbols had been sent with them.
    asked: VecDeque<(u64, u32)>,
}

impl Budget {
    /// A block of `source_symbols` that decodes from `expected` symbols if nothing is lost, for a
    /// peer to which there are `paths` paths.
    pub(super) fn new(
        policy: BurstPolicy,
        source_symbols: usize,
        expected: usize,
        max_redundancy: u32,
        paths: usize,
    ) -> Self {
        let n = source_symbols as u32;
        let cap = n * max_redundancy + 256;
        let opening = match policy {
            BurstPolicy::Oblivious => n * TRICKLE_AFTER,
            BurstPolicy::Budgeted { margin } => expected as u32 + (n as f32 * margin) as u32,
        };
        Self {
            policy,
            source_symbols: n,
            sent: 0,
            granted: opening.min(cap),
            opening,
            probes: probes(paths),
            cap,
            unanswered: 0,
            wake_at: None,
            asked: VecDeque::new(),
        }
    }

    /// Symbols that may be sent now.
    pub(super) const fn ready(&self) -> u32 {
        self.granted - self.sent
    }

    /// Symbols sent so far.
    pub(super) const fn sent(&self) -> u32 {
        self.sent
    }

    /// Whether the next symbol should ask what is missing.
    pub(super) const fn asks(&self) -> bool {
        self.ready() <= ASKERS || self.unanswered > 0
    }

    /// How many grants in a row nobody answered.
    pub(super) const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Grants one symbol more, for one that is not counted on: a probe of a path.
    pub(super) fn spare(&mut self) {
        self.cap = self.cap.saturating_add(1);
        self.granted = self.granted.saturating_add(1).min(self.cap);
    }

    /// The symbol with packet number `number` is being sent; `wait` is how long an answer takes.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, wait: Duration) {
        let asks = self.asks();
        self.sent += 1;
        if asks {
            if self.asked.len() == REMEMBERED {
                self.asked.pop_front();
            }
            self.asked.push_back((number, self.sent));
        }
        if self.ready() == 0 {
            let wait = backoff(wait, self.unanswered);
            self.wake_at = (self.sent < self.cap).then(|| now + wait);
        }
    }

    /// The receiver said, answering packet `echo`, that it needs `needed` symbols more.
    pub(super) fn on_status(&mut self, echo: u64, needed: u32) {
        self.unanswered = 0;
        let BurstPolicy::Budgeted { margin } = self.policy else { return };
        // What was sent after the question may still be on its way, and counts.
        let Some(&(_, sent_then)) = self.asked.iter().find(|(number, _)| *number == echo) else {
            return;
        };
        let needed = needed.clamp(1, 2 * self.source_symbols);
        // What was lost once is lost again: send as much more as went missing before.
        let lost = lost_share(sent_then, self.source_symbols, needed);
        let more = (needed as f32 / (1.0 - lost)).ceil() as u32 + (needed as f32 * margin) as u32;
        let granted = (sent_then + more).max(self.sent).min(self.cap);
        if granted > self.granted {
            self.granted = granted;
            self.wake_at = None;
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due, if at all.
    pub(super) const fn wake_at(&self) -> Option<Instant> {
        if self.ready() > 0 { None } else { self.wake_at }
    }

    /// The receiver has no room: what was granted and not sent is not to be sent.
    pub(super) fn revoke(&mut self) {
        self.granted = self.sent;
        self.wake_at = None;
    }

    /// Grants one symbol, so that a receiver which had no room can be asked again. Probes are
    /// slow and end with the deadline: they do not count towards the cap.
    pub(super) fn probe(&mut self) {
        self.cap = self.cap.saturating_add(1);
        self.granted = self.granted.max(self.sent + 1).min(self.cap);
    }

    /// The receiver has room again: the burst goes on as if it began.
    pub(super) fn resume(&mut self) {
        self.wake_at = None;
        self.granted = self.granted.max(self.sent + self.opening).min(self.cap);
    }

    /// Nobody answered in time: grants a few symbols more, at most `limit`, if that is due. Says how
    /// many. `all_well`: nothing is wrong with any path, as far as is known.
    pub(super) fn on_timeout(&mut self, now: Instant, all_well: bool, limit: u32) -> u32 {
        if limit == 0 || self.wake_at().is_none_or(|at| at > now) {
            return 0;
        }
        self.grant_probes(all_well, limit)
    }

    /// Grants a few symbols more, at most `limit`, without waiting any longer. Says how many.
    pub(super) fn grant_probes(&mut self, all_well: bool, limit: u32) -> u32 {
        self.wake_at = None;
        self.unanswered = self.unanswered.saturating_add(1);
        let much = (self.source_symbols * TRICKLE_AFTER).max(MIN_BURST);
        // Where paths are well, the first silence is mostly an answer that is late.
        let late = all_well && self.unanswered == 1;
        let few = if late || self.sent > much { ASKERS } else { self.probes };
        let granted = (self.sent + few.min(limit)).min(self.cap);
        self.granted = self.granted.max(granted);
        self.granted - self.sent
    }
}

/// Symbols that are granted after a silence, where there are `paths` paths.
pub(super) fn probes(paths: usize) -> u32 {
    u32::try_from(paths).unwrap_or(u32::MAX).clamp(ASKERS, MAX_PROBES)
}

/// How long to wait for an answer that takes `wait`, after so many waits in a row that nobody
/// answered. The first may well be bad luck: twice each before the wait doubles.
pub(super) fn backoff(wait: Duration, unanswered: u32) -> Duration {
    let doublings = (unanswered / 2).min(8);
    wait.saturating_mul(1 << doublings).min(MAX_SILENCE.max(wait))
}

/// The share of `sent` symbols that cannot have arrived if `needed` of `source` are missing, at
/// most half: some of what is missing may only be late, on a slower path than the question was.
fn lost_share(sent: u32, source: u32, needed: u32) -> f32 {
    let arrived = source.saturating_sub(needed) as f32;
    (1.0 - arrived / sent.max(1) as f32).clamp(0.0, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(1);

    fn send_all(budget: &mut Budget, now: Instant, first: u64) -> u64 {
        let mut number = first;
        while budget.ready() > 0 {
            budget.on_sent(now, number, WAIT);
            number += 1;
        }
        number
    }

    #[test]
    fn opens_with_the_margin_asks_at_the_end_and_sends_what_is_missing() {
        let policy = BurstPolicy::Budgeted { margin: 0.25 };
        let mut budget = Budget::new(policy, 8, 8, 32, 4);
        assert_eq!(budget.ready(), 10);
        let asks: Vec<bool> = (0..10)
            .map(|number| {
                let asks = budget.asks();
                budget.on_sent(Instant::ZERO, number, WAIT);
                asks
            })
            .collect();
        assert_eq!(asks.iter().filter(|asks| **asks).count(), 2);
        assert_eq!(budget.wake_at(), Some(Instant::ZERO + WAIT));
        // The last packet asked; 8 of 10 arrived, 2 of them repaired nothing yet: 2 missing.
        budget.on_status(9, 2);
        assert_eq!(budget.ready(), 4, "2 needed, 6 of 10 arrived: 2 / 0.6, rounded up");
        assert_eq!(budget.wake_at(), None);
    }

    #[test]
    fn an_answer_to_an_early_question_counts_what_was_sent_since() {
        let mut budget = Budget::new(BurstPolicy::Budgeted { margin: 0.0 }, 8, 8, 32, 4);
        let next = send_all(&mut budget, Instant::ZERO, 0);
        budget.on_status(next - 1, 4);
        let granted = budget.ready();
        assert_eq!(granted, 8, "4 needed, half lost");
        send_all(&mut budget, Instant::ZERO, next);
        // The other question of the first burst is answered late: its answer asks for no more.
        budget.on_status(next - 2, 4);
        assert_eq!(budget.ready(), 0);
        budget.on_status(12_345, 8);
        assert_eq!(budget.ready(), 0, "nobody asked that");
    }

    #[test]
    fn silence_thins_the_burst_out_and_the_cap_ends_it() {
        let mut budget = Budget::new(BurstPolicy::default(), 4, 4, 2, 4);
        let mut number = send_all(&mut budget, Instant::ZERO, 0);
        let mut pauses = Vec::new();
        let mut now = Instant::ZERO;
        while let Some(at) = budget.wake_at() {
            pauses.push(at.saturating_since(now));
            now = at;
            budget.on_timeout(now, true, u32::MAX);
            number = send_all(&mut budget, now, number);
        }
        assert_eq!(number, 2 * 4 + 256);
        assert!(pauses.is_sorted());
        assert_eq!(pauses.last(), Some(&Duration::from_millis(100)));
    }
}
