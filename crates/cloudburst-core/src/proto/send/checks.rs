//! Checks: a HELLO in the session with a peer, which an ALIVE with its nonce answers.
//!
//! A check is the one probe of a peer outside of its messages and of the handshake that finds out
//! whether it holds the session, which is in [`Opening`](crate::proto::session::Opening). Its nonce
//! is unpredictable and its HELLO and ALIVE are sealed, so the answer proves that the peer itself
//! has received the packet: at that address, and in that length. What it proves is the [`Purpose`],
//! whose owner begins the check by [`Sender::check`] and learns how it ended in
//! [`Sender::on_check_ended`], which calls the owner.
//!
//! HELLOs of checks leave by the queue of all HELLOs: the first copy at once, further ones within the
//! share of repeated HELLOs. A check without an answer is repeated after one or two RTOs, then after twice
//! as long, and so on, and is lost after the last wait.

use super::hellos::{CheckId, HelloOf, HelloRank};
use super::{Sender, Timer};
use crate::id::PathId;
use crate::naming::Naming;
use crate::path::Via;
use crate::proto::limits::{HANDSHAKE_FOR, IDLE_AFTER};
use crate::time::Instant;
use crate::wire::handshake::HELLO_LEN;
use core::time::Duration;
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The maximum number of checks of one peer under way, those aside that nobody waits for: there is one of
/// these for each path at most.
const MAX_OF_PEER: usize = 16;
/// The shortest wait for an answer: a host may be busy with something else for some milliseconds.
const MIN_WAIT: Duration = Duration::from_millis(2);
/// The longest wait for an answer.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Lost checks in a row after which a peer is gone: about a minute.
// Most outages are shorter. Checks are counted and not seconds, because this host may have slept meanwhile.
pub(super) const MAX_LOST: u32 = 12;
/// The time that a lost check lasts at least.
const LOST_GRAIN: Duration = Duration::from_secs(4);

/// What a check finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Whether a packet of `len` bytes, headers not included, arrives by `path`. The HELLO has that
    /// length.
    Mtu { len: usize, path: PathId },
    /// Whether the peer receives where this route leads: at an address from which packets of it have
    /// arrived, or by a path of our own. All copies leave by that route, and so do their answers.
    Address(Via),
    /// Whether the peer receives at the address at which it is, when another one is checked.
    Present,
    /// Nothing more than whether the peer holds the session: the packet itself matters, because it
    /// shows the peer where this endpoint is now, and keeps translators and firewalls on the way from
    /// forgetting it.
    KeepAlive,
    /// The same for one path: a translator keeps each apart.
    KeepPath { path: PathId },
}

impl Purpose {
    /// The number of copies of the HELLO.
    const fn copies(self) -> u32 {
        match self {
            Self::Address(_) | Self::Present => 6,
            // As RFC 8899, section 5.1.2: MAX_PROBES.
            Self::Mtu { .. } | Self::KeepPath { .. } => 3,
            // An interface that has just got its address may take a second until packets leave.
            Self::KeepAlive => 12,
        }
    }

    /// Bytes of the HELLO.
    pub(super) const fn hello_len(self) -> usize {
        match self {
            Self::Mtu { len, .. } => len,
            _ => HELLO_LEN,
        }
    }

    /// The path that the HELLO takes; `None` for another one each time.
    pub(super) const fn path(self) -> Option<PathId> {
        match self {
            Self::Mtu { path, .. } | Self::KeepPath { path } => Some(path),
            _ => None,
        }
    }

    /// Whether even the first copy waits for the share of repeated HELLOs: nobody waits for it, and
    /// it may go to thousands of peers at once.
    const fn is_patient(self) -> bool {
        matches!(self, Self::KeepAlive | Self::KeepPath { .. })
    }
}

/// How a check has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckEnd {
    /// The peer has received a copy of the HELLO.
    Answered,
    /// No copy was answered in time, or this host did not take it because of its length.
    Lost,
}

/// A check under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) purpose: Purpose,
    began_at: Instant,
    /// When the last copy was sent.
    sent_at: Instant,
    /// Copies sent.
    pub(super) sent: u32,
    /// Bytes that may still be sent, where the peer is not known to receive.
    pub(super) credit: usize,
}

impl Check {
    /// Records that a copy is being sent. Returns how many were sent before.
    pub(super) const fn on_sent(&mut self, now: Instant) -> u32 {
        let before = self.sent;
        self.sent_at = now;
        self.sent += 1;
        before
    }

    /// How long to wait for an answer to the last copy.
    pub(super) fn wait(&self, rto: Duration) -> Duration {
        // What waits for these is as urgent as a message.
        let first = match self.purpose {
            Purpose::Present => rto,
            Purpose::Address(_) => rto * 2,
            Purpose::Mtu { .. } | Purpose::KeepAlive | Purpose::KeepPath { .. } => {
                (rto * 2).max(MIN_WAIT)
            }
        };
        first.saturating_mul(1 << self.sent.saturating_sub(1).min(16)).min(MAX_WAIT)
    }

    /// Whether the first copy should have been answered by now.
    pub(super) fn is_overdue(&self, now: Instant, rto: Duration) -> bool {
        self.sent > 1 || self.sent == 1 && self.sent_at + self.wait(rto) <= now
    }

    fn is_outdated(&self, now: Instant) -> bool {
        now.saturating_since(self.began_at) > HANDSHAKE_FOR
    }
}

/// The checks under way, of all peers.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) under_way: BTreeMap<CheckId, Check>,
    /// The peer of the check with the nonce.
    by_nonce: HashMap<u64, SocketAddr>,
}

impl Checks {
    /// The checks of one peer.
    pub(super) fn of(&self, peer: SocketAddr) -> impl Iterator<Item = (CheckId, &Check)> {
        let [first, last] = [u64::MIN, u64::MAX].map(|nonce| CheckId { peer, nonce });
        self.under_way.range(first..=last).map(|(&id, check)| (id, check))
    }

    /// The peer and the purpose of the check with this nonce.
    pub(super) fn find(&self, nonce: u64) -> Option<(SocketAddr, Purpose)> {
        let &peer = self.by_nonce.get(&nonce)?;
        let check = self.under_way.get(&CheckId { peer, nonce })?;
        Some((peer, check.purpose))
    }

    /// Whether each check is found by its nonce, and nothing else is.
    pub(super) fn are_found(&self) -> bool {
        let is_found = |id: &CheckId| self.find(id.nonce).is_some_and(|(peer, _)| peer == id.peer);
        self.by_nonce.len() == self.under_way.len() && self.under_way.keys().all(is_found)
    }

    /// [`of`](Self::of), to change them.
    pub(super) fn of_mut(
        &mut self,
        peer: SocketAddr,
    ) -> impl Iterator<Item = (CheckId, &mut Check)> {
        let [first, last] = [u64::MIN, u64::MAX].map(|nonce| CheckId { peer, nonce });
        self.under_way.range_mut(first..=last).map(|(&id, check)| (id, check))
    }

    fn has_room_for(&self, peer: SocketAddr, purpose: Purpose) -> bool {
        let is_urgent = |(_, check): &(CheckId, &Check)| !check.purpose.is_patient();
        purpose.is_patient() || self.of(peer).filter(is_urgent).count() < MAX_OF_PEER
    }
}

/// Checks of a peer that were lost in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostChecks {
    count: u32,
    /// When the peer was last heard from before them.
    heard: Instant,
    counted_at: Instant,
}

impl LostChecks {
    pub(super) fn on_lost(&mut self, now: Instant, heard: Instant) {
        if heard > self.heard {
            *self = Self { heard, ..Self::default() };
        }
        // Several that were under way at once, by different paths, count as one.
        if now.saturating_since(self.counted_at) >= LOST_GRAIN {
            self.count += 1;
            self.counted_at = now;
        }
    }

    pub(super) fn is_gone(&self, heard: Instant) -> bool {
        heard <= self.heard && self.count >= MAX_LOST
    }
}

impl Sender {
    /// Begins a check of a peer in its session, unless one for the same purpose is under way.
    /// Returns whether one is under way now: not without a session, nor beyond a limit.
    ///
    /// [`on_check_ended`](Self::on_check_ended) tells the owner of the purpose how it ends, exactly
    /// once, unless it is [dropped](Self::drop_checks) before.
    pub(super) fn check(&mut self, now: Instant, address: SocketAddr, purpose: Purpose) -> bool {
        self.check_within(now, address, purpose, usize::MAX)
    }

    /// [`check`](Self::check) by HELLOs that have `credit` bytes at most together.
    pub(super) fn check_within(
        &mut self,
        now: Instant,
        address: SocketAddr,
        purpose: Purpose,
        credit: usize,
    ) -> bool {
        let peer = self.peers.get(&address).filter(|peer| !peer.is_over());
        if peer.is_none_or(|peer| peer.session.is_none()) {
            return false;
        }
        if self.checks.of(address).any(|(_, check)| check.purpose == purpose) {
            return true;
        }
        if !self.checks.has_room_for(address, purpose) {
            return false;
        }
        self.handshakes += 1;
        let nonce = u64::from_be_bytes(self.identity.seed.derive("check nonce", self.handshakes));
        let id = CheckId { peer: address, nonce };
        let check = Check { purpose, began_at: now, sent_at: now, sent: 0, credit };
        self.checks.under_way.insert(id, check);
        self.checks.by_nonce.insert(nonce, address);
        self.queue_check(now, id);
        true
    }

    /// Makes the next copy of a check due.
    fn queue_check(&mut self, now: Instant, id: CheckId) {
        let Some(check) = self.checks.under_way.get_mut(&id) else { return };
        if check.credit < check.purpose.hello_len() {
            // The next packet from there adds to the credit.
            check.on_sent(now);
            let rto = self.peers.get(&id.peer).map_or(MAX_WAIT, |peer| peer.rtt.rto());
            self.timers.set(Timer::Check(id), Some(now + check.wait(rto)));
            return;
        }
        let attempt = check.sent + 1 + u32::from(check.purpose.is_patient());
        self.hellos.due.set(HelloOf::Check(id), Some(HelloRank { attempt, since: now }));
    }

    /// Handles an authentic ALIVE. Returns whether it answers a check.
    pub(super) fn on_check_alive(&mut self, now: Instant, address: SocketAddr, nonce: u64) -> bool {
        let id = CheckId { peer: address, nonce };
        let Some(&check) = self.checks.under_way.get(&id) else { return false };
        if check.is_outdated(now) {
            self.end_check(now, id, CheckEnd::Lost);
            return true;
        }
        self.end_check(now, id, CheckEnd::Answered);
        if let Some(peer) = self.peers.get_mut(&address).filter(|peer| !peer.is_over()) {
            // With more than one copy, it is not known which was answered.
            if check.sent == 1 {
                peer.rtt.sample(now, now.saturating_since(check.sent_at));
            }
            let resumed = peer.confirm_alive(now, check.began_at);
            self.reschedule_peer(address);
            self.resume(now, address, resumed);
        }
        true
    }

    pub(super) fn check_timeout(&mut self, now: Instant, id: CheckId) {
        let Some(&check) = self.checks.under_way.get(&id) else { return };
        if check.sent < check.purpose.copies() && !check.is_outdated(now) {
            if check.purpose == Purpose::KeepAlive {
                self.unpin_if_gone(id.peer);
            }
            self.queue_check(now, id);
            if check.purpose == Purpose::Present && check.sent == 1 {
                self.on_present_checked(now, id.peer, false);
            }
        } else {
            self.end_check(now, id, CheckEnd::Lost);
        }
    }

    /// Records that this host did not take the HELLO of a check because it is too long: waiting for
    /// an answer, or sending another copy, is in vain.
    pub(super) fn on_check_too_long(&mut self, id: CheckId) {
        if let Some(check) = self.checks.under_way.get_mut(&id) {
            check.sent = check.purpose.copies();
            self.timers.set(Timer::Check(id), Some(Instant::ZERO));
        }
    }

    fn end_check(&mut self, now: Instant, id: CheckId, end: CheckEnd) {
        if let Some(check) = self.remove_check(id) {
            self.on_check_ended(now, id.peer, check.purpose, end);
        }
    }

    /// Ends the check of a peer for `purpose`, without telling its owner.
    pub(super) fn drop_check(&mut self, address: SocketAddr, purpose: Purpose) {
        let is_it = |(id, check): (CheckId, &Check)| (check.purpose == purpose).then_some(id);
        let id = self.checks.of(address).find_map(is_it);
        if let Some(id) = id {
            self.remove_check(id);
        }
    }

    fn remove_check(&mut self, id: CheckId) -> Option<Check> {
        let check = self.checks.under_way.remove(&id)?;
        self.checks.by_nonce.remove(&id.nonce);
        self.hellos.due.remove(HelloOf::Check(id));
        self.timers.remove(Timer::Check(id));
        Some(check)
    }

    /// Drops the checks of a peer that is forgotten, has a new session, or does not hold the old one.
    pub(super) fn drop_checks(&mut self, address: SocketAddr) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.mtu.on_checks_dropped();
        }
        if self.checks.under_way.is_empty() {
            return;
        }
        let ids: Vec<CheckId> = self.checks.of(address).map(|(id, _)| id).collect();
        for id in ids {
            self.remove_check(id);
        }
    }

    /// Tells the owner of a purpose how its check of a peer has ended.
    fn on_check_ended(
        &mut self,
        now: Instant,
        address: SocketAddr,
        purpose: Purpose,
        end: CheckEnd,
    ) {
        tracing::trace!(peer = %address, ?purpose, ?end, "check ended");
        match purpose {
            Purpose::Mtu { len, path } => self.on_mtu_probe_ended(now, address, len, path, end),
            Purpose::KeepAlive | Purpose::KeepPath { .. } => self.on_watch_ended(now, address, end),
            Purpose::Address(via) => self.on_address_checked(now, address, via, end),
            Purpose::Present => {
                self.on_present_checked(now, address, end == CheckEnd::Answered);
            }
        }
    }

    /// Checks all peers that it has work with or that may still hold the session, `heard` among them,
    /// because this endpoint's addresses have changed: the packets show where it is now.
    pub(in crate::proto) fn announce(&mut self, now: Instant, heard: &HashSet<SocketAddr>) {
        let concerned = self.peers.iter().filter(|&(address, peer)| {
            let is_recent = now.saturating_since(peer.liveness.last_heard()) < IDLE_AFTER;
            is_recent || !peer.is_idle() || heard.contains(address)
        });
        let mut addresses: Vec<SocketAddr> = concerned.map(|(&address, _)| address).collect();
        // Sorted, so that the order does not change from run to run.
        addresses.sort_unstable();
        for address in addresses {
            self.unpin_if_gone(address);
            // One that is under way may have been sent from an address that is gone.
            self.drop_check(address, Purpose::KeepAlive);
            self.check(now, address, Purpose::KeepAlive);
        }
    }

    /// Leaves the address that packets to a peer leave from to the system, if this host no longer has
    /// the one that the peer knows.
    fn unpin_if_gone(&mut self, address: SocketAddr) {
        let pinned = self.peers.get(&address).and_then(|peer| peer.local);
        let port = self.config.ports.first;
        if pinned.is_some_and(|ip| self.resolver.naming((ip, port).into()) != Naming::Own) {
            self.learn_local(address, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ListenPorts, Security};
    use crate::path::{Egresses, Via};
    use crate::proto::{Contents, SendOptions, Transceiver};
    use crate::rng::Seed;

    const PEER: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 7);

    const fn mtu(len: usize) -> Purpose {
        Purpose::Mtu { len, path: PathId(1) }
    }

    struct Pair {
        now: Instant,
        /// The one that checks, and its peer.
        ends: [Transceiver; 2],
        /// Bytes of the HELLOs of checks that were sent.
        hellos: Vec<usize>,
        /// The longest datagram that arrives.
        mtu: usize,
    }

    impl Pair {
        /// Two endpoints, with a session.
        fn new() -> Self {
            let ends = [1, 2].map(|host| {
                let security = Security::pre_shared([7; 32]);
                let seed = Seed::new([host; 32]);
                let map = Box::new(Egresses(2));
                let ports = ListenPorts::one(7);
                Transceiver::new(Config::default(), ports, &security, seed, map).unwrap()
            });
            let now = Instant::from_nanos(1_000_000_000);
            let mut pair = Self { now, ends, hellos: Vec::new(), mtu: 9_000 };
            pair.ends[0].send(now, PEER, vec![7; 100].into(), &SendOptions::default()).unwrap();
            pair.pass();
            assert_eq!(pair.ends[0].counters().sender.delivered, 1);
            pair
        }

        fn pass(&mut self) {
            let mut buffer = Vec::new();
            let mut from = 0;
            let mut silent = 0;
            while silent < 2 {
                silent += 1;
                while let Some(sent) = self.ends[from].poll_transmit(self.now, &mut buffer) {
                    silent = 0;
                    if matches!(sent.contents, Contents::Check { .. }) {
                        self.hellos.push(sent.len);
                    }
                    let remote = SocketAddr::from(([10, 0, 0, from as u8 + 1], 7));
                    for packet in buffer.chunks_mut(sent.segment_size) {
                        if packet.len() <= self.mtu {
                            let via = Via { remote, ..sent.via };
                            self.ends[1 - from].handle_datagram(self.now, via, packet);
                        }
                    }
                    buffer.clear();
                }
                from = 1 - from;
            }
        }

        fn check(&mut self, purpose: Purpose) -> bool {
            let begun = self.ends[0].sender.check(self.now, PEER, purpose);
            self.ends[0].check_invariants();
            begun
        }

        /// Runs for ten seconds.
        fn run(&mut self) {
            let until = self.now + Duration::from_secs(10);
            while self.now < until {
                self.pass();
                self.ends.iter().for_each(Transceiver::check_invariants);
                let next = self.ends.iter().filter_map(Transceiver::poll_timeout).min();
                self.now = next.unwrap_or(until).max(self.now + Duration::from_nanos(1));
                self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
            }
        }

        fn under_way(&self) -> usize {
            self.ends[0].sender.checks.under_way.len()
        }
    }

    #[test]
    fn a_hello_that_arrives_is_answered_and_ends_its_check() {
        let mut pair = Pair::new();
        assert!(pair.check(mtu(1_400)) && pair.check(mtu(1_400)));
        assert_eq!(pair.under_way(), 1, "one for each purpose");
        pair.pass();
        assert_eq!((pair.under_way(), &pair.hellos[..]), (0, &[1_400][..]));
        pair.run();
        assert_eq!(pair.hellos.len(), 1, "and it is not repeated");
    }

    #[test]
    fn a_check_without_an_answer_is_lost_after_a_few_copies() {
        let mut pair = Pair::new();
        pair.mtu = 1_399;
        assert!(pair.check(mtu(1_400)));
        pair.run();
        assert_eq!((pair.under_way(), &pair.hellos[..]), (0, &[1_400; 3][..]));
        pair.mtu = 0;
        pair.hellos.clear();
        assert!(pair.check(Purpose::KeepAlive));
        pair.run();
        // Some of the twelve would leave after the nonce is out of date.
        assert!(pair.under_way() == 0 && (8..=12).contains(&pair.hellos.len()));
        assert!(pair.hellos.iter().all(|len| *len == HELLO_LEN));
    }

    #[test]
    fn checks_are_bounded_and_need_a_session() {
        let mut pair = Pair::new();
        let checks = (0..20).filter(|more| pair.check(mtu(1_000 + more))).count();
        assert_eq!(checks, MAX_OF_PEER);
        assert!(!pair.ends[0].sender.check(
            pair.now,
            ([10, 0, 0, 9], 7).into(),
            Purpose::KeepAlive
        ));
        pair.run();
        assert_eq!(pair.under_way(), 0);
    }
}
