//! Recovery of a block: how many symbols policies and timeouts grant.
//!
//! A [`Recovery`] is told when a symbol is sent, what the receiver needs, and that no answer has
//! arrived in time. It determines how many symbols may be sent now, and when it must be woken.
//! Its [`Policy`] determines the opening and the reaction to answers; the grants after a timeout
//! are the same for all.

mod budgeted;
mod oblivious;
mod policy;
mod pulled;

pub(super) use self::policy::{AnyPolicy, Policy};
use crate::proto::limits::MAX_BACKOFF;
use crate::time::Instant;
use core::time::Duration;

/// The number of RTOs in a row without an answer that is no longer bad luck.
pub(super) const PERSISTENT: u32 = 3;
/// Symbols at the end of a grant that request an ACK: their answers take different paths.
const ACK_REQUESTS: u32 = 2;
/// The fewest symbols after which an unanswered burst slows to a trickle: several for each of
/// several paths. Long blocks send more.
const MIN_BURST: u32 = 32;

/// The maximum number of symbols granted after a timeout: one for each path, because most paths may
/// be dead.
// With two retries and a timeout that doubled each time, 10 KB took up to 1.5 s with three of four
// paths dead and 20 % lost on the fourth. With one for each path, 17 ms.
const MAX_RETRIES: u32 = 8;

/// An unanswered burst ends after this many times the block's source symbols. Symbols after that
/// leave as slowly as the backoff demands.
const TRICKLE_AFTER: u32 = 8;

/// A PULL for one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pull {
    /// The packet that it acknowledges, or
    /// [`NONE_ACKNOWLEDGED`](crate::wire::answer::NONE_ACKNOWLEDGED).
    pub(super) acknowledged: u64,
    /// Symbols requested in all.
    pub(super) credit: u32,
    /// Whether no more are requested unless symbols are lost.
    pub(super) fin: bool,
}

/// The sending side of one block: how many symbols were sent, and how many may be.
#[derive(Debug)]
pub(super) struct Recovery {
    policy: AnyPolicy,
    source_symbols: u32,
    /// Symbols that the receiver needs, by its last report.
    needed: u32,
    /// Symbols sent so far.
    sent: u32,
    /// Symbols that may have been sent by now, at least `sent`.
    granted: u32,
    /// The packet cap: symbols that may be sent in bursts, at least `granted`. Retries raise it.
    cap: u32,
    /// The number of symbols granted after a timeout, unless an answer is probably only late.
    retries: u32,
    /// The number of grants in a row without an answer. While its peer answers, a block may starve in
    /// its class or be refused by a path, which is no matter of the peer's liveness.
    unanswered: u32,
    /// When to grant more if no answer arrives.
    wake_at: Option<Instant>,
    /// Whether part of the opening is still to be sent.
    opening: bool,
    /// Whether the receiver has no capacity, so that only single symbols are sent.
    busy: bool,
}

impl Recovery {
    /// The next block of a message with the policy `policy`, of `source_symbols`, which decodes
    /// from `expected` symbols if nothing is lost, for a peer to which there are `paths` paths.
    /// `is_clean` says that nothing is lost on them, as far as is known.
    pub(super) fn new(
        policy: &mut AnyPolicy,
        source_symbols: usize,
        expected: usize,
        max_redundancy: u32,
        paths: usize,
        is_clean: bool,
    ) -> Self {
        let n = source_symbols as u32;
        let policy = policy.begin(n, expected as u32, is_clean);
        let opening = policy.opening();
        let cap = if policy.is_endless() { u32::MAX } else { n * max_redundancy + 256 };
        Self {
            source_symbols: n,
            needed: n,
            sent: 0,
            granted: opening.saturating_add(policy.pulled().unwrap_or(0)).min(cap),
            cap,
            retries: retries(paths),
            unanswered: 0,
            wake_at: None,
            opening: opening > 1,
            busy: false,
            policy,
        }
    }

    /// Symbols that may be sent now.
    pub(super) const fn allowance(&self) -> u32 {
        self.granted - self.sent
    }

    /// When [`on_timeout`](Self::on_timeout) is due, if at all.
    pub(super) const fn next_wake(&self) -> Option<Instant> {
        if self.allowance() > 0 { None } else { self.wake_at }
    }

    /// Symbols that the receiver needs, as far as it has reported.
    pub(super) const fn needed(&self) -> u32 {
        self.needed
    }

    /// Symbols sent so far.
    pub(super) const fn sent(&self) -> u32 {
        self.sent
    }

    /// The number of grants in a row without an answer.
    pub(super) const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Symbols that are sent without a PULL, including those still to be sent; `None` if the
    /// receiver does not pull.
    pub(super) fn unscheduled(&self) -> Option<u32> {
        self.policy.pulled().map(|pulled| self.granted.saturating_sub(pulled))
    }

    /// Records that the next symbol is being sent in packet `number`. Returns whether it requests
    /// an ACK.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, rto: Duration) -> bool {
        let requests_ack = self.policy.requests_ack(self.allowance()) || self.unanswered > 0;
        self.sent += 1;
        if requests_ack {
            self.policy.on_ack_request(now, number, self.sent);
        }
        self.wait_if_spent(now, rto);
        requests_ack
    }

    /// Waits for an answer if all is sent, unless the burst is endless. Beyond the cap, the waits
    /// alone bound what is sent: the message has until its deadline.
    fn wait_if_spent(&mut self, now: Instant, rto: Duration) {
        if self.allowance() > 0 {
            return;
        }
        if self.policy.is_endless() && !self.busy {
            self.grant_up_to(self.sent.saturating_add(self.policy.opening()));
        } else {
            let exhausted = self.sent >= self.cap;
            let wait = if exhausted { MAX_BACKOFF } else { self.policy.wait(rto, self.unanswered) };
            self.wake_at = Some(now + wait);
        }
    }

    /// Whether a probe is to follow, because the opening of a block of several symbols has all been
    /// sent. True at most once. `configured` is the configured default.
    pub(super) fn ends_opening(&mut self, configured: bool) -> bool {
        let ends = self.opening && self.allowance() == 0;
        self.opening &= !ends;
        ends && self.policy.probes_opening(configured)
    }

    /// Records that packet `number` is a probe.
    pub(super) fn on_probe_sent(&mut self, now: Instant, number: u64) {
        self.policy.on_ack_request(now, number, self.sent);
    }

    /// Handles a NACK in answer to packet `acknowledged`: the receiver needs `needed` more symbols.
    pub(super) fn on_feedback(&mut self, acknowledged: u64, needed: u32) {
        self.unanswered = 0;
        self.needed = needed.min(self.source_symbols);
        let total = self.policy.on_feedback(acknowledged, needed);
        self.grant_up_to(total);
    }

    /// Handles a PULL. `next` is the number of the next packet.
    pub(super) fn on_pull(&mut self, now: Instant, pull: Pull, next: u64, rto: Duration) {
        let Some(more) = self.policy.on_pull(now, pull, next) else { return };
        self.unanswered = 0;
        self.grant_up_to(self.granted.saturating_add(more));
        self.wait_if_spent(now, rto);
    }

    /// Raises the grant to `total` symbols in all, within the cap.
    fn grant_up_to(&mut self, total: u32) {
        self.granted = self.granted.max(total.min(self.cap));
    }

    /// Grants a few more symbols, at most `limit`, if an answer is overdue. Returns how many.
    /// `all_healthy` says that nothing is wrong with any path, as far as is known.
    pub(super) fn on_timeout(&mut self, now: Instant, all_healthy: bool, limit: u32) -> u32 {
        if limit == 0 || self.next_wake().is_none_or(|at| at > now) {
            return 0;
        }
        let few = self.few(all_healthy).min(limit);
        if self.sent >= self.cap {
            return self.grant_retries(few);
        }
        self.grant_up_to(self.sent.saturating_add(few));
        self.allowance()
    }

    /// Waits for an answer at least until `until`.
    pub(super) fn postpone(&mut self, until: Instant) {
        self.wake_at = self.wake_at.map(|at| at.max(until));
    }

    /// Grants a few symbols to a peer that was unresponsive until now.
    pub(super) fn on_return(&mut self, all_healthy: bool) {
        // The outage may have swallowed a whole burst, and with it the cap.
        self.cap = self.cap.max(self.sent.saturating_add(self.policy.opening()));
        let few = self.few(all_healthy);
        self.grant_retries(few);
    }

    /// Ensures that one symbol may be sent to a peer that is unresponsive.
    // The cap does not count it: the peer's credit bounds such symbols in rate, and a message within
    // its deadline goes out whenever its peer is back.
    pub(super) fn retry(&mut self) {
        // Waits after the outage do not grow with its length.
        if self.unanswered < PERSISTENT {
            self.unanswered += 1;
        }
        self.grant_retries(1);
    }

    /// Counts a wait without an answer. Returns the number of symbols to grant after it.
    fn few(&mut self, all_healthy: bool) -> u32 {
        self.wake_at = None;
        self.unanswered = self.unanswered.saturating_add(1);
        let much = (self.source_symbols * TRICKLE_AFTER).max(MIN_BURST);
        // If all paths are healthy, the first timeout is mostly a late answer.
        let late = all_healthy && self.unanswered == 1;
        // Under a flood, one symbol for each path after each late answer cost 4.6 to 5.2 packets
        // for messages of four; two cost 4.0 to 4.3.
        if late || self.sent > much { ACK_REQUESTS } else { self.retries }
    }

    /// Takes back symbols that were granted but not sent, because the receiver has no capacity.
    pub(super) const fn revoke(&mut self) {
        self.granted = self.sent;
        self.wake_at = None;
        self.busy = true;
    }

    /// Ensures that `symbols` retries may be sent, which do not count towards the cap.
    /// Returns how many may be sent.
    pub(super) fn grant_retries(&mut self, symbols: u32) -> u32 {
        self.cap = self.cap.saturating_add(symbols.saturating_sub(self.allowance()));
        self.grant_up_to(self.sent.saturating_add(symbols));
        self.allowance()
    }

    /// Grants one more symbol, in place of one that may well be lost: a probe of a path. It does
    /// not count towards the cap.
    pub(super) const fn grant_extra(&mut self) {
        self.cap = self.cap.saturating_add(1);
        self.granted = self.granted.saturating_add(1);
    }

    /// Continues the burst, because the receiver has capacity again.
    pub(super) fn resume(&mut self, now: Instant, rto: Duration) {
        self.busy = false;
        self.unanswered = 0;
        self.policy.on_resumption();
        self.grant_up_to(self.sent.saturating_add(self.policy.resumption()));
        self.wait_if_spent(now, rto);
    }
}

/// The number of symbols granted after a timeout, with `paths` paths.
pub(super) fn retries(paths: usize) -> u32 {
    u32::try_from(paths).unwrap_or(u32::MAX).clamp(ACK_REQUESTS, MAX_RETRIES)
}

/// How long to wait for an answer, after `unanswered` RTOs in a row without one. Each timeout is
/// tried twice before it doubles, because the first may well be bad luck.
pub(super) fn backoff(rto: Duration, unanswered: u32) -> Duration {
    let doublings = (unanswered / 2).min(8);
    rto.saturating_mul(1 << doublings).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests;
