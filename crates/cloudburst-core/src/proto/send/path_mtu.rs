//! The MTU of the path to a peer, found by probes of our own (RFC 8899).
//!
//! Packets of a message have up to [`PathMtu::size`] bytes. That size is usual at first, so that
//! nothing is probed where nothing is wrong. Two things begin a search:
//!
//! - *Symbols vanish*: for a few RTOs, symbols of a message were sent and none arrived. A few paths are
//!   sent a HELLO without padding, which tells a peer that is not there; where it is answered, one padded
//!   to the [`floor`](PathMtu::floor), and then one to the present size. If that is not answered, on most
//!   paths that carry the floor, the size falls to the floor, and messages under way are cut again.
//! - *The interface carries more*, and the peer gets much, or the size has fallen some time ago. HELLOs
//!   are padded to the [`ceiling`](PathMtu::ceiling), then to sizes in between, by bisection.
//!
//! ICMP is not needed. The system may report what it has learned from it as the MTU of a route, which
//! bounds the ceiling while the system believes it, and never below the floor: anyone can forge it.

use super::checks::{CheckEnd, Purpose};
use super::recovery::AnyPolicy;
use super::{Outgoing, Sender};
use crate::code::Code;
use crate::id::{MessageId, PathId};
use crate::path::Via;
use crate::proto::limits::MIN_MTU;
use crate::proto::observe::{Observation, emit};
use crate::time::Instant;
use crate::wire::handshake::HELLO_LEN;
use crate::wire::symbol::{SYMBOL_OVERHEAD, UNSCHEDULED_LEN};
use arrayvec::ArrayVec;
use core::time::Duration;
use std::net::SocketAddr;

/// The smallest MTU that an interface may have.
const MIN_INTERFACE_MTU: usize = 576;
/// Sizes to try between floor and ceiling: those of tunnels (IPsec, WireGuard, VXLAN, PPPoE), of
/// Ethernet, and of jumbo frames with and without tunnels.
const SIZES: [usize; 12] =
    [1_280, 1_360, 1_400, 1_420, 1_450, 1_472, 1_492, 1_500, 2_000, 4_000, 8_000, 8_900];
/// The number of paths that are probed for one size.
const MAX_TESTED: usize = 4;
/// Bytes to deliver before a larger size than usual is tried: probes of 9,000 bytes on four paths take
/// an eighth of that.
const ENOUGH_BYTES: u64 = 256 << 10;
/// How long suspicions are not looked into after one that was false, doubling with each in a row.
const MIN_QUIET: Duration = Duration::from_millis(100);
const MAX_QUIET: Duration = Duration::from_secs(10);
/// The wait before a larger size is tried again, doubling up to the maximum, which is PMTU_RAISE_TIMER
/// of RFC 8899, section 5.1.1.
const MIN_RAISE_WAIT: Duration = Duration::from_secs(60);
const MAX_RAISE_WAIT: Duration = Duration::from_secs(600);

/// What is known of the MTU of the path to a peer. All sizes are bytes of IP packets.
#[derive(Debug)]
pub(super) struct PathMtu {
    /// The longest packet of a message.
    pub(super) size: usize,
    /// The longest packet that settings and the interface allow.
    ceiling: usize,
    /// Whether not even packets of the floor arrive, though shorter ones do.
    pub(super) is_too_narrow: bool,
    search: Option<Box<Search>>,
    /// Until when suspicions are not looked into.
    quiet_until: Instant,
    quiet: Duration,
    /// Whether the peer answered nothing when the last suspicion was looked into: it is not looked
    /// into again before the peer was heard from.
    is_deaf_since: Option<Instant>,
    /// When a larger size may be tried.
    raise_at: Instant,
    raise_wait: Duration,
}

#[derive(Debug)]
struct Search {
    goal: Goal,
    paths: ArrayVec<Tested, MAX_TESTED>,
}

#[derive(Clone, Copy, Debug)]
enum Goal {
    /// Whether packets of the present size arrive.
    Confirm,
    /// The largest size above `good`, and below `bad`, that arrives; `size` is being tried.
    Raise { good: usize, size: usize, bad: usize },
}

/// A path that is being probed.
#[derive(Clone, Copy, Debug)]
struct Tested {
    path: PathId,
    state: State,
    /// Bytes of the HELLO under way.
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A HELLO without padding is under way.
    Shortest,
    /// One of the floor is.
    Short,
    /// One of the size in question is.
    Long,
    /// The long one was answered.
    Wide,
    /// That of the floor was answered, the long one was not.
    Narrow,
    /// Only the one without padding was answered.
    TooNarrow,
    /// None was answered, or none could be sent.
    Dead,
}

impl PathMtu {
    /// A path of which nothing is known, on which packets have `usual` bytes.
    pub(super) const fn new(usual: usize) -> Self {
        Self {
            size: usual,
            ceiling: usual,
            is_too_narrow: false,
            search: None,
            quiet_until: Instant::ZERO,
            quiet: MIN_QUIET,
            is_deaf_since: None,
            raise_at: Instant::ZERO,
            raise_wait: MIN_RAISE_WAIT,
        }
    }

    /// The size to fall to.
    pub(super) fn floor(&self) -> usize {
        MIN_MTU.min(self.ceiling)
    }

    /// Whether a larger size may be tried, now that `delivered` bytes were delivered to the peer.
    pub(super) fn may_raise(&self, now: Instant, delivered: u64) -> bool {
        now >= self.raise_at && delivered >= ENOUGH_BYTES && self.search.is_none()
    }

    /// Ends a search that leaves the size as it is or has raised it.
    fn end_search(&mut self, now: Instant) {
        self.search = None;
        self.raise_at = now + self.raise_wait;
        self.raise_wait = (self.raise_wait * 2).min(MAX_RAISE_WAIT);
    }

    /// Probes under way are not answered any more.
    pub(super) fn on_checks_dropped(&mut self) {
        self.search = None;
        self.is_deaf_since = None;
    }

    /// The purposes of the checks that are under way for the search.
    pub(super) fn pending(&self) -> impl Iterator<Item = Purpose> {
        let tested = self.search.iter().flat_map(|search| &search.paths);
        let pending = tested.filter(|tested| tested.state.is_pending());
        pending.map(|&Tested { path, len, .. }| Purpose::Mtu { len, path })
    }

    /// Panics unless sizes are in order, and a search has probes under way.
    pub(super) fn check_invariants(&self) {
        assert!(self.size <= self.ceiling, "{} of at most {} bytes", self.size, self.ceiling);
        let Some(search) = &self.search else { return };
        assert!(search.is_pending(), "a search without probes");
        if let Goal::Raise { good, size, bad } = search.goal {
            assert!(good < size && size < bad && good <= self.ceiling, "{good} {size} {bad}");
        }
    }
}

impl State {
    const fn is_pending(self) -> bool {
        matches!(self, Self::Short | Self::Long | Self::Shortest)
    }
}

impl Search {
    fn count(&self, state: State) -> usize {
        self.paths.iter().filter(|tested| tested.state == state).count()
    }

    fn is_pending(&self) -> bool {
        self.paths.iter().any(|tested| tested.state.is_pending())
    }
}

/// The size to try between `good`, which arrives, and `bad`, which does not.
fn between(good: usize, bad: usize) -> Option<usize> {
    let mut sizes = SIZES.iter().copied().filter(|size| good < *size && *size < bad);
    let count = sizes.clone().count();
    sizes.nth(count / 2)
}

impl Sender {
    /// Looks into symbols that vanish, if those of `id` do.
    pub(super) fn watch_vanishing(&mut self, now: Instant, id: MessageId) {
        let Some(Outgoing { source, transfer }) = self.messages.get(&id) else { return };
        if !transfer.vanishes() {
            return;
        }
        let address = transfer.peer;
        let longest = source.layout.symbol_size();
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let mtu = &mut peer.mtu;
        // Short symbols vanish for another reason.
        if mtu.search.is_some()
            || now < mtu.quiet_until
            || longest + SYMBOL_OVERHEAD + peer.headers <= MIN_INTERFACE_MTU
        {
            return;
        }
        let heard = peer.liveness.last_heard();
        if mtu.is_deaf_since.is_some_and(|since| heard <= since) {
            return;
        }
        if now.saturating_since(mtu.quiet_until) > MAX_QUIET {
            mtu.quiet = MIN_QUIET;
        }
        mtu.quiet_until = now + mtu.quiet;
        mtu.quiet = (mtu.quiet * 2).min(MAX_QUIET);
        tracing::debug!(peer = %address, size = mtu.size, "symbols vanish: probing the path's MTU");
        if self.lower_to_interface(address, MIN_MTU) {
            return;
        }
        self.begin_search(now, address, Goal::Confirm);
    }

    /// Begins to try larger sizes, if the interface allows them.
    pub(super) fn raise_mtu(&mut self, now: Instant, address: SocketAddr) {
        self.lower_to_interface(address, MIN_MTU);
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let mtu = &mut peer.mtu;
        if mtu.ceiling > mtu.size {
            let goal = Goal::Raise { good: mtu.size, size: mtu.ceiling, bad: mtu.ceiling + 1 };
            self.begin_search(now, address, goal);
        } else {
            mtu.end_search(now);
        }
    }

    /// Learns what the interface allows, taking no less than `least` for true. If packets are longer,
    /// they become shorter, and messages under way are cut again. Returns whether they are.
    fn lower_to_interface(&mut self, address: SocketAddr, least: usize) -> bool {
        let Some(peer) = self.peers.get_mut(&address) else { return false };
        // Paths mostly differ in the egress alone.
        let mut routes: Vec<Via> = Vec::new();
        for path in peer.paths.stats().iter().filter(|path| !path.removed) {
            let via = path.via;
            if routes
                .last()
                .is_none_or(|last| (last.local, last.remote.ip()) != (via.local, via.remote.ip()))
            {
                routes.push(via);
            }
        }
        let allowed = routes.into_iter().filter_map(|via| self.resolver.mtu(via)).min();
        let Some(allowed) = allowed.map(|mtu| mtu.max(least).min(self.config.mtu)) else {
            return false;
        };
        let lowers = allowed < peer.mtu.size;
        peer.mtu.ceiling = allowed;
        if lowers {
            peer.mtu.search = None;
            self.set_mtu(address, allowed);
        }
        lowers
    }

    /// Handles the error of this host that packets to a peer are longer than its interface allows.
    pub(super) fn on_too_long(&mut self, address: SocketAddr) {
        // Not a matter of ICMP, which sockets disregard, so even the least is believed.
        self.lower_to_interface(address, MIN_INTERFACE_MTU);
    }

    fn begin_search(&mut self, now: Instant, address: SocketAddr, goal: Goal) {
        let start = self.rng.next_u64() as usize;
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let first = match goal {
            Goal::Confirm => State::Shortest,
            Goal::Raise { .. } => State::Long,
        };
        let in_use: Vec<PathId> = peer.paths.numbers().collect();
        let count = in_use.len().min(MAX_TESTED);
        let chosen = (0..count)
            .map(|at| in_use[(start % in_use.len() + at * in_use.len() / count) % in_use.len()]);
        let paths = chosen.map(|path| Tested { path, state: first, len: 0 }).collect();
        let search = Search { goal, paths };
        let paths = search.paths.clone();
        peer.mtu.search = Some(Box::new(search));
        for tested in paths {
            self.probe_path(now, address, tested.path, first);
        }
        self.evaluate(now, address);
    }

    /// Sends a probe on one path of the search under way, which enters `state`.
    fn probe_path(&mut self, now: Instant, address: SocketAddr, path: PathId, state: State) {
        let Some(peer) = self.peers.get(&address) else { return };
        let Some(search) = &peer.mtu.search else { return };
        let size = match (state, search.goal) {
            (State::Shortest, _) => 0,
            (State::Short, _) => peer.mtu.floor(),
            (_, Goal::Confirm) => peer.mtu.size,
            (_, Goal::Raise { size, .. }) => size,
        };
        let via = peer.paths.stats().get(usize::from(path.0)).map(|path| path.via);
        let overhead = via.map_or(0, |via| self.overhead(&via));
        let len = size.saturating_sub(overhead).max(HELLO_LEN);
        let sends = self.check(now, address, Purpose::Mtu { len, path });
        if let Some(tested) = self.tested_mut(address, path) {
            tested.len = len;
            tested.state = if sends { state } else { State::Dead };
        }
    }

    fn tested_mut(&mut self, address: SocketAddr, path: PathId) -> Option<&mut Tested> {
        let search = self.peers.get_mut(&address)?.mtu.search.as_mut()?;
        search.paths.iter_mut().find(|tested| tested.path == path)
    }

    /// Handles the end of a probe of `len` bytes on `path`, which may be of an earlier search.
    pub(super) fn on_mtu_probe_ended(
        &mut self,
        now: Instant,
        address: SocketAddr,
        len: usize,
        path: PathId,
        end: CheckEnd,
    ) {
        let Some(peer) = self.peers.get(&address) else { return };
        let Some(search) = &peer.mtu.search else { return };
        let confirms = matches!(search.goal, Goal::Confirm);
        let is_at_floor = peer.mtu.size <= peer.mtu.floor();
        let Some(tested) = self.tested_mut(address, path).filter(|tested| tested.len == len) else {
            return;
        };
        let is_answered = end == CheckEnd::Answered;
        tested.state = match (tested.state, is_answered) {
            (State::Shortest, true) => State::Short,
            (State::Short, true) if !is_at_floor => State::Long,
            (State::Short | State::Long, true) => State::Wide,
            (State::Short, false) => State::TooNarrow,
            (State::Long, false) if confirms => State::Narrow,
            (State::Shortest | State::Long, false) => State::Dead,
            (ended, _) => ended,
        };
        let state = tested.state;
        if state.is_pending() {
            self.probe_path(now, address, path, state);
        }
        self.evaluate(now, address);
    }

    /// Draws the conclusion from the probes that have ended, if there is one.
    fn evaluate(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let mtu = &mut peer.mtu;
        let Some(search) = &mtu.search else { return };
        let wide = search.count(State::Wide);
        let narrow = search.count(State::Narrow);
        // Once half of the paths have proved wide, the others do not matter: a narrow path is degraded,
        // like any that loses packets.
        let is_wide = wide > 0 && 2 * wide >= search.paths.len();
        if search.is_pending() && !is_wide {
            return;
        }
        let is_too_narrow = wide + narrow == 0 && search.count(State::TooNarrow) > 0;
        let is_deaf = wide + narrow == 0 && !is_too_narrow;
        match search.goal {
            Goal::Confirm if narrow > wide => {
                let bad = mtu.size;
                let good = mtu.floor();
                mtu.search = None;
                mtu.quiet = MIN_QUIET;
                mtu.is_too_narrow = false;
                mtu.raise_wait = MIN_RAISE_WAIT;
                self.set_mtu(address, good);
                self.try_between(now, address, good, bad);
            }
            Goal::Confirm => {
                mtu.search = None;
                mtu.is_deaf_since = is_deaf.then_some(now);
                mtu.is_too_narrow = is_too_narrow;
                if is_too_narrow {
                    let least = mtu.floor();
                    tracing::warn!(
                        peer = %address,
                        "short packets arrive, and those of {least} bytes do not: set a smaller `mtu`"
                    );
                }
            }
            Goal::Raise { size, bad, .. } if is_wide => {
                mtu.search = None;
                self.set_mtu(address, size);
                self.try_between(now, address, size, bad);
            }
            Goal::Raise { good, size, .. } => {
                mtu.search = None;
                self.try_between(now, address, good, size);
            }
        }
    }

    /// Tries a size between one that arrives and one that does not, or ends the search if there is
    /// none.
    fn try_between(&mut self, now: Instant, address: SocketAddr, good: usize, bad: usize) {
        match between(good, bad) {
            Some(size) => self.begin_search(now, address, Goal::Raise { good, size, bad }),
            None => {
                if let Some(peer) = self.peers.get_mut(&address) {
                    peer.mtu.end_search(now);
                }
            }
        }
    }

    /// Sends packets of up to `size` bytes from now on. Messages under way whose packets are longer are
    /// cut again.
    fn set_mtu(&mut self, address: SocketAddr, size: usize) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let before = core::mem::replace(&mut peer.mtu.size, size);
        if before == size {
            return;
        }
        tracing::info!(peer = %address, mtu = size, before, "path MTU changed");
        emit(&self.observer, || Observation::MtuChanged { peer: address, mtu: size });
        if size > before {
            return;
        }
        self.counters.mtu_lowered += 1;
        let Some(peer) = self.peers.get(&address) else { return };
        for id in peer.unfinished() {
            self.cut_again(address, id);
        }
    }

    /// Cuts a message again if its packets are longer than they may be.
    fn cut_again(&mut self, address: SocketAddr, id: MessageId) {
        let Some(Outgoing { source, transfer }) = self.messages.get(&id) else { return };
        let max_symbol = self.max_symbol(address, source.code, transfer.policy());
        // Nothing more is sent of one that was given up.
        if source.layout.symbol_size() <= max_symbol || transfer.is_given_up() {
            return;
        }
        let Some(Outgoing { source, transfer }) = self.messages.get_mut(&id) else { return };
        let session = self.peers.get(&address).and_then(|peer| peer.session.as_ref());
        source.cut_again(max_symbol, session.map(|session| &session.digest));
        transfer.cut_again(session.map_or(0, |session| session.sealer.next_number()), source);
        self.reschedule(id);
    }

    /// The size of the largest symbols of messages to a peer.
    pub(super) fn max_symbol(&self, peer: SocketAddr, code: Code, policy: &AnyPolicy) -> usize {
        let peer = self.peers.get(&peer);
        let mtu = peer.map_or(self.config.usual_mtu(), |peer| peer.mtu.size);
        let headers = peer.map_or(0, |peer| peer.headers);
        // If the peer turns out not to pull, its symbols are two bytes shorter than they could be.
        let more = if policy.pulled().is_some() { UNSCHEDULED_LEN } else { 0 };
        self.config.max_symbol(mtu, code, headers) - more
    }
}
