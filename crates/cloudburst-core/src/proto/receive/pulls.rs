//! The queue of pulls: it decides of which message the next symbol is pulled, and when.

use super::Receiver;
use super::answers::{Answer, Verdict};
use super::incoming::Incoming;
use super::pulling::PullCredit;
use crate::config::{Parameters, PullOrder};
use crate::id::{MessageId, SessionId};
use crate::proto::fair_queue::FairQueue;
use crate::proto::indexed::Indexed;
use crate::proto::send::headers_to;
use crate::rate::{Downlink, Share};
use crate::time::Instant;
use crate::wire::Capabilities;
use crate::wire::answer::NONE_ACKNOWLEDGED;
use crate::wire::keys::HEADER_TAG_LEN;
use core::time::Duration;

/// Packets that may wait in a tiny queue in front of a symbol that a probe overtakes.
const GRACE_PACKETS: usize = 32;
/// The shortest grace period, which allows for imprecise timers of hosts.
const MIN_GRACE: Duration = Duration::from_micros(100);
/// Bytes of an Ethernet frame besides the IP packet: header, checksum, preamble and gap. They
/// count, because the pulled packets of all senders must fit the link.
const FRAME: usize = 14 + 4 + 8 + 12;

/// The name of a pulled message.
pub(super) type Key = (SessionId, MessageId);

/// The messages of all sessions of which a symbol may be pulled. There is one queue, because they
/// share the link (SCDP, section IV-C).
#[derive(Debug)]
pub(super) struct PullQueue {
    order: PullOrder,
    downlink: Share,
    /// How long symbols sent before a probe may arrive after it.
    grace: Duration,
    /// Ranked by the number of symbols missing from each.
    wanting: FairQueue<Key, u32>,
    /// When messages stall, or their probes are due.
    pub(super) timers: Indexed<Key, Instant>,
}

impl PullQueue {
    pub(super) fn new(config: &Parameters) -> Self {
        let packet = config.usual_mtu() + FRAME;
        let downlink = match &config.downlink {
            Some(downlink) => downlink.join(packet),
            None => Downlink::new((config.capacity as f64 * config.rate) as u64).join(packet),
        };
        Self {
            order: config.pull_order,
            grace: downlink.time_of(GRACE_PACKETS * packet).max(MIN_GRACE),
            downlink,
            wanting: FairQueue::default(),
            timers: Indexed::default(),
        }
    }

    /// How long symbols sent before a probe may arrive after it.
    pub(super) const fn grace(&self) -> Duration {
        self.grace
    }

    /// When the next symbol may be pulled; `None` if no message wants one.
    pub(super) fn ready_at(&self) -> Option<Instant> {
        (!self.wanting.ranked.is_empty()).then(|| self.downlink.ready_at())
    }

    /// The message of which the next symbol is pulled.
    fn next(&mut self) -> Option<Key> {
        match self.order {
            PullOrder::ShortestFirst => self.wanting.next(),
            PullOrder::RoundRobin => self.wanting.longest_waiting(),
        }
    }

    /// Updates the rank and the timer of a message.
    pub(super) fn update(&mut self, incoming: &mut Incoming, rto: Duration, key: Key) {
        let mut due = incoming.probed.map(|probed| probed.due);
        if let Some((pulling, layout)) = incoming.pulling() {
            // `None` means that no symbol of it may be pulled.
            let missing = pulling.missing(layout);
            self.wanting.set(key, missing);
            let stalls_at = pulling.stalls_at(rto, missing.is_some());
            due = [stalls_at, pulling.probes_due()].into_iter().flatten().min();
        }
        self.timers.hasten(key, due);
    }

    /// Removes a message that is no longer pulled.
    pub(super) fn leave(&mut self, incoming: &mut Incoming, key: Key) {
        self.wanting.set(key, None);
        self.timers.remove(key);
        incoming.pulling = None;
        incoming.probed = None;
    }

    /// Panics unless the queue agrees with `messages`, all messages that are pulled or have a probe
    /// to answer.
    pub(super) fn check_invariants<'a>(&self, messages: impl Iterator<Item = (Key, &'a Incoming)>) {
        let mut ranked = 0;
        let mut timers = 0;
        for (key, incoming) in messages {
            timers += usize::from(self.timers.contains(key));
            let Some(pulling) = &incoming.pulling else { continue };
            pulling.check_invariants(&incoming.layout);
            let missing = pulling.missing(&incoming.layout);
            assert_eq!(self.wanting.ranked.rank(key), missing, "{key:?}: its rank");
            ranked += usize::from(missing.is_some());
        }
        assert_eq!(self.wanting.ranked.len(), ranked, "messages in the queue");
        assert_eq!(self.timers.len(), timers, "timers of messages that are pulled");
    }
}

impl Receiver {
    /// Pulls as many symbols as the link carries by now.
    pub(super) fn pull(&mut self, now: Instant) {
        while self.pulls.ready_at().is_some_and(|at| at <= now)
            && let Some(key) = self.pulls.next()
        {
            if self.pull_one(now, key).is_none() {
                break;
            }
        }
    }

    /// Pulls one symbol of a message.
    fn pull_one(&mut self, now: Instant, key: Key) -> Option<()> {
        let (name, id) = key;
        let session = self.sessions.get_mut(&name)?;
        let rto = session.pull_round_trip.rto();
        let headers = headers_to(&session.own);
        let is_tagged = session.capabilities.has(Capabilities::TRIM);
        let header_tag = if is_tagged { HEADER_TAG_LEN } else { 0 };
        let incoming = session.window.receiving(id)?;
        let packet = incoming.packet_len();
        let (pulling, layout) = incoming.pulling()?;
        let credit = pulling.pull(now, layout)?;
        self.pulls.wanting.served(key);
        self.pulls.update(incoming, rto, key);
        // Openings are not charged. They leave the queue of an incast full, which loses 17 of 400
        // pulled symbols, but to charge them would idle the link for up to a window after each
        // message that is alone.
        self.pulls.downlink.charge(now, packet + header_tag + headers + FRAME);
        let arrivals = incoming.arrivals.report();
        if !self.raise_pending_pull(name, id, credit) {
            let PullCredit { block, credit, fin } = credit;
            let verdict = Verdict::Pull { credit, fin, arrivals };
            let answer = Answer { message: id, block, acknowledged: NONE_ACKNOWLEDGED, verdict };
            self.answer(name, None, answer, packet);
        }
        Some(())
    }

    /// Handles stalls and overdue probes.
    pub(super) fn handle_pull_timeout(&mut self, now: Instant) {
        while let Some(key) = self.pulls.timers.pop_due(now) {
            self.on_pull_timeout(now, key);
            let (name, id) = key;
            self.answer_probe(now, name, id);
        }
        self.pull(now);
    }

    fn on_pull_timeout(&mut self, now: Instant, key: Key) -> Option<()> {
        let (name, id) = key;
        let session = self.sessions.get_mut(&name)?;
        let rto = session.pull_round_trip.rto();
        let incoming = session.window.receiving(id)?;
        if let Some((pulling, layout)) = incoming.pulling() {
            self.counters.symbols_lost += u64::from(pulling.on_probes_due(now));
            // The timer is not moved by every symbol, so it may expire early.
            let may_pull = pulling.missing(layout).is_some();
            if pulling.stalls_at(rto, may_pull).is_some_and(|at| at <= now) {
                self.counters.symbols_lost += u64::from(pulling.on_stall(now));
            }
        }
        self.pulls.update(incoming, rto, key);
        Some(())
    }
}
