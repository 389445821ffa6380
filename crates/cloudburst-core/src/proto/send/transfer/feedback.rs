//! Reactions of a transfer to its receiver's reports.

use super::{SentLog, Transfer, Vanishing};
use crate::path::PathSet;
use crate::proto::limits::{MAX_BACKOFF, MAX_RESTARTS};
use crate::proto::send::recovery::{AnyPolicy, Pull};
use crate::proto::send::source::Source;
use crate::time::Instant;
use crate::wire::Answer;
use crate::wire::answer::{ArrivalsView, NONE_ACKNOWLEDGED};
use crate::wire::symbol::{MIN_SYMBOL_SIZE, SYMBOL_OVERHEAD};
use core::time::Duration;

impl Transfer {
    /// Handles BUSY: the receiver has no capacity for the message. `held` says that it has the whole
    /// message.
    pub(in crate::proto::send) fn on_busy(&mut self, now: Instant, held: bool) {
        self.vanishing.on_arrival();
        // Without a block under way, the BUSY is out of date, and a pause would leave nothing to probe
        // for.
        if !self.active.is_empty() && self.busy.pause(now, held) {
            self.sent.exempt();
            self.active.iter_mut().for_each(|block| block.recovery.revoke());
        }
    }

    /// Records that the receiver works on the message, again if it was busy. Returns whether that ends a
    /// pause.
    pub(in crate::proto::send) fn on_progress(&mut self, now: Instant, rto: Duration) -> bool {
        let ends = self.busy.end();
        if ends {
            self.active.iter_mut().for_each(|block| block.recovery.resume(now, rto));
        }
        ends
    }

    /// Handles a NACK in answer to packet `acknowledged`: the receiver needs `needed` more symbols
    /// of a block.
    pub(in crate::proto::send) fn on_feedback(
        &mut self,
        block: u32,
        acknowledged: u64,
        needed: u32,
    ) {
        if let Some(block) = self.block_mut(block) {
            block.recovery.on_feedback(acknowledged, needed);
        }
    }

    /// Handles a PULL of symbols of a block. `next` is the number of the next packet.
    pub(in crate::proto::send) fn on_pull(
        &mut self,
        now: Instant,
        block: u32,
        pull: Pull,
        next: u64,
        rto: Duration,
    ) {
        if block as usize == self.begun && self.begun < self.layout.blocks() {
            // For later blocks nothing is recorded: a receiver that pulls one has pulled this one
            // too, and PULLs are repeated.
            self.policy.on_pull(now, pull, next);
        } else if let Some(block) = self.block_mut(block) {
            block.recovery.on_pull(now, pull, next, rto);
        }
    }

    /// Whether an answer to packet `acknowledged` is older than when the message last began again.
    pub(in crate::proto::send) const fn is_outdated(&self, acknowledged: u64) -> bool {
        acknowledged < self.restarted_at
    }

    /// Handles a report that the receiver has forgotten the blocks that were done: all start over.
    /// `next` is the number of the next packet.
    pub(in crate::proto::send) fn on_forgotten(&mut self, next: u64, source: &mut Source) {
        if self.is_partial() && self.restarts < MAX_RESTARTS && !self.is_given_up() {
            self.active.iter().for_each(|block| source.end(block.index));
            self.restarted_at = next;
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.restarts += 1;
        self.begin_again();
    }

    fn begin_again(&mut self) {
        self.busy.cut_short();
        self.active.clear();
        self.sent.clear();
        self.policy.reset();
        self.begin_at = None;
        self.begun = 0;
        self.done = 0;
    }

    /// Becomes as if nothing had been sent, because the receiver has certified that it did not and
    /// will not deliver the message.
    pub(in crate::proto::send) fn unsend(&mut self, source: &mut Source) {
        source.start_over();
        self.begin_again();
        self.restarts = 0;
        self.restarted_at = 0;
        self.started_at = None;
        self.answered = false;
    }

    /// Handles a STOP for a block. If only that block had been missing, the receiver would have the
    /// message: it has forgotten others instead.
    pub(in crate::proto::send) fn on_block_done(
        &mut self,
        now: Instant,
        block: u32,
        next: u64,
        source: &mut Source,
    ) {
        let Some(at) = self.active.iter().position(|active| active.index == block) else { return };
        if self.done + 1 == self.layout.blocks() {
            return self.on_forgotten(next, source);
        }
        self.active.remove(at);
        source.end(block);
        self.done += 1;
        // The receiver will pull the next block, unless it has forgotten the message.
        if self.active.is_empty() && !self.has_slot() {
            self.begin_at = Some(now + MAX_BACKOFF);
        }
    }

    /// Records how many symbols have arrived on each path, according to an answer to packet
    /// `acknowledged`, and tells `paths` what is new. `rto` is that of the peer. Returns whether any
    /// symbols are new.
    pub(in crate::proto::send) fn on_arrivals(
        &mut self,
        now: Instant,
        acknowledged: u64,
        arrivals: ArrivalsView<'_>,
        paths: &mut PathSet,
        rto: Duration,
    ) -> bool {
        // PULLs acknowledge no packet, but have as much capacity for arrivals as if they did.
        let none = acknowledged == NONE_ACKNOWLEDGED && self.policy.pulled().is_none();
        let symbol = if none { MIN_SYMBOL_SIZE } else { self.layout.symbol_size() };
        let capacity = arrivals_capacity(symbol);
        let is_new = self.sent.on_report(now, acknowledged, capacity, arrivals.iter(), paths);
        if is_new {
            self.vanishing.on_arrival();
        } else {
            self.vanishing.on_nothing_arrived(now, rto);
        }
        is_new
    }

    /// Whether its packets have vanished for so long that they may be too long for the path.
    pub(in crate::proto::send) const fn vanishes(&self) -> bool {
        self.vanishing.is_persistent()
    }

    /// The policy of the block that begins next.
    pub(in crate::proto::send) const fn policy(&self) -> &AnyPolicy {
        &self.policy
    }

    /// Begins again with the symbols of a new cut of `source`. `next` is the number of the next packet.
    pub(in crate::proto::send) fn cut_again(&mut self, next: u64, source: &Source) {
        self.layout = source.layout;
        self.restarted_at = next;
        self.vanishing = Vanishing::default();
        self.begin_again();
    }

    /// Takes what is known of packets that were missing when the message was delivered, because
    /// they may only be late, and the number of paths for which an answer to one of them has
    /// capacity.
    pub(in crate::proto::send) fn take_missing(&mut self) -> Option<(SentLog, usize)> {
        let capacity = arrivals_capacity(self.layout.symbol_size());
        self.sent.is_missing_any().then(|| (core::mem::take(&mut self.sent), capacity))
    }
}

/// The number of paths for which an answer to a symbol of `symbol` bytes has capacity.
const fn arrivals_capacity(symbol: usize) -> usize {
    Answer::arrivals_within(SYMBOL_OVERHEAD + symbol)
}
