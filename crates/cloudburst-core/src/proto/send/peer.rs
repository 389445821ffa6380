//! The state of one peer at a sender: paths, session, handshake, round-trip time.

use super::checks::LostChecks;
use super::liveness::{Liveness, Refusals, Resume};
use super::moving::Moving;
use super::path_mtu::PathMtu;
use super::rtt::Rtt;
use super::transfer::{SentLog, Transfer};
use crate::error::{LocalError, Outcome, Rejection};
use crate::id::{ConnectId, Incarnation, MessageId};
use crate::naming::{address_of, is_alias};
use crate::path::{PathSet, Via};
use crate::proto::limits::{
    IDLE_AFTER, KEPT_ARRIVALS, LEFT_FOR, STALE_AFTER, UNCONFIRMED_STALE_AFTER,
};
use crate::proto::session::{Opening, Remote};
use crate::proto::stats::SentTo;
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys, HeaderKey};
use crate::wire::packet::VERSION;
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Arrivals, Capabilities, Role};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Messages to a peer at a time by which it is not kept busy.
const FEW_MESSAGES: usize = 64;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) paths: PathSet,
    /// Bytes of the IP, UDP and outer headers of a packet to it, whatever its path.
    pub(super) headers: usize,
    /// The routes by which its packets arrive, if it has opened the session.
    pub(super) routes: Vec<Via>,
    /// Whether it is reached by those routes alone, regardless of the path map.
    pub(super) by_routes: bool,
    /// Whether the path map has paths to the peer.
    pub(super) reachable: bool,
    /// The address at which it is, with the port that it is known by: that of its name, until it has
    /// moved.
    pub(super) address: SocketAddr,
    /// Where it may have moved, if anywhere.
    pub(super) moving: Option<Box<Moving>>,
    /// The port at which it accepts messages: the one that it is known by, or the one that it has
    /// announced.
    pub(super) port: u16,
    /// The number of ports at which it does, as far as announced: `port` and those right after it.
    pub(super) ports: u16,
    /// The address by which it knows this end, if this end has several.
    pub(super) local: Option<IpAddr>,
    /// How many times its paths were regenerated because it did not answer.
    pub(super) path_generation: u32,
    pub(super) rtt: Rtt,
    pub(super) mtu: PathMtu,
    /// The number of rate changes when the packets that are evidence about the paths were sent.
    pub(super) rate_changes: u64,
    /// The counts; the rest of it is filled in by [`stats`](Self::stats).
    pub(super) counts: SentTo,
    /// The number of HELLOs sent when the host last did not take one, and why.
    pub(super) not_sent: Option<(u64, LocalError)>,
    pub(super) session: Option<OpenSession>,
    pub(super) opening: Option<Opening>,
    /// Unfinished messages, and how many messages to the peer were accepted before each.
    messages: BTreeMap<MessageId, usize>,
    /// The number of messages ever accepted for the peer.
    accepted: usize,
    /// The most recent messages of which packets were missing when they were delivered.
    missing: VecDeque<(MessageId, SentLog, usize)>,
    /// The highest packet number that was acknowledged, and when that rose.
    acknowledged: (u64, Instant),
    /// Bytes of the messages that are not finished.
    pub(super) bytes: usize,
    /// Messages that wait until it has capacity.
    pub(super) paused: BTreeSet<MessageId>,
    /// Connects that wait for the session.
    pub(super) connects: BTreeSet<ConnectId>,
    pub(super) liveness: Liveness,
    /// When it was met, or was last found to be in use by the receiving half.
    pub(super) last_used: Instant,
    /// Whether a call depends on it.
    pub(super) watched: bool,
    pub(super) lost_checks: LostChecks,
    pub(super) refusals: Refusals,
}

#[derive(Debug)]
pub(super) struct OpenSession {
    pub(super) remote: Incarnation,
    /// The capabilities of the peer's receiving half beyond this version.
    pub(super) capabilities: Capabilities,
    pub(super) sealer: Sealer,
    /// Makes the header tags, if symbols carry them.
    pub(super) header_key: Option<HeaderKey>,
    pub(super) opener: Opener,
    pub(super) digest: DigestKey,
    /// Whether the receiver holds the session for good: it has answered a packet of it, or sent one
    /// in it.
    pub(super) confirmed: bool,
    /// Whether the receiver has answered a packet of it.
    pub(super) answered: bool,
    /// The number of the next packet when the peer first said that it is closing.
    // Of messages whose first packets have this number or a higher one it takes none. A number and
    // not a time: it holds however clocks have moved.
    closing_at: Option<u64>,
    /// Whether the peer is closing and shares the port that it is known by with others, one of which
    /// takes over.
    hands_over: bool,
    /// Whether the peer has ended it.
    ended: bool,
}

impl Peer {
    /// A peer that is known as `name`, to which packets leave from `local` and have `headers` bytes
    /// of headers.
    pub(super) fn new(
        now: Instant,
        paths: PathSet,
        headers: usize,
        mtu: PathMtu,
        name: SocketAddr,
        local: Option<IpAddr>,
    ) -> Self {
        Self {
            paths,
            headers,
            routes: Vec::new(),
            by_routes: false,
            reachable: true,
            address: address_of(name),
            moving: None,
            port: name.port(),
            local,
            ports: 1,
            path_generation: 0,
            rtt: Rtt::new(),
            mtu,
            rate_changes: 0,
            counts: SentTo::default(),
            not_sent: None,
            session: None,
            opening: None,
            messages: BTreeMap::new(),
            accepted: 0,
            missing: VecDeque::new(),
            acknowledged: (0, Instant::ZERO),
            bytes: 0,
            paused: BTreeSet::new(),
            connects: BTreeSet::new(),
            liveness: Liveness::default(),
            last_used: now,
            watched: false,
            lost_checks: LostChecks::default(),
            refusals: Refusals::default(),
        }
    }

    /// The port that a handshake goes to and the intended responder, if the peer is known as
    /// `name`. `exhausted` says that enough attempts at the owner of the session have failed.
    ///
    /// If the session has a port of its own, or the peer has moved, the handshake goes to its owner
    /// there first, and no other endpoint may answer: once the owner is gone, another endpoint may have
    /// its place. After some attempts the handshake starts over, where the peer is known, with any
    /// endpoint that answers there. A peer behind an address translator has no address of its own:
    /// an endpoint that answers in its place is not the one that its alias names.
    pub(super) fn handshake_target(
        &self,
        name: &SocketAddr,
        exhausted: bool,
    ) -> (u16, Option<Incarnation>) {
        match &self.session {
            Some(session)
                if is_alias(name)
                    || (self.port != name.port() || self.has_moved(name))
                        && !exhausted
                        && !self.is_over() =>
            {
                (self.port, Some(session.remote))
            }
            _ => (name.port(), None),
        }
    }

    /// Whether the peer that is known as `name` is elsewhere.
    pub(super) fn has_moved(&self, name: &SocketAddr) -> bool {
        self.address.ip() != address_of(*name).ip()
    }

    /// Uses a new session from now on. The caller must schedule everything that waits for the peer.
    pub(super) fn install(
        &mut self,
        now: Instant,
        Remote { incarnation, capabilities }: Remote,
        flow: FlowKeys,
        confirmed: bool,
    ) {
        self.counts.session_since = Some(now);
        // Packet numbers start over.
        self.missing.clear();
        self.acknowledged = (0, now);
        self.session = Some(OpenSession {
            remote: incarnation,
            capabilities,
            header_key: capabilities.has(Capabilities::TRIM).then(|| flow.symbols.header_key()),
            sealer: Sealer::new(flow.symbols),
            opener: Opener::new(flow.answers),
            digest: flow.digest,
            confirmed,
            answered: false,
            closing_at: None,
            hands_over: false,
            ended: false,
        });
        let _ = self.heard(now);
    }

    /// Handles an answer to a packet that was sent `age` ago, if that is known. Returns which
    /// messages may continue because of it.
    #[must_use]
    pub(super) fn answered(&mut self, now: Instant, age: Option<Duration>) -> Resume {
        self.counts.last_heard = Some(now);
        let (resumed, is_confirmed) = self.liveness.answered(age.map(|age| now - age));
        if let Some(session) = &mut self.session {
            session.answered = true;
            session.confirmed |= is_confirmed;
        }
        resumed
    }

    /// Records proof that the peer has the session. Returns which messages may continue because of
    /// that.
    #[must_use]
    pub(super) fn heard(&mut self, now: Instant) -> Resume {
        self.counts.last_heard = Some(now);
        self.liveness.heard(now)
    }

    /// Records the report of the peer, which is known as `name`, that it is closing.
    pub(super) fn on_closing(&mut self, name: &SocketAddr) {
        let shares_port = self.port != name.port() && !is_alias(name);
        if let Some(session) = &mut self.session {
            let next = session.sealer.next_number();
            session.closing_at.get_or_insert(next);
            session.hands_over = shares_port;
        }
    }

    /// Records the peer's report that it has ended the session. Returns whether that is new.
    pub(super) fn end_session(&mut self) -> bool {
        self.liveness.unverify();
        let Some(session) = &mut self.session else { return false };
        let next = session.sealer.next_number();
        session.closing_at.get_or_insert(next);
        !core::mem::replace(&mut session.ended, true)
    }

    /// Whether the session is over, although it may still have outcomes to tell: the next one is with
    /// another incarnation.
    pub(super) fn is_over(&self) -> bool {
        let verified = self.liveness.is_verified();
        self.session
            .as_ref()
            .is_some_and(|session| session.ended || session.hands_over && !verified)
    }

    /// Whether another endpoint takes over from the peer, which is closing: no message begins in the
    /// session.
    pub(super) fn hands_over(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.hands_over)
    }

    /// Whether the peer's incarnation certainly neither delivered the message nor will.
    pub(super) fn rules_out(&self, role: Role, transfer: &Transfer) -> bool {
        let closing_at = self.session.as_ref().and_then(|session| session.closing_at);
        // A closing endpoint still takes responses and withdrawals.
        let is_refused = matches!(role, Role::Plain | Role::Request)
            && closing_at.is_some_and(|at| transfer.first_number >= at);
        // Probes carry nothing that could be delivered.
        transfer.packets == 0 || !transfer.has_begun() || is_refused
    }

    /// Records the peer's report that it has received a packet of the session that was sent after
    /// `requested_at`. Returns which messages may continue because of that.
    #[must_use]
    pub(super) fn confirm_alive(&mut self, now: Instant, requested_at: Instant) -> Resume {
        self.counts.last_heard = Some(now);
        if let Some(session) = &mut self.session {
            session.confirmed = true;
        }
        self.liveness.heard(requested_at)
    }

    /// Marks the session as unverified until a handshake confirms it, if the peer has not been heard
    /// from for too long. Returns whether it was verified until now: messages under way must then
    /// wait, too.
    pub(super) fn check_stale(&mut self, now: Instant) -> bool {
        let limit = if self.is_confirmed() { STALE_AFTER } else { UNCONFIRMED_STALE_AFTER };
        now.saturating_since(self.liveness.last_heard()) > limit && self.liveness.unverify()
    }

    pub(super) fn push_message(&mut self, id: MessageId) {
        self.messages.insert(id, self.accepted);
        self.accepted += 1;
    }

    pub(super) fn finish_message(&mut self, id: MessageId, outcome: &Outcome) {
        let counts = &mut self.counts;
        match outcome {
            Outcome::Delivered(receipt) => {
                counts.delivered += 1;
                counts.bytes_delivered += receipt.bytes as u64;
                counts.source_symbols += receipt.source_symbols as u64;
            }
            Outcome::Rejected(_) => counts.rejected += 1,
            Outcome::Unknown(_) => counts.unknown += 1,
        }
        self.paused.remove(&id);
        self.messages.remove(&id);
    }

    /// Remembers which packets of a message were missing when it was delivered.
    pub(super) fn keep_missing(&mut self, id: MessageId, mut log: SentLog, capacity: usize) {
        log.shrink();
        if self.missing.len() == KEPT_ARRIVALS {
            self.missing.pop_front();
        }
        self.missing.push_back((id, log, capacity));
    }

    /// Handles an answer to a packet of a message that was already delivered.
    pub(super) fn on_late_arrivals(
        &mut self,
        now: Instant,
        id: MessageId,
        acknowledged: u64,
        arrivals: impl ExactSizeIterator<Item = Arrivals>,
    ) {
        let known = self.missing.iter_mut().find(|(known, ..)| *known == id);
        if let Some((_, log, capacity)) = known {
            log.on_report(now, acknowledged, *capacity, arrivals, &mut self.paths);
        }
    }

    /// Whether the receiver holds the session for good.
    pub(super) fn is_confirmed(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.confirmed)
    }

    /// Whether the session is confirmed, and its peer answers.
    pub(super) fn is_connected(&self) -> bool {
        self.liveness.is_responsive() && self.is_confirmed() && !self.hands_over()
    }

    /// Whether a message may send bursts, as far as the peer's liveness is concerned.
    pub(super) fn lets_burst(&self, transfer: &Transfer) -> bool {
        if self.liveness.is_responsive() {
            return transfer.has_begun() || !self.hands_over();
        }
        self.liveness.is_unresponsive() && transfer.is_endless() && transfer.has_begun()
    }

    /// Why no session was established by a deadline, as far as that is known.
    pub(super) fn unreached_reason(&self) -> Rejection {
        let local = self.local_error().map(Rejection::Local);
        local.or_else(|| self.answer()).unwrap_or(Rejection::NoAnswer)
    }

    /// Why the host did not take the last HELLO; `None` if it did.
    pub(super) fn local_error(&self) -> Option<LocalError> {
        let (hellos, error) = self.not_sent?;
        (hellos == self.counts.handshakes_sent).then_some(error)
    }

    /// The rejection that its answers in the handshake under way amount to, if any.
    fn answer(&self) -> Option<Rejection> {
        let opening = self.opening.as_ref()?;
        match opening.other_version {
            Some(theirs) => Some(Rejection::OtherVersion { ours: VERSION, theirs }),
            None => opening.invitation.as_ref().map(|_| Rejection::NotAccepted),
        }
    }

    /// The traffic sent to it, and the outcomes.
    pub(super) fn stats(&self) -> SentTo {
        SentTo {
            round_trip: self.rtt.smoothed(),
            mtu: self.mtu.size,
            unfinished: self.messages.len(),
            ..self.counts
        }
    }

    /// Bytes of the shortest packets that are tried, if they do not arrive though shorter ones do.
    pub(super) fn too_narrow(&self) -> Option<usize> {
        self.mtu.is_too_narrow.then_some(self.mtu.floor())
    }

    /// Messages that are not finished, the oldest first: they have waited longest.
    pub(super) fn unfinished(&self) -> Vec<MessageId> {
        self.messages.keys().copied().collect()
    }

    /// Records that packet `number` was acknowledged.
    pub(super) fn on_acknowledged(&mut self, now: Instant, number: u64) {
        if number > self.acknowledged.0 {
            self.acknowledged = (number, now);
        }
    }

    /// Until when the answer to packet `number` may only be late: the peer works through what many
    /// messages have sent it, and has acknowledged none of the packets after this one.
    // Each of 1,000 calls at once was otherwise sent again while the receiver answered the ones before.
    pub(super) fn is_working_until(&self, number: u64) -> Option<Instant> {
        let (newest, at) = self.acknowledged;
        (self.messages.len() > FEW_MESSAGES && number > newest).then(|| at + self.rtt.rto())
    }

    /// How many symbols a wait may grant to a message: while nothing was answered in the session, few at
    /// first, because a peer that many others begin with at once is only late.
    // With one symbol for each of 16 paths, each of 300 first calls at once took eight packets and more.
    pub(super) fn grant_limit(&self, transfer: &Transfer) -> u32 {
        let answered = self.session.as_ref().is_none_or(|session| session.answered);
        if answered { u32::MAX } else { transfer.cautious_grant() }
    }

    /// The number of messages and connects that are not finished.
    pub(super) fn started(&self) -> usize {
        self.messages.len() + self.connects.len()
    }

    /// The oldest message that is not finished.
    pub(super) fn low_watermark(&self) -> Option<MessageId> {
        self.messages.keys().next().copied()
    }

    /// The number of messages, counted from the oldest unfinished one.
    pub(super) fn span(&self) -> usize {
        self.messages.values().next().map_or(0, |before| self.accepted - before)
    }

    pub(super) fn has_no_messages(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether nothing waits for the peer: no message, no connect and no call.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.connects.is_empty() && !self.watched
    }

    /// When the peer is to be forgotten, if nothing waits for it until then.
    pub(super) fn forget_at(&self) -> Option<Instant> {
        let last = self.liveness.last_heard().max(self.last_used);
        let after = if self.has_ended() { LEFT_FOR } else { IDLE_AFTER };
        self.is_idle().then_some(last + after)
    }

    /// Whether the peer has said that it has ended the session.
    pub(super) fn has_ended(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.ended)
    }

    /// When the peer, or the state remembered of it, next needs attention.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let liveness = self.liveness.wake_at(self.rtt.rto());
        [liveness, self.rtt.wake_at()].into_iter().flatten().min()
    }
}
