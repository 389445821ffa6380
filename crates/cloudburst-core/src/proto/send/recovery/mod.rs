//! Recovery of a block: how many symbols policies and timeouts grant.
//!
//! A [`Recovery`] is told when a symbol is sent, what the receiver needs, and that no answer has
//! arrived in time. It determines how many symbols may be sent now, and when it must be woken.
//! Policies differ in their opening and in their reaction to feedback; the grants after a timeout
//! are the same for all.

mod budgeted;
mod credit;
mod pulled;

use self::budgeted::Budgeted;
use self::credit::Credit;
use self::pulled::Pulled;
pub(super) use self::pulled::window;
use crate::config::BurstPolicy;
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
// With two probes and a timeout that doubled each time, 10 KB took up to 1.5 s with three of four
// paths dead and 20 % lost on the fourth. With one for each path, 17 ms.
const MAX_PROBES: u32 = 8;

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
    policy: Policy,
    source_symbols: u32,
    /// Symbols that the receiver needs, by its last report.
    needed: u32,
    credit: Credit,
    /// The number of symbols granted after a timeout, unless an answer is probably only late.
    probes: u32,
    /// The number of grants in a row without an answer.
    unanswered: u32,
    /// When to grant more if no answer arrives.
    wake_at: Option<Instant>,
    /// Whether part of the opening is still to be sent.
    opening: bool,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most blocks have it, and a box would be allocated for each"
)]
enum Policy {
    Oblivious,
    Budgeted(Budgeted),
    Pulled(Pulled),
}

impl Recovery {
    /// A block of `source_symbols` that decodes from `expected` symbols if nothing is lost, for a
    /// peer to which there are `paths` paths. `is_clean` says that nothing is lost on them, as far
    /// as is known. The window of a pulled message is the part that earlier blocks have left for
    /// this one.
    pub(super) fn new(
        policy: BurstPolicy,
        source_symbols: usize,
        expected: usize,
        max_redundancy: u32,
        paths: usize,
        is_clean: bool,
    ) -> Self {
        let n = source_symbols as u32;
        let (policy, opening) = match policy {
            BurstPolicy::Oblivious => (Policy::Oblivious, oblivious_opening(n)),
            BurstPolicy::Budgeted { margin } => {
                let policy = Budgeted::new(margin, n);
                // No repair symbols if nothing is lost (SCDP, section IV-G). The margin spares a
                // message with a loss a round trip, and costs one of 93 KB four packets.
                let opening =
                    if is_clean { expected as u32 } else { policy.opening(expected as u32) };
                (Policy::Budgeted(policy), opening)
            }
            BurstPolicy::Pulled { window } => {
                (Policy::Pulled(Pulled::default()), window.map_or(0, u32::from).min(n))
            }
        };
        Self {
            policy,
            source_symbols: n,
            needed: n,
            credit: Credit::new(opening, n * max_redundancy + 256),
            probes: probes(paths),
            unanswered: 0,
            wake_at: None,
            opening: opening > 1,
        }
    }

    /// Symbols that may be sent now.
    pub(super) const fn allowance(&self) -> u32 {
        self.credit.left()
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
        self.credit.sent()
    }

    /// Whether the next symbol should request an ACK.
    pub(super) const fn requests_ack(&self) -> bool {
        let last = match &self.policy {
            Policy::Pulled(policy) => self.allowance() <= 1 && policy.requests_ack(),
            Policy::Oblivious | Policy::Budgeted(_) => self.allowance() <= ACK_REQUESTS,
        };
        last || self.unanswered > 0
    }

    /// The number of grants in a row without an answer.
    pub(super) const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Records that the symbol with packet number `number` is being sent.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, rto: Duration) {
        let requests_ack = self.requests_ack();
        self.credit.on_sent();
        if requests_ack && let Policy::Budgeted(policy) = &mut self.policy {
            policy.on_ack_request(number, self.credit.sent());
        }
        if self.allowance() == 0 {
            self.wake_in(now, rto);
        }
    }

    /// Whether a probe is to follow, because the opening of a block of several symbols has all been
    /// sent. True once.
    pub(super) const fn ends_opening(&mut self) -> bool {
        let ends = self.opening && self.allowance() == 0;
        self.opening &= !ends;
        ends
    }

    /// Records that packet `number` is a probe.
    pub(super) fn on_probe_sent(&mut self, number: u64) {
        if let Policy::Budgeted(policy) = &mut self.policy {
            policy.on_ack_request(number, self.credit.sent());
        }
    }

    /// Handles a NACK in answer to packet `acknowledged`: the receiver needs `needed` more symbols.
    pub(super) fn on_feedback(&mut self, acknowledged: u64, needed: u32) {
        self.unanswered = 0;
        self.needed = needed.min(self.source_symbols);
        let Policy::Budgeted(policy) = &self.policy else { return };
        let Some(total) = policy.on_feedback(acknowledged, needed) else { return };
        if self.credit.grant_up_to(total) {
            self.wake_at = None;
        }
    }

    /// Waits for an answer. Beyond the cap, the waits alone bound what is sent: the message has
    /// until its deadline.
    fn wake_in(&mut self, now: Instant, rto: Duration) {
        let exhausted = self.credit.is_exhausted();
        let timeout = if exhausted { MAX_BACKOFF } else { self.timeout(rto) };
        self.wake_at = Some(now + timeout);
    }

    /// How long to wait when all is sent.
    fn timeout(&self, rto: Duration) -> Duration {
        match &self.policy {
            Policy::Pulled(policy) => policy.timeout(rto, self.unanswered),
            Policy::Oblivious | Policy::Budgeted(_) => backoff(rto, self.unanswered),
        }
    }

    /// Handles a PULL. `next` is the number of the next packet.
    pub(super) fn on_pull(
        &mut self,
        now: Instant,
        Pull { acknowledged, credit, fin }: Pull,
        next: u64,
        rto: Duration,
    ) {
        let Policy::Pulled(policy) = &mut self.policy else { return };
        let more = policy.on_pull(acknowledged, next, credit, fin);
        self.unanswered = 0;
        if self.credit.add(more) {
            self.wake_at = None;
        } else if self.allowance() == 0 {
            self.wake_in(now, rto);
        }
    }

    /// Symbols that are sent without a request, including those still to be sent.
    pub(super) const fn unscheduled(&self) -> u32 {
        match &self.policy {
            Policy::Pulled(policy) => self.credit.granted().saturating_sub(policy.credit()),
            Policy::Oblivious | Policy::Budgeted(_) => 0,
        }
    }

    /// Grants a few more symbols, at most `limit`, if an answer is overdue. Returns how many.
    /// `all_healthy` says that nothing is wrong with any path, as far as is known.
    pub(super) fn on_timeout(&mut self, now: Instant, all_healthy: bool, limit: u32) -> u32 {
        if limit == 0 || self.next_wake().is_none_or(|at| at > now) {
            return 0;
        }
        let few = self.few(all_healthy).min(limit);
        if self.credit.is_exhausted() { self.credit.probe(few) } else { self.credit.grant(few) }
    }

    /// Grants a few symbols to a peer that was unresponsive until now.
    pub(super) fn on_return(&mut self, all_healthy: bool) {
        // The outage may have swallowed a whole burst, and with it the cap.
        self.credit.renew();
        self.grant_probes(all_healthy, u32::MAX);
    }

    /// Grants a few probing symbols, at most `limit`, to a peer that is unresponsive. Returns how
    /// many.
    // The cap does not count them: the peer's credit bounds them in rate, and a message within its
    // deadline goes out whenever its peer is back.
    pub(super) fn grant_probes(&mut self, all_healthy: bool, limit: u32) -> u32 {
        let few = self.few(all_healthy).min(limit);
        self.credit.probe(few)
    }

    /// Counts a wait without an answer. Returns the number of symbols to grant after it.
    fn few(&mut self, all_healthy: bool) -> u32 {
        self.wake_at = None;
        self.unanswered = self.unanswered.saturating_add(1);
        let much = oblivious_opening(self.source_symbols).max(MIN_BURST);
        // If all paths are healthy, the first timeout is mostly a late answer.
        let late = all_healthy && self.unanswered == 1;
        // Under a flood, one symbol for each path after each late answer cost 4.6 to 5.2 packets
        // for messages of four; two cost 4.0 to 4.3.
        if late || self.credit.sent() > much { ACK_REQUESTS } else { self.probes }
    }

    /// Takes back symbols that were granted but not sent, because the receiver has no capacity.
    pub(super) const fn revoke(&mut self) {
        self.credit.revoke();
        self.wake_at = None;
    }

    /// Grants one symbol, so that a receiver that had no capacity can be probed again.
    pub(super) fn probe(&mut self) {
        self.credit.probe(1);
    }

    /// Grants the credit of a PULL that arrived before the block began.
    pub(super) fn grant_ahead(&mut self, Pull { acknowledged, credit, fin }: Pull) {
        if let Policy::Pulled(policy) = &mut self.policy {
            let more = policy.on_pull(acknowledged, 0, credit, fin);
            self.credit.add(more);
        }
    }

    /// Grants one more symbol, in place of one that may well be lost: a probe of a path.
    pub(super) const fn grant_extra(&mut self) {
        self.credit.grant_extra();
    }

    /// Continues the burst as if it began, because the receiver has capacity again. A pulled
    /// message waits for a PULL instead.
    pub(super) fn resume(&mut self, now: Instant, rto: Duration) {
        self.wake_at = None;
        if matches!(self.policy, Policy::Pulled(_)) {
            self.wake_in(now, rto);
        } else {
            self.credit.resume();
        }
    }
}

/// The number of symbols granted after a timeout, with `paths` paths.
pub(super) fn probes(paths: usize) -> u32 {
    u32::try_from(paths).unwrap_or(u32::MAX).clamp(ACK_REQUESTS, MAX_PROBES)
}

/// How long to wait for an answer, after `unanswered` RTOs in a row without one. Each timeout is
/// tried twice before it doubles, because the first may well be bad luck.
pub(super) fn backoff(rto: Duration, unanswered: u32) -> Duration {
    let doublings = (unanswered / 2).min(8);
    rto.saturating_mul(1 << doublings).min(MAX_BACKOFF)
}

/// The number of symbols that a block of `source_symbols` opens with: enough for the STOP to arrive
/// before its end.
const fn oblivious_opening(source_symbols: u32) -> u32 {
    source_symbols * TRICKLE_AFTER
}

#[cfg(test)]
mod tests;
