//! Lowers the rate where this host's outbound link is slower than configured.
//!
//! Lost symbols alone do not show that the rate is too high: codes hide losses, an incast overflows
//! queues at the receiver that other senders fill, and links lose packets at random. The effect of a
//! lower rate distinguishes a bottleneck from these. With a share `p` lost at random, `(1 - p)` times
//! the rate is delivered at any rate. A bottleneck delivers its own rate, however much is sent (as BBR
//! assumes, ACM Queue 2016). The limit therefore tries lower rates, down to half of the delivery rate,
//! and keeps one only if the losses cease.

use super::Evidence;
use crate::naming::is_alias;
use crate::time::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;
use std::net::SocketAddr;

/// The minimum of an epoch: packets accounted for, and duration.
const EPOCH_PACKETS: u32 = 128;
const MIN_EPOCH: Duration = Duration::from_micros(500);
/// The share of losses on every path to every peer at which a lower rate is first tried; and the
/// margin by which losses must always exceed those found not to be congestion.
const TRIAL_LOSS: f64 = 0.3;
const LOSS_MARGIN: f64 = 0.1;
/// The share of CE marks on every path to every peer at which a lower rate is tried.
const TRIAL_MARKS: f64 = 0.5;
/// Each further rate tried is this share of the one before. The last is this share of the delivery
/// rate, so that a full queue drains.
// A queue that holds most of a burst loses little less at half the rate, so that steps must be
// large to show anything.
const CUT: f64 = 0.5;
/// A rate within this factor of the lowest one to try counts as the lowest.
const LOWEST_TOLERANCE: f64 = 1.1;
/// A lower rate is kept if it leaves no more than this share of the losses, or of the marks.
const MAX_REMAINING: f64 = 0.5;
/// After a second rate tried in vain, a lower one is tried only if the last one left no more than
/// this share of the losses.
const MIN_IMPROVEMENT: f64 = 0.9;
/// The delay of the next trial after one in vain; doubles each time.
const FIRST_TRIAL_WAIT: Duration = Duration::from_millis(20);
const MAX_TRIAL_WAIT: Duration = Duration::from_secs(1);
/// A lowered rate is raised by this share, by twice as much after each success, and at most doubled. The
/// next raise after one in vain is delayed by the following times; the delay doubles each time.
const FIRST_STEP: f64 = 0.125;
const FIRST_RAISE_WAIT: Duration = Duration::from_millis(10);
const MAX_RAISE_WAIT: Duration = Duration::from_millis(500);
/// The rate is never lowered below this share of the configured one, nor below this many bits per second.
const MIN_SHARE: f64 = 1.0 / 64.0;
const MIN_RATE: f64 = 10e6;
/// After this time without packets accounted for, all state is discarded.
const FORGET_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of witnesses remembered, and the number of IP addresses from which their evidence
/// holds for all peers.
const MAX_WITNESSES: usize = 8;
const MIN_WITNESS_ADDRESSES: usize = 3;

/// Lowers the rate of an endpoint while too high a rate is the cause of its losses.
///
/// Every peer heard in an epoch must be a *witness*: have losses, or marks, on all of its paths. A
/// lowered rate stays in force while messages go to witnesses only. With witnesses at three IP
/// addresses, it applies to all peers.
#[derive(Clone, Debug)]
// One limit for the endpoint: with one for each peer, every new peer would find the bottleneck
// anew, and senders in an incast, which no single sender causes, would slow down.
pub(crate) struct RateLimit {
    /// The share of the configured rate that may be used.
    pub(crate) share: f64,
    min_share: f64,
    /// The share of the configured rate that one packet a second uses.
    packet: f64,
    phase: Phase,
    epoch: Epoch,
    /// The share of losses that a lower rate does not avoid.
    random: f64,
    /// Peers with losses or marks on all paths, since the rate was last found to be right.
    witnesses: ArrayVec<SocketAddr, MAX_WITNESSES>,
    trial_wait: Duration,
    trial_at: Instant,
    step: f64,
    raise_wait: Duration,
    raise_at: Instant,
    /// When the rate was last changed: packets sent before are no evidence of it.
    pub(crate) changed_at: Instant,
    pub(crate) changes: u64,
    /// How often the rate was lowered.
    pub(crate) lowered: u64,
    last: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Steady,
    /// Lower rates are being tried.
    Trial {
        from: f64,
        lowest: f64,
        before: Shares,
        /// Whether this is the first of them.
        first: bool,
    },
    /// A higher rate is being tried.
    Raise {
        from: f64,
    },
}

/// The packets accounted for since the epoch began.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    began: Instant,
    due: u32,
    missing: u32,
    arrived: u32,
    marked: u32,
    /// Some peer had losses or marks on all paths; some had not.
    affected: bool,
    unaffected: bool,
}

/// The shares of lost and of marked packets.
#[derive(Clone, Copy, Debug)]
struct Shares {
    lost: f64,
    marked: f64,
}

impl RateLimit {
    /// Starts at the full `rate`, in bits per second. Packets have at most `mtu` bytes.
    pub(crate) fn new(rate: f64, mtu: usize) -> Self {
        Self {
            packet: mtu as f64 * 8.0 / rate,
            share: 1.0,
            min_share: MIN_SHARE.max(MIN_RATE / rate).min(1.0),
            phase: Phase::Steady,
            epoch: Epoch::default(),
            random: 0.0,
            witnesses: ArrayVec::new(),
            trial_wait: FIRST_TRIAL_WAIT,
            trial_at: Instant::ZERO,
            step: FIRST_STEP,
            raise_wait: FIRST_RAISE_WAIT,
            raise_at: Instant::ZERO,
            changed_at: Instant::ZERO,
            changes: 0,
            lowered: 0,
            last: Instant::ZERO,
        }
    }

    /// Handles the start of a message to `peer`. Lifts the limit if the peer is no witness.
    pub(crate) fn on_message(&mut self, now: Instant, peer: SocketAddr) {
        if self.share < 1.0 && now.saturating_since(self.last) >= FORGET_AFTER {
            self.forget(now);
        // Receivers can lie. Three at different addresses slow down other peers' messages until one
        // of these is heard from without losses.
        } else if self.share < 1.0
            && !self.has_enough_witnesses()
            && !self.witnesses.contains(&peer)
        {
            self.phase = Phase::Steady;
            self.set(now, 1.0);
        }
    }

    /// Handles evidence from `peer`. `alone` returns whether all messages in flight are to the given
    /// witnesses.
    pub(crate) fn on_evidence(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        evidence: &Evidence,
        round_trip: Duration,
        alone: impl FnOnce(&[SocketAddr]) -> bool,
    ) {
        if now.saturating_since(self.last) >= FORGET_AFTER {
            self.forget(now);
        }
        self.last = now;
        let epoch = &mut self.epoch;
        epoch.due += evidence.due;
        epoch.missing += evidence.missing;
        epoch.arrived += evidence.arrived;
        epoch.marked += evidence.marked;
        let margin = self.random + LOSS_MARGIN;
        let tried = if self.share < 1.0 { margin } else { TRIAL_LOSS.max(margin) };
        if evidence.lost_everywhere >= tried || evidence.marked_everywhere >= TRIAL_MARKS {
            epoch.affected = true;
            if !self.witnesses.contains(&peer) {
                let _ = self.witnesses.try_push(peer);
            }
        } else {
            epoch.unaffected = true;
            if self.share >= 1.0 {
                self.witnesses.clear();
            }
        }
        let took = now.saturating_since(epoch.began);
        if epoch.due >= EPOCH_PACKETS && took >= round_trip.max(MIN_EPOCH) {
            let over = core::mem::replace(epoch, Epoch { began: now, ..Epoch::default() });
            self.on_epoch(now, &over, took, alone);
        }
    }

    fn on_epoch(
        &mut self,
        now: Instant,
        epoch: &Epoch,
        took: Duration,
        alone: impl FnOnce(&[SocketAddr]) -> bool,
    ) {
        let shares = epoch.shares();
        let congested = epoch.affected && !epoch.unaffected;
        match self.phase {
            Phase::Trial { from, lowest, before, first } => {
                if shares.has_ceased_since(before) {
                    self.phase = Phase::Steady;
                    self.trial_wait = FIRST_TRIAL_WAIT;
                    self.step = FIRST_STEP;
                    self.raise_wait = FIRST_RAISE_WAIT;
                    self.raise_at = now + self.raise_wait;
                // Two lower rates without any effect are enough to call losses random.
                } else if self.share > lowest * LOWEST_TOLERANCE
                    && (first || shares.has_improved_since(before))
                {
                    self.phase = Phase::Trial { from, lowest, before, first: false };
                    self.set(now, lowest.max(self.share * CUT));
                } else {
                    self.phase = Phase::Steady;
                    self.random = shares.lost;
                    self.trial_at = now + self.trial_wait;
                    self.trial_wait = (self.trial_wait * 2).min(MAX_TRIAL_WAIT);
                    self.set(now, from);
                }
            }
            Phase::Raise { from } => {
                self.phase = Phase::Steady;
                if congested {
                    self.raise_wait = (self.raise_wait * 2).min(MAX_RAISE_WAIT);
                    self.raise_at = now + self.raise_wait;
                    self.step = FIRST_STEP;
                    self.set(now, from);
                } else {
                    self.raise_wait = FIRST_RAISE_WAIT;
                    self.step = (self.step * 2.0).min(1.0);
                }
            }
            Phase::Steady if congested => {
                if now >= self.trial_at && (self.has_enough_witnesses() || alone(&self.witnesses)) {
                    let delivered = f64::from(epoch.due - epoch.missing.min(epoch.due));
                    let delivered = delivered * self.packet / took.as_secs_f64();
                    let lowest = self.min_share.max(delivered * CUT);
                    let cut = if shares.marked >= TRIAL_MARKS { CUT } else { 1.0 };
                    let tried = lowest.max(self.share * cut.min(1.0 - shares.lost));
                    if tried < self.share {
                        let from = self.share;
                        let before = shares;
                        self.phase = Phase::Trial { from, lowest, before, first: true };
                        self.set(now, tried);
                    }
                }
            }
            Phase::Steady => {
                self.random = self.random.min(shares.lost + self.random / 2.0);
                if self.share < 1.0 && now >= self.raise_at {
                    self.phase = Phase::Raise { from: self.share };
                    self.set(now, (self.share * (1.0 + self.step)).min(1.0));
                }
            }
        }
    }

    /// Returns whether witnesses are at enough addresses that one or two that lie cannot cause the limit.
    fn has_enough_witnesses(&self) -> bool {
        let mut known = ArrayVec::<_, MAX_WITNESSES>::new();
        for witness in self.witnesses.iter().filter(|witness| !is_alias(witness)) {
            if !known.contains(&witness.ip()) {
                known.push(witness.ip());
            }
        }
        known.len() >= MIN_WITNESS_ADDRESSES
    }

    fn set(&mut self, now: Instant, share: f64) {
        self.lowered += u64::from(share < self.share);
        self.share = share;
        self.changes += 1;
        self.changed_at = now;
        self.epoch = Epoch { began: now, ..Epoch::default() };
    }

    fn forget(&mut self, now: Instant) {
        self.set(now, 1.0);
        self.phase = Phase::Steady;
        self.random = 0.0;
        self.trial_wait = FIRST_TRIAL_WAIT;
        self.trial_at = now;
        self.witnesses.clear();
    }
}

impl Epoch {
    fn shares(&self) -> Shares {
        Shares {
            lost: f64::from(self.missing.min(self.due)) / f64::from(self.due.max(1)),
            marked: f64::from(self.marked) / f64::from(self.arrived.max(1)),
        }
    }
}

impl Shares {
    /// Returns whether the earlier losses and marks have ceased.
    fn has_ceased_since(self, before: Self) -> bool {
        let marks = before.marked < TRIAL_MARKS || self.marked <= before.marked * MAX_REMAINING;
        let losses = self.lost <= before.lost * MAX_REMAINING || self.lost < LOSS_MARGIN;
        marks && losses
    }

    /// Returns whether an even lower rate may help where this one does not. Losses decrease with
    /// the rate; a queue marks until it has drained.
    fn has_improved_since(self, before: Self) -> bool {
        before.marked >= TRIAL_MARKS || self.lost <= before.lost * MIN_IMPROVEMENT
    }
}
