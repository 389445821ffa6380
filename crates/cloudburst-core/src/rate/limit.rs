//! Adapts the rate to what the network carries.
//!
//! The rate starts with an initial window in each round trip and doubles until something shows that it
//! is too high, as TCP's does. Where packets queue, so that round trips have grown, other flows fill the
//! queue too, and a loss lowers the rate as it lowers TCP's: by a share, once per round trip, after which it
//! rises by a packet per round trip (AIMD, RFC 5681).
//!
//! Where nothing queues, lost symbols alone do not show that the rate is too high: codes hide losses, an
//! incast overflows queues at the receiver that other senders fill, and links lose packets at random. The
//! effect of a lower rate distinguishes a bottleneck from these. With a share `p` lost at random, `(1 - p)`
//! times the rate is delivered at any rate. A bottleneck delivers its own rate, however much is sent (as
//! BBR assumes, ACM Queue 2016). The limit therefore tries lower rates, down to half of the delivery rate,
//! and keeps one only if the losses cease.

use super::Evidence;
use crate::naming::is_alias;
use crate::path::PathReport;
use crate::time::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;
use std::net::SocketAddr;

/// Packets that are sent at once at the start, and in the first round trip after them.
const INITIAL_WINDOW: u32 = 32;
/// The round trip assumed before one is known.
const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(10);
/// Packets that may leave at once at a lowered rate: the queue at the bottleneck is short.
const LOWERED_WINDOW: u32 = 4;
/// Packets queue if a round trip exceeds the shortest one by this much, and by this share of it.
const QUEUE_DELAY: Duration = Duration::from_micros(500);
const QUEUE_SHARE: u32 = 8;
/// What a loss leaves of the rate where packets queue, as with CUBIC (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// The increase in packets per round trip that is as fast as Reno's with that share (RFC 9438, section
/// 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// A quarter of the constant C of CUBIC (RFC 9438, section 5): the rate is told of losses a round trip later than TCP.
const CUBIC: f64 = 0.1;
/// Where nothing queues, the rate rises at most by a factor of e while this many packets are accounted for,
/// near the rate at which it was last lowered, and below that.
// With less than 32 packets per round trip, TCP's increase would soon overflow a bottleneck without a queue.
const NEAR_PACKETS: f64 = 1024.0;
const BELOW_PACKETS: f64 = 32.0;
/// The rate is near another one from this share of it on.
const NEAR: f64 = 0.85;
/// Packets that the estimate of losses without a queue covers, approximately.
const LOSS_MEMORY: f64 = 256.0;
/// From this share of losses beyond the usual on, the rate falls to that of the packets that arrived.
const HEAVY_LOSS: f64 = 0.2;
/// The rate rises only if this share of it was used.
const USED: f64 = 0.5;

/// The highest share of the configured rate: the capacity of an Ethernet link includes 38 bytes of each
/// packet that the pacer does not know of, and a link that is loaded beyond its capacity looks like one that
/// others share.
pub(crate) const HEADROOM: f64 = 0.97;

/// The minimum of an epoch: packets accounted for, and duration.
const EPOCH_PACKETS: u32 = 128;
const MIN_EPOCH: Duration = Duration::from_micros(500);
/// The share of losses on every path to every peer at which a lower rate is first tried; and the
/// margin by which losses must always exceed those found not to be congestion.
const TRIAL_LOSS: f64 = 0.05;
const LOSS_MARGIN: f64 = 0.05;
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
/// The rate is never lowered below this many bits per second.
const MIN_RATE: f64 = 1e6;
/// After this time without packets accounted for, all state is discarded.
const FORGET_AFTER: Duration = Duration::from_secs(1);
/// How long a peer is a witness.
const WITNESS_FOR: Duration = FORGET_AFTER;
/// The maximum number of witnesses remembered, and the number of IP addresses from which their evidence
/// holds for all peers.
const MAX_WITNESSES: usize = 8;
const MIN_WITNESS_ADDRESSES: usize = 3;

/// Adapts the rate of an endpoint.
///
/// Every peer heard in an epoch must be a *witness*: have losses, or marks, on all of its paths, or long
/// round trips. A lowered rate stays in force while messages go to witnesses only. With witnesses at three
/// IP addresses, it applies to all peers.
#[derive(Clone, Debug)]
// One limit for the endpoint: with one for each peer, every new peer would find the bottleneck
// anew, and senders in an incast, which no single sender causes, would slow down.
pub(crate) struct RateLimit {
    /// The share of the configured rate that may be used.
    pub(crate) share: f64,
    min_share: f64,
    /// The share of the configured rate that one byte a second uses.
    byte: f64,
    /// The share that one initial window a second uses.
    initial: f64,
    /// The share that one packet a second uses, at the MTU of the peer that reported last.
    packet: f64,
    phase: Phase,
    round: Round,
    epoch: Epoch,
    /// The share of losses that a lower rate does not avoid.
    random: f64,
    /// The share of losses while nothing queues.
    unqueued: f64,
    /// The share at which the rate was last lowered.
    ceiling: f64,
    /// Peers with losses or marks on all paths, or long round trips, and when they had them last.
    witnesses: ArrayVec<(SocketAddr, Instant), MAX_WITNESSES>,
    trial_wait: Duration,
    trial_at: Instant,
    /// When the rate was last lowered, or restored: packets sent before are no evidence of it.
    pub(crate) changed_at: Instant,
    pub(crate) changes: u64,
    /// How often the rate was lowered.
    pub(crate) lowered: u64,
    last: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The next train begins at a new rate, at least this one: nothing was sent for a while, or not to its
    /// peer.
    Idle {
        least: f64,
    },
    /// The round trip is not known yet.
    Assumed,
    /// The rate doubles with each round trip.
    Start,
    Steady,
    /// Lower rates are being tried.
    Trial {
        from: f64,
        lowest: f64,
        before: Shares,
        /// Whether this is the first of them.
        first: bool,
        /// The `ceiling` before it.
        ceiling: f64,
    },
}

/// Round trips to a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrips {
    /// Of the packet that an answer acknowledges, if known.
    pub(crate) last: Option<Duration>,
    pub(crate) smoothed: Duration,
    pub(crate) shortest: Duration,
    /// Bytes of the longest packets to the peer.
    pub(crate) mtu: usize,
}

/// What was reported in a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// `None` until a packet is reported that was sent at the present rate.
    began: Option<Instant>,
    due: u32,
    missing: i64,
    marked: u32,
    /// Some round trip was long; some was not.
    long: bool,
    short: bool,
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
    /// Some round trip was long.
    long: bool,
}

/// The shares of lost and of marked packets.
#[derive(Clone, Copy, Debug)]
struct Shares {
    lost: f64,
    marked: f64,
}

impl RateLimit {
    /// A limit below `rate`, in bits per second. Packets have at most `mtu` bytes, as far as is known.
    pub(crate) fn new(rate: f64, mtu: usize) -> Self {
        Self {
            byte: 8.0 / rate,
            initial: f64::from(INITIAL_WINDOW) * mtu as f64 * 8.0 / rate,
            packet: mtu as f64 * 8.0 / rate,
            share: 1.0,
            min_share: (MIN_RATE / rate).min(1.0),
            phase: Phase::Idle { least: 0.0 },
            round: Round::default(),
            epoch: Epoch::default(),
            random: 0.0,
            unqueued: 0.0,
            ceiling: 1.0,
            witnesses: ArrayVec::new(),
            trial_wait: FIRST_TRIAL_WAIT,
            trial_at: Instant::ZERO,
            changed_at: Instant::ZERO,
            changes: 0,
            lowered: 0,
            last: Instant::ZERO,
        }
    }

    /// Packets that may leave at once.
    pub(crate) const fn window(&self) -> u32 {
        match self.phase {
            Phase::Idle { .. } | Phase::Assumed | Phase::Start => INITIAL_WINDOW,
            Phase::Steady | Phase::Trial { .. } => LOWERED_WINDOW,
        }
    }

    /// Whether answers are wanted in every round trip, also if no message requests them.
    pub(crate) fn wants_reports(&self) -> bool {
        self.share < 1.0
    }

    /// Handles the start of a message to `peer`. Lifts the limit if the peer is no witness.
    pub(crate) fn on_message(&mut self, now: Instant, peer: SocketAddr) {
        if now.saturating_since(self.last) >= FORGET_AFTER {
            self.forget(now);
        // Receivers can lie. Three at different addresses slow down other peers' messages until they have
        // had no losses for a second.
        } else if self.share < 1.0 && !self.has_enough_witnesses(now) && !self.is_witness(now, peer)
        {
            self.phase = Phase::Idle { least: self.share };
        }
    }

    /// Handles the start of a train to a peer with this round trip. Returns whether an initial window may be
    /// sent at once.
    pub(crate) fn on_train(&mut self, now: Instant, round_trip: Option<Duration>) -> bool {
        let least = match self.phase {
            Phase::Idle { least } => least,
            Phase::Assumed if round_trip.is_some() => self.share,
            _ => return false,
        };
        let is_idle = matches!(self.phase, Phase::Idle { .. });
        let first = per(self.initial, round_trip.unwrap_or(UNKNOWN_ROUND_TRIP));
        if is_idle && first <= least {
            self.phase = Phase::Steady;
            return false;
        }
        self.share = first.max(least).min(1.0);
        self.round = Round { began: Some(now), ..Round::default() };
        self.phase = match round_trip {
            _ if self.share >= 1.0 => Phase::Steady,
            Some(_) => Phase::Start,
            None => Phase::Assumed,
        };
        is_idle
    }

    /// Handles an answer from `peer`, with a `report` on all paths. `alone` returns whether all messages in
    /// flight are to peers for which its argument returns true.
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        report: &PathReport,
        trips: &RoundTrips,
        alone: impl Fn(&dyn Fn(SocketAddr) -> bool) -> bool,
    ) {
        self.packet = trips.mtu as f64 * self.byte;
        if report.due > 0 {
            self.last = now;
        }
        let round = &mut self.round;
        let Some(began) = round.began else {
            round.began = Some(now);
            return;
        };
        round.due += report.due;
        round.missing += report.missing;
        round.marked += report.marked;
        match trips.are_long() {
            Some(true) => {
                round.long = true;
                self.add_witness(now, peer);
            }
            Some(false) => round.short = true,
            None => {}
        }
        let took = now.saturating_since(began);
        if self.round.due == 0 || took < trips.smoothed {
            return;
        }
        let over =
            core::mem::replace(&mut self.round, Round { began: Some(now), ..Round::default() });
        let queues = over.long && !over.short;
        let starts = matches!(self.phase, Phase::Assumed | Phase::Start);
        if over.short && !over.long && !starts {
            self.learn_losses(&over);
        }
        let lost = over.marked > 0 || self.are_many(over.missing, over.due);
        if lost && (queues || starts) {
            self.add_witness(now, peer);
            if self.applies(now, &alone) {
                self.phase = Phase::Steady;
                let lowered = self.lowered_by(&over, took.max(trips.last.unwrap_or_default()));
                self.set(now, lowered);
            }
        } else {
            self.rise(now, &over, took, trips.smoothed, queues);
        }
    }

    /// Updates the share of losses that are not those of a queue.
    fn learn_losses(&mut self, round: &Round) {
        let lost = (round.missing as f64 / f64::from(round.due)).clamp(0.0, 1.0);
        if lost < HEAVY_LOSS {
            let weight = (f64::from(round.due) / LOSS_MEMORY).min(1.0);
            self.unqueued += (lost - self.unqueued) * weight;
        }
    }

    /// Whether more packets are missing than would be without a queue.
    fn are_many(&self, missing: i64, due: u32) -> bool {
        let usual = f64::from(due) * self.unqueued;
        missing as f64 > usual + 3.0 * usual.sqrt()
    }

    /// The rate after losses in a round that took this long.
    fn lowered_by(&self, round: &Round, took: Duration) -> f64 {
        let due = f64::from(round.due);
        let lost = (round.missing as f64 / due).min(1.0);
        let most = self.share * BETA;
        let lowered = if lost - self.unqueued < HEAVY_LOSS {
            most
        } else {
            most.min(self.share_of(due * (1.0 - lost), took))
        };
        lowered.max(self.min_share)
    }

    /// Raises the rate after a round without losses that are its fault.
    fn rise(
        &mut self,
        now: Instant,
        round: &Round,
        took: Duration,
        round_trip: Duration,
        queues: bool,
    ) {
        let due = f64::from(round.due);
        let is_used = due * self.packet >= self.share * USED * took.as_secs_f64();
        if self.share >= 1.0 || !is_used {
            return;
        }
        let raised = match self.phase {
            Phase::Start if !queues => self.share * 2.0,
            Phase::Start | Phase::Steady => {
                self.phase = Phase::Steady;
                let trips = took.as_secs_f64() / round_trip.as_secs_f64().max(1e-6);
                let packet = self.share_of(1.0, round_trip);
                let since = now.saturating_since(self.changed_at) + round_trip;
                let by_window =
                    (ALPHA * trips * packet).max(self.cubic(since, packet) - self.share);
                let near = self.share >= self.ceiling * NEAR;
                let packets = if near { NEAR_PACKETS } else { BELOW_PACKETS };
                let most = if queues { f64::MAX } else { self.share * due / packets };
                self.share + by_window.min(most)
            }
            Phase::Idle { .. } | Phase::Assumed | Phase::Trial { .. } => return,
        };
        self.share = raised.min(1.0);
    }

    /// What CUBIC's window would be this long after the rate was lowered, as a share (RFC 9438, section
    /// 4.2), if a packet per round trip is the share `packet`; at most half more than now.
    fn cubic(&self, since: Duration, packet: f64) -> f64 {
        let before = self.ceiling / packet;
        let level_at = (before * (1.0 - BETA) / CUBIC).cbrt();
        let window = before + CUBIC * (since.as_secs_f64() - level_at).powi(3);
        (window * packet).min(self.share * 1.5)
    }

    /// Handles evidence from `peer`. `alone` returns whether all messages in flight are to
    /// peers for which its argument returns true.
    pub(crate) fn on_evidence(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        evidence: &Evidence,
        trips: &RoundTrips,
        alone: impl Fn(&dyn Fn(SocketAddr) -> bool) -> bool,
    ) {
        let epoch = &mut self.epoch;
        epoch.due += evidence.due;
        epoch.missing += evidence.missing;
        epoch.arrived += evidence.arrived;
        epoch.marked += evidence.marked;
        epoch.long |= trips.are_long() == Some(true);
        let margin = self.random + LOSS_MARGIN;
        let tried = if self.share < 1.0 { margin } else { TRIAL_LOSS.max(margin) };
        if evidence.lost_everywhere >= tried || evidence.marked_everywhere >= TRIAL_MARKS {
            epoch.affected = true;
            self.add_witness(now, peer);
        } else if trips.are_long() != Some(true) {
            epoch.unaffected = true;
            if self.share >= 1.0 {
                self.witnesses.clear();
            }
        }
        let took = now.saturating_since(self.epoch.began);
        if self.epoch.due >= EPOCH_PACKETS && took >= trips.smoothed.max(MIN_EPOCH) {
            let fresh = Epoch { began: now, ..Epoch::default() };
            let over = core::mem::replace(&mut self.epoch, fresh);
            self.on_epoch(now, &over, alone);
        }
    }

    fn on_epoch(
        &mut self,
        now: Instant,
        epoch: &Epoch,
        alone: impl Fn(&dyn Fn(SocketAddr) -> bool) -> bool,
    ) {
        let shares = epoch.shares();
        let congested = epoch.affected && !epoch.unaffected;
        match self.phase {
            Phase::Trial { from, lowest, before, first, ceiling } => {
                if shares.has_ceased_since(before) {
                    self.phase = Phase::Steady;
                    self.trial_wait = FIRST_TRIAL_WAIT;
                } else if epoch.long {
                    self.phase = Phase::Steady;
                // Two lower rates without any effect are enough to call losses random.
                } else if self.share > lowest * LOWEST_TOLERANCE
                    && (first || shares.has_improved_since(before))
                {
                    self.phase = Phase::Trial { from, lowest, before, first: false, ceiling };
                    self.set(now, lowest.max(self.share * CUT));
                    self.ceiling = from;
                } else {
                    self.phase = Phase::Steady;
                    self.random = shares.lost;
                    self.trial_at = now + self.trial_wait;
                    self.trial_wait = (self.trial_wait * 2).min(MAX_TRIAL_WAIT);
                    self.set(now, from);
                    self.ceiling = ceiling;
                }
            }
            Phase::Idle { .. } | Phase::Assumed => {}
            Phase::Start | Phase::Steady if congested => {
                if now >= self.trial_at && (self.applies(now, &alone)) {
                    let delivered = self.share * (1.0 - shares.lost);
                    let lowest = self.min_share.max(delivered * CUT);
                    let cut = if shares.marked >= TRIAL_MARKS { CUT } else { BETA };
                    let tried = lowest.max(delivered.min(self.share * cut));
                    if tried < self.share {
                        let from = self.share;
                        let before = shares;
                        let ceiling = self.ceiling;
                        self.phase = if epoch.long {
                            Phase::Steady
                        } else {
                            Phase::Trial { from, lowest, before, first: true, ceiling }
                        };
                        self.set(now, tried);
                    }
                }
            }
            Phase::Start | Phase::Steady => {
                self.random = self.random.min(shares.lost + self.random / 2.0);
            }
        }
    }

    /// The share of the configured rate that sends this many packets in a round trip.
    fn share_of(&self, packets: f64, round_trip: Duration) -> f64 {
        per(packets * self.packet, round_trip)
    }

    fn add_witness(&mut self, now: Instant, peer: SocketAddr) {
        self.witnesses
            .retain(|&mut (other, at)| other != peer && now.saturating_since(at) < WITNESS_FOR);
        let _ = self.witnesses.try_push((peer, now));
    }

    fn is_witness(&self, now: Instant, peer: SocketAddr) -> bool {
        self.witnesses_at(now).any(|witness| witness == peer)
    }

    fn witnesses_at(&self, now: Instant) -> impl Iterator<Item = SocketAddr> {
        let lately = move |&(_, at): &(_, Instant)| now.saturating_since(at) < WITNESS_FOR;
        self.witnesses.iter().copied().filter(lately).map(|(peer, _)| peer)
    }

    /// Returns whether a lower rate may apply to all messages in flight.
    fn applies(&self, now: Instant, alone: impl Fn(&dyn Fn(SocketAddr) -> bool) -> bool) -> bool {
        self.has_enough_witnesses(now) || alone(&|peer| self.is_witness(now, peer))
    }

    /// Returns whether witnesses are at enough addresses that one or two that lie cannot cause the limit.
    fn has_enough_witnesses(&self, now: Instant) -> bool {
        let mut known = ArrayVec::<_, MAX_WITNESSES>::new();
        for witness in self.witnesses_at(now).filter(|witness| !is_alias(witness)) {
            if !known.contains(&witness.ip()) {
                known.push(witness.ip());
            }
        }
        known.len() >= MIN_WITNESS_ADDRESSES
    }

    fn set(&mut self, now: Instant, share: f64) {
        if share < self.share {
            self.lowered += 1;
            self.ceiling = self.share;
        }
        self.share = share;
        self.changes += 1;
        self.changed_at = now;
        self.round = Round::default();
        self.epoch = Epoch { began: now, ..Epoch::default() };
    }

    fn forget(&mut self, now: Instant) {
        self.phase = Phase::Idle { least: 0.0 };
        self.random = 0.0;
        self.unqueued = 0.0;
        self.ceiling = 1.0;
        self.epoch = Epoch::default();
        self.trial_wait = FIRST_TRIAL_WAIT;
        self.trial_at = now;
        self.witnesses.clear();
    }
}

/// `amount` in each second, if it is that in each round trip.
fn per(amount: f64, round_trip: Duration) -> f64 {
    amount / round_trip.as_secs_f64().max(1e-6)
}

impl RoundTrips {
    /// Whether the last one was long because packets queue, if it is known.
    fn are_long(&self) -> Option<bool> {
        let threshold = self.shortest + self.shortest / QUEUE_SHARE + QUEUE_DELAY;
        self.last.map(|last| last > threshold)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_rises_with_long_packets_as_it_does_with_short_ones() {
        const RATE: f64 = 10e9;
        const ROUND_TRIP: Duration = Duration::from_millis(1);
        let peer = SocketAddr::from(([10, 0, 0, 2], 7000));
        for mtu in [1_500, 9_000] {
            // As for a peer to which nothing longer has been tried.
            let mut limit = RateLimit::new(RATE, 1_500);
            let mut now = Instant::from_nanos(10_000_000_000);
            limit.on_message(now, peer);
            assert!(limit.on_train(now, Some(ROUND_TRIP)));
            let first = limit.share;
            for _ in 0..3 {
                now += ROUND_TRIP;
                let bytes = limit.share * RATE * ROUND_TRIP.as_secs_f64() / 8.0;
                let due = (bytes / mtu as f64) as u32;
                let report = PathReport { due, ..PathReport::default() };
                let [smoothed, shortest] = [ROUND_TRIP; 2];
                let trips = RoundTrips { last: Some(ROUND_TRIP), smoothed, shortest, mtu };
                limit.on_report(now, peer, &report, &trips, |_| true);
            }
            assert_eq!(limit.share, first * 8.0, "packets of {mtu} bytes");
        }
    }
}
