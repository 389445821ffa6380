//! The queue of pulls: it decides of which message the next symbol is pulled, and when.

use super::Receiver;
use super::answers::{Answer, Verdict};
use super::incoming::Incoming;
use super::pulling::PullCredit;
use super::quota::HostKey;
use super::turns::{Key, Turns};
use crate::config::{Parameters, PullOrder};
use crate::proto::fair_queue::LONGEST_WAITING_EVERY;
use crate::proto::indexed::Indexed;
use crate::proto::layout::Layout;
use crate::proto::send::headers_to;
use crate::rate::{Downlink, Share};
use crate::time::Instant;
use crate::wire::Capabilities;
use crate::wire::answer::NONE_ACKNOWLEDGED;
use crate::wire::keys::HEADER_TAG_LEN;
use crate::wire::symbol::SYMBOL_OVERHEAD;
use core::time::Duration;

/// Packets that may wait in a tiny queue in front of a symbol that a probe overtakes.
const GRACE_PACKETS: usize = 32;
/// The shortest grace period, which allows for imprecise timers of hosts.
const MIN_GRACE: Duration = Duration::from_micros(100);
/// Bytes of an Ethernet frame besides the IP packet: header, checksum, preamble and gap. They
/// count, because the pulled packets of all senders must fit the link.
const FRAME: usize = 14 + 4 + 8 + 12;

/// What a symbol costs a message in its turn: about as many bytes as it takes on the link.
const fn cost(layout: &Layout) -> u64 {
    (SYMBOL_OVERHEAD + layout.symbol_size() + FRAME) as u64
}

/// The messages of all sessions of which a symbol may be pulled. There is one queue, because they
/// share the link (SCDP, section IV-C). Without regard to hosts, 600 probes of messages that never came
/// delayed a message of 93 KB by 396 ms.
#[derive(Debug)]
pub(super) struct PullQueue {
    downlink: Share,
    /// How long symbols sent before a probe may arrive after it.
    grace: Duration,
    wanting: Turns,
    /// The same by the number of symbols missing from each, if the shortest goes first.
    shortest: Option<Indexed<Key, u32>>,
    pulled: u64,
    /// The number of pulled messages that are being received.
    messages: usize,
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
            grace: downlink.time_of(GRACE_PACKETS * packet).max(MIN_GRACE),
            downlink,
            wanting: Turns::default(),
            shortest: (config.pull_order == PullOrder::ShortestFirst).then(Indexed::default),
            pulled: 0,
            messages: 0,
            timers: Indexed::default(),
        }
    }

    /// How long symbols sent before a probe may arrive after it.
    pub(super) const fn grace(&self) -> Duration {
        self.grace
    }

    /// When the next symbol may be pulled; `None` if no message wants one.
    pub(super) fn ready_at(&self) -> Option<Instant> {
        (!self.wanting.is_empty()).then(|| self.downlink.ready_at())
    }

    /// The message of which the next symbol is pulled.
    fn next(&self) -> Option<Key> {
        let turn = self.wanting.first()?;
        let is_fair = (self.pulled + 1).is_multiple_of(LONGEST_WAITING_EVERY);
        let shortest = self.shortest.as_ref().filter(|_| !is_fair);
        Some(shortest.and_then(Indexed::first).unwrap_or(turn))
    }

    /// Records that a symbol of a message is pulled.
    fn on_pulled(&mut self, key: Key, layout: &Layout) {
        self.pulled += 1;
        self.wanting.serve(key, cost(layout));
    }

    /// Records that a message begins.
    pub(super) fn begin(&mut self, incoming: &Incoming) {
        self.messages += usize::from(incoming.pulling.is_some());
    }

    /// Records that an unscheduled symbol of a message has arrived, which takes as many bytes on the link.
    // Those of a message that is alone are not charged: that would idle the link for up to a window. With
    // several messages, they would never leave the queue in front of the link, since one symbol is pulled for
    // each that arrives. Behind ten windows of another peer, 93 KB took twice as long.
    pub(super) fn on_unscheduled(&mut self, now: Instant, host: HostKey, key: Key, bytes: usize) {
        let bytes = bytes + FRAME;
        if self.messages > 1 && self.downlink.charge_unscheduled(now, bytes) {
            self.wanting.postpone(host, key, bytes as u64);
        }
    }

    /// Updates the turn and the timer of a message of `host`.
    pub(super) fn update(
        &mut self,
        incoming: &mut Incoming,
        host: HostKey,
        rto: Duration,
        key: Key,
    ) {
        let mut due = incoming.probed.map(|probed| probed.due);
        if let Some((pulling, layout)) = incoming.pulling() {
            // `None` means that no symbol of it may be pulled.
            let missing = pulling.missing(layout);
            match missing {
                Some(_) => self.wanting.enter(host, key, cost(layout)),
                None => self.wanting.remove(key),
            }
            if let Some(shortest) = &mut self.shortest {
                shortest.set(key, missing);
            }
            let stalls_at = pulling.stalls_at(rto, missing.is_some());
            due = [stalls_at, pulling.probes_due()].into_iter().flatten().min();
        }
        self.timers.hasten(key, due);
    }

    /// Removes a message that is no longer pulled.
    pub(super) fn leave(&mut self, incoming: &mut Incoming, key: Key) {
        self.wanting.remove(key);
        if let Some(shortest) = &mut self.shortest {
            shortest.remove(key);
        }
        self.timers.remove(key);
        self.messages -= usize::from(incoming.pulling.take().is_some());
        incoming.probed = None;
    }

    /// Panics unless the queue agrees with `messages`, all messages that are pulled or have a probe
    /// to answer, with their hosts.
    pub(super) fn check_invariants<'a>(
        &self,
        messages: impl Iterator<Item = (HostKey, Key, &'a Incoming)>,
    ) {
        let mut wanting = 0;
        let mut pulled = 0;
        let mut timers = 0;
        for (host, key, incoming) in messages {
            timers += usize::from(self.timers.contains(key));
            let Some(pulling) = &incoming.pulling else { continue };
            pulled += 1;
            pulling.check_invariants(&incoming.layout);
            let missing = pulling.missing(&incoming.layout);
            assert_eq!(self.wanting.host(key), missing.map(|_| host), "{key:?}: its turn");
            if let Some(shortest) = &self.shortest {
                assert_eq!(shortest.rank(key), missing, "{key:?}: its rank");
            }
            wanting += usize::from(missing.is_some());
        }
        assert_eq!(self.messages, pulled, "messages that are pulled");
        assert_eq!(self.wanting.len(), wanting, "messages in the queue");
        if let Some(shortest) = &self.shortest {
            assert_eq!(shortest.len(), wanting, "messages by their ranks");
        }
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
        let host = HostKey::of(session.peer.ip());
        let headers = headers_to(&session.own);
        let is_tagged = session.capabilities.has(Capabilities::TRIM);
        let header_tag = if is_tagged { HEADER_TAG_LEN } else { 0 };
        let incoming = session.window.receiving(id)?;
        let packet = incoming.packet_len();
        let (pulling, layout) = incoming.pulling()?;
        let credit = pulling.pull(now, layout)?;
        self.pulls.on_pulled(key, layout);
        self.pulls.update(incoming, host, rto, key);
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
        let host = HostKey::of(session.peer.ip());
        let incoming = session.window.receiving(id)?;
        if let Some((pulling, layout)) = incoming.pulling() {
            self.counters.symbols_lost += u64::from(pulling.on_probes_due(now));
            // The timer is not moved by every symbol, so it may expire early.
            let may_pull = pulling.missing(layout).is_some();
            if pulling.stalls_at(rto, may_pull).is_some_and(|at| at <= now) {
                self.counters.symbols_lost += u64::from(pulling.on_stall(now));
            }
        }
        self.pulls.update(incoming, host, rto, key);
        Some(())
    }
}
