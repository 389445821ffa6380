//! Return paths: answers to a peer rotate through the paths by which its symbols arrive.

use crate::id::PathId;
use crate::path::{MAX_LEVELS, PathResolver, Via};
use crate::proto::limits::MAX_ROUTES;
use std::net::IpAddr;

// What is suspect here is a way back, not a peer: a receiver that answers never waits, so it has no
// silence to measure, and nothing of a sender's `Liveness` to ask.
/// A route is suspect once this many symbols per route have arrived on other routes: one scheduling
/// quantum of the sender, with the default packet trains.
const SUSPECT_AFTER: u64 = 4;
/// A suspect route is used for one in this many answers.
// With three of four paths dead in both directions and answers on all routes in turn, three of four
// STOPs were lost: 93 KB took 14 ms, and 0.9 this way.
const SUSPECT_SKIPS: u32 = 16;
/// Answers by which each ACK request advances a suspect route.
const SUSPECT_ADVANCE: u32 = 2;
/// The maximum number of routes to a peer that the sending half learns of. They serve where its
/// own paths do not lead.
pub(super) const TRIED_ROUTES: usize = 16;
/// The maximum number of copies of an answer to a peer that has had none for long: one by a route,
/// the others by the receiver's own paths. Together they are no longer than the symbol that they
/// answer.
const COPIES: usize = 4;

/// Classes whose packets are counted: control, and those of symbols.
const CLASSES: usize = 1 + MAX_LEVELS;

/// The number of copies of an answer of `len` bytes to a peer that has had none for long. Together,
/// several copies are no larger than the packet that they answer, of `limit` bytes.
pub(super) fn copies(len: usize, limit: usize) -> usize {
    (limit / len.max(1)).clamp(1, COPIES)
}

/// The return paths to one peer, indexed by the path number that its packets carry.
#[derive(Debug, Default)]
pub(super) struct Routes {
    routes: Vec<Route>,
    next: usize,
    /// The number of symbols that arrived by any route.
    symbols: u64,
    /// The same for each class.
    of_class: [u64; CLASSES],
    /// The number of answers that did not take a route.
    alternates: usize,
    /// The number of symbols that have not arrived although later ones on their path have.
    missing: u64,
}

#[derive(Debug)]
struct Route {
    /// The peer's path whose symbols arrive by it.
    path: PathId,
    via: Via,
    /// The value of `symbols` when its last symbol arrived.
    last_symbol: u64,
    /// Answers for which it was skipped since it was last taken.
    skipped: u32,
    /// Bytes that may leave by it, as long as the peer's address is not validated.
    credit: usize,
    /// The newest symbol of each class; symbols of a more urgent class may overtake others.
    newest: [Option<Newest>; CLASSES],
}

/// The position of a symbol among those of its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathPosition {
    pub(super) class: u8,
    /// Counts symbols of the class on the path.
    pub(super) path_number: u16,
    /// Its packet number, which counts all symbols of the peer.
    pub(super) packet: u64,
}

/// The newest symbol of a class on a path.
#[derive(Clone, Copy, Debug)]
struct Newest {
    /// Its path sequence number, which counts symbols of the class on the path.
    path_number: u16,
    /// Its packet number, which counts all symbols of the peer.
    packet: u64,
    /// How many symbols of the class had arrived by any route.
    at: u64,
}

/// Bytes of answers that may be sent to an address for each byte that arrived from it, as long as it
/// is not validated. As many as arrived are left for the check of the address, so that it gets three
/// times as many at most (RFC 9000, section 8.1).
const AMPLIFICATION: usize = 2;

impl Routes {
    /// Records that an authentic packet of `len` bytes on the peer's path `path` arrived by `via`.
    /// `validated` says that the peer is known to receive there: a third party could have forwarded
    /// the packet from elsewhere. `position` is its position on the path, if it shows that earlier
    /// packets on the path have arrived or are lost. Returns whether the route is new.
    #[inline]
    pub(super) fn learn(
        &mut self,
        path: PathId,
        via: Via,
        len: usize,
        validated: bool,
        position: Option<PathPosition>,
    ) -> bool {
        self.symbols += 1;
        let last_symbol = self.symbols;
        let credit = if validated { usize::MAX } else { AMPLIFICATION * len };
        let known = self.routes.iter().position(|known| known.path == path);
        let (at, is_new) = match known {
            Some(at) => {
                let known = &mut self.routes[at];
                let moved = known.via != via;
                let before = if moved && known.via.remote.ip() != via.remote.ip() {
                    0
                } else {
                    known.credit
                };
                known.credit = before.saturating_add(credit);
                known.via = via;
                known.last_symbol = last_symbol;
                (at, moved)
            }
            None if self.routes.len() < MAX_ROUTES => {
                let newest = [None; CLASSES];
                self.routes.push(Route { path, via, last_symbol, skipped: 0, credit, newest });
                (self.routes.len() - 1, true)
            }
            None => return false,
        };
        if let Some(position) = position {
            self.count(at, position);
        }
        is_new
    }

    /// Records the position of a packet on its path, which is the route `at`.
    #[inline]
    fn count(&mut self, at: usize, PathPosition { class, path_number, packet }: PathPosition) {
        let class = usize::from(class);
        let (Some(last), Some(at)) =
            (self.routes[at].newest.get_mut(class), self.of_class.get_mut(class))
        else {
            return;
        };
        *at += 1;
        let this = Newest { path_number, packet, at: *at };
        let newest = *last.get_or_insert(this);
        let ahead = path_number.wrapping_sub(newest.path_number).cast_signed();
        if ahead > 0 {
            self.missing += u64::from(ahead.cast_unsigned()) - 1;
            *last = Some(this);
        } else if ahead < 0 {
            // It counted as missing, but was only late.
            self.missing = self.missing.saturating_sub(1);
        }
    }

    /// The packet number before which no symbol of `class` is still in flight, if paths keep the
    /// order of packets of equal urgency: each path that is not suspect has brought a later one, of
    /// that class or of a less urgent one.
    pub(super) fn horizon(&self, class: u8) -> u64 {
        let suspect_after = SUSPECT_AFTER * self.routes.len() as u64;
        let live = self.routes.iter().filter(|route| !self.is_suspect(route));
        let newest = live.filter_map(|route| {
            let as_slow = route.newest.iter().zip(&self.of_class).skip(usize::from(class));
            // A path may bring packets of other classes alone.
            let heard =
                as_slow.filter_map(|(newest, all)| newest.filter(|it| all - it.at < suspect_after));
            heard.map(|newest| newest.packet).max()
        });
        newest.min().unwrap_or(0)
    }

    /// Whether other routes bring symbols and this one no longer does.
    fn is_suspect(&self, route: &Route) -> bool {
        self.symbols - route.last_symbol >= SUSPECT_AFTER * self.routes.len() as u64
    }

    /// The number of symbols that have not arrived although later ones on their path have.
    pub(super) const fn missing(&self) -> u64 {
        self.missing
    }

    pub(super) const fn len(&self) -> usize {
        self.routes.len()
    }

    /// The most recent routes by which the peer's packets arrived from `ip`, each once. Only a few,
    /// because a peer may move with every packet.
    pub(super) fn vias(&self, ip: IpAddr) -> Vec<Via> {
        let mut newest: Vec<&Route> =
            self.routes.iter().filter(|route| route.via.remote.ip() == ip).collect();
        newest.sort_unstable_by_key(|route| core::cmp::Reverse(route.last_symbol));
        let mut vias = Vec::new();
        for via in newest.into_iter().map(|route| route.via) {
            if vias.len() < TRIED_ROUTES && !vias.contains(&via) {
                vias.push(via);
            }
        }
        vias
    }

    /// Records that the peer receives at `ip`: routes there are no longer limited.
    pub(super) fn validate(&mut self, ip: IpAddr) {
        let there = self.routes.iter_mut().filter(|route| route.via.remote.ip() == ip);
        there.for_each(|route| route.credit = usize::MAX);
    }

    /// Handles an ACK request of the peer: earlier answers may have been lost. Suspect routes
    /// are tried sooner.
    pub(super) fn suspect_answers_lost(&mut self) {
        // For every request that is answered, not for those of delivered messages alone: 93 KB then
        // took up to 0.46 s, and take 18 ms at most.
        self.routes.iter_mut().for_each(|route| route.skipped += SUSPECT_ADVANCE);
    }

    /// The next alternate reverse path: a path of our own to the address of the next route. All
    /// routes by which the peer's symbols arrive may be dead in reverse.
    pub(super) fn take_alternate(
        &mut self,
        len: usize,
        own: &dyn PathResolver,
    ) -> Option<(PathId, Via)> {
        let (path, via) = self.take(len)?;
        let paths = own.paths(via.remote, 1);
        let alternate = paths.get(self.alternates % paths.len().max(1)).copied();
        self.alternates += 1;
        // Firewalls let only packets from this address pass.
        Some((path, alternate.map_or(via, |alternate| alternate.leaving_from(via.local))))
    }

    /// The next route in turn, for an answer of at most `len` bytes. A route that no longer brings
    /// symbols is unlikely to carry answers back. Such routes are skipped over most of the time, but
    /// not always, because one may work in that direction only.
    pub(super) fn take(&mut self, len: usize) -> Option<(PathId, Via)> {
        let routes = self.routes.len();
        let suspect_after = SUSPECT_AFTER * routes as u64;
        for _ in 0..routes {
            let at = self.next % routes;
            self.next = at + 1;
            let route = &mut self.routes[at];
            route.skipped += 1;
            let is_tried =
                self.symbols - route.last_symbol < suspect_after || route.skipped >= SUSPECT_SKIPS;
            if is_tried && route.charge(len) {
                route.skipped = 0;
                return Some((PathId(at as u16), route.via));
            }
        }
        // Symbols arrive by a route that was not added for lack of capacity, or the other routes
        // have no credit left.
        let at = (self.next..self.next + routes)
            .map(|at| at % routes)
            .find(|&at| self.routes[at].charge(len))?;
        self.next = at + 1;
        Some((PathId(at as u16), self.routes[at].via))
    }
}

impl Route {
    /// Charges the route with `len` bytes. Returns whether they may leave by it.
    const fn charge(&mut self, len: usize) -> bool {
        let fits = self.credit >= len;
        if fits && self.credit != usize::MAX {
            self.credit -= len;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Egresses;
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    #[test]
    fn alternates_take_all_paths_of_our_own_in_turn() {
        let peer = SocketAddr::from(([10, 0, 0, 1], 1));
        let mut routes = Routes::default();
        routes.learn(PathId(0), Via { egress: 0, local: None, remote: peer }, 100, true, None);
        let egresses = |own: &dyn PathResolver, routes: &mut Routes| {
            let taken = (0..6).filter_map(|_| routes.take_alternate(100, own));
            taken.map(|(_, via)| via.egress).collect::<Vec<_>>()
        };
        assert_eq!(egresses(&Egresses(4), &mut routes), [0, 1, 2, 3, 0, 1]);
        assert_eq!(egresses(&Egresses(0), &mut routes), [0; 6], "no own path");
        assert_eq!(routes.take(100).map(|(_, via)| via.egress), Some(0));
        assert_eq!((copies(100, 1_472), copies(100, 299), copies(100, 72)), (4, 2, 1));
    }

    #[test]
    fn an_address_from_which_a_packet_was_forwarded_gets_twice_as_much_in_answers() {
        let [peer, elsewhere] =
            [1, 9].map(|host| Via { egress: 0, local: None, remote: ([10, 0, 0, host], 1).into() });
        let mut routes = Routes::default();
        routes.learn(PathId(0), peer, 100, true, None);
        routes.learn(PathId(1), elsewhere, 100, false, None);
        let mut sent = BTreeMap::new();
        for _ in 0..100 {
            let (_, via) = routes.take(60).unwrap();
            *sent.entry(via.remote).or_default() += 60;
        }
        assert_eq!(sent, [(peer.remote, 97 * 60), (elsewhere.remote, 180)].into());
        routes.learn(PathId(0), elsewhere, 30, false, None);
        assert_eq!(routes.take(60), Some((PathId(0), elsewhere)));
        assert_eq!(routes.take(60), None, "nobody has shown that it receives");
        routes.validate(elsewhere.remote.ip());
        assert!((0..100).all(|_| routes.take(60).is_some()), "it does");
    }
}
