//! One direction of messages from one incarnation of one peer.

use super::incoming::Incoming;
use crate::id::{Digest, Incarnation, MessageId, PathId};
use crate::path::{PathMap, Via};
use crate::proto::peers::ReceivedFrom;
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys};
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Arrivals, RejectReason};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

/// Reverse paths that are remembered of one peer.
const MAX_ROUTES: usize = 256;
/// A route is quiet after so many symbols for each route of the session by others: one round of the
/// sender's, with the runs that are the default.
const QUIET_AFTER: u64 = 4;
/// Of so many turns of a quiet route one is taken.
const QUIET_TURNS: u32 = 16;
/// Turns that a quiet route gains by each question.
const DOUBT: u32 = 2;
/// Questions of a peer that says that it has had no answer, since the last new message, until
/// answers leave the ways that symbols come.
const PATIENCE: u16 = 2;
/// Ways that each answer takes from then on, if that is no more bytes than the question has.
const COPIES: usize = 4;
/// Messages whose arrivals are remembered after their delivery.
const KEPT_ARRIVALS: usize = 32;
/// What remembering one ending takes, about.
pub(super) const ENDING_BYTES: usize = 64;

#[derive(Debug)]
pub(super) struct Session {
    /// Where the peer takes messages.
    pub(super) peer: SocketAddr,
    pub(super) incarnation: Incarnation,
    pub(super) opener: Opener,
    pub(super) sealer: Sealer,
    pub(super) digest: DigestKey,
    pub(super) last_heard: Instant,
    pub(super) tally: ReceivedFrom,
    pub(super) incoming: HashMap<MessageId, Incoming>,
    /// Bytes that `incoming` may take.
    pub(super) memory: usize,
    /// Ways back to the peer, by the path number of what came that way.
    routes: Vec<Route>,
    next_route: usize,
    /// Symbols that came by any route.
    symbols: u64,
    /// Such questions since the peer's last new message.
    doubts: u16,
    /// Answers since doubt began, and how many of them left the routes.
    doubtful: usize,
    detours: usize,
    /// The peer has finished with all messages below.
    floor: MessageId,
    /// What became of messages from `floor` on.
    ended: BTreeMap<MessageId, Ending>,
    /// Arrivals of the messages that were delivered last, for the STOPs that answer late symbols.
    arrivals: VecDeque<(MessageId, Vec<Arrivals>)>,
}

/// A way back to the peer.
#[derive(Debug)]
struct Route {
    /// The peer's path whose symbols came by it.
    path: PathId,
    via: Via,
    /// `symbols` when the last one came.
    last_symbol: u64,
    /// Turns that it did not get since it went quiet, or was last taken.
    passed: u32,
}

/// How the receiver ended a message, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Delivered(Digest),
    Rejected(RejectReason),
}

impl Session {
    pub(super) fn new(
        now: Instant,
        peer: SocketAddr,
        incarnation: Incarnation,
        flow: FlowKeys,
    ) -> Self {
        Self {
            peer,
            incarnation,
            opener: Opener::new(flow.symbols),
            sealer: Sealer::new(flow.answers),
            digest: flow.digest,
            last_heard: now,
            tally: ReceivedFrom { session_since: Some(now), ..ReceivedFrom::default() },
            incoming: HashMap::new(),
            memory: 0,
            routes: Vec::new(),
            next_route: 0,
            symbols: 0,
            doubts: 0,
            doubtful: 0,
            detours: 0,
            floor: MessageId(0),
            ended: BTreeMap::new(),
            arrivals: VecDeque::new(),
        }
    }

    /// An authentic packet of the peer's path `path` came by `via`.
    pub(super) fn learn_route(&mut self, path: PathId, via: Via) {
        self.symbols += 1;
        let last_symbol = self.symbols;
        if let Some(known) = self.routes.iter_mut().find(|known| known.path == path) {
            (known.via, known.last_symbol) = (via, last_symbol);
        } else if self.routes.len() < MAX_ROUTES {
            self.routes.push(Route { path, via, last_symbol, passed: 0 });
        }
    }

    /// The peer asks, `again` if it has had no answer: what it was told may have been lost. Quiet
    /// routes are tried sooner.
    pub(super) fn doubt_routes(&mut self, again: bool) {
        self.routes.iter_mut().for_each(|route| route.passed += DOUBT);
        self.doubts = self.doubts.saturating_add(again.into());
    }

    /// A message begins: the peer has heard what it waited for. If that took patience, the next
    /// question is reason enough for doubt.
    pub(super) fn trust_routes(&mut self) {
        self.doubts = if self.in_doubt() { PATIENCE - 1 } else { 0 };
    }

    /// The peer goes on asking: the ways back by all routes may be dead.
    const fn in_doubt(&self) -> bool {
        self.doubts >= PATIENCE
    }

    /// How often to send an answer of `len` bytes, all of them together no more than `limit`.
    pub(super) fn copies(&self, len: usize, limit: usize) -> usize {
        if self.in_doubt() { (limit / len.max(1)).clamp(1, COPIES) } else { 1 }
    }

    /// The way back of the next answer: a route, in turn. Where the peer goes on asking, only one
    /// of four answers takes a route as it is; the others go to its address over a path of our own,
    /// another each time.
    pub(super) fn take_route(&mut self, own: &dyn PathMap) -> Option<(PathId, Via)> {
        let (path, via) = self.next_route()?;
        if !self.in_doubt() {
            return Some((path, via));
        }
        self.doubtful += 1;
        if self.doubtful % COPIES == 1 {
            return Some((path, via));
        }
        let ways = own.paths(via.remote, 1);
        let way = ways.get(self.detours % ways.len().max(1)).copied();
        self.detours += 1;
        Some((path, way.unwrap_or(via)))
    }

    /// The next route in turn. What brings no symbols any more hardly takes answers back: such
    /// routes are passed over most of the time, but not always, for one may work in one direction.
    fn next_route(&mut self) -> Option<(PathId, Via)> {
        let routes = self.routes.len();
        let quiet = QUIET_AFTER * routes as u64;
        for _ in 0..routes {
            let turn = self.next_route % routes;
            self.next_route = turn + 1;
            let route = &mut self.routes[turn];
            route.passed += 1;
            if self.symbols - route.last_symbol < quiet || route.passed >= QUIET_TURNS {
                route.passed = 0;
                return Some((PathId(turn as u16), route.via));
            }
        }
        // Symbols come by a route that there was no room for.
        let turn = self.next_route.checked_rem(routes)?;
        self.next_route = turn + 1;
        Some((PathId(turn as u16), self.routes[turn].via))
    }

    /// The peer has finished with what is older than `floor`: forget it. Returns the memory that
    /// this frees.
    pub(super) fn raise_floor(&mut self, floor: MessageId) -> usize {
        if floor <= self.floor {
            return 0;
        }
        self.floor = floor;
        self.ended = self.ended.split_off(&floor);
        let mut freed = 0;
        self.incoming.retain(|id, incoming| {
            // What is decoded and waits for the application was promised nothing yet, but is
            // whole: it is delivered all the same.
            let keep = *id >= floor || incoming.is_done();
            freed += if keep { 0 } else { incoming.memory() };
            keep
        });
        self.memory -= freed;
        freed
    }

    pub(super) const fn floor(&self) -> MessageId {
        self.floor
    }

    /// Messages whose fate must be remembered.
    pub(super) fn span(&self) -> usize {
        self.ended.len() + self.incoming.len()
    }

    pub(super) fn ending(&self, id: MessageId) -> Option<&Ending> {
        self.ended.get(&id)
    }

    /// How many endings are remembered.
    pub(super) fn endings(&self) -> usize {
        self.ended.len()
    }

    /// Keeps the arrivals of a message that was delivered, for a while.
    pub(super) fn keep_arrivals(&mut self, id: MessageId, arrivals: Vec<Arrivals>) {
        if self.arrivals.len() == KEPT_ARRIVALS {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back((id, arrivals));
    }

    /// The arrivals of a message that was delivered, if it was one of the last.
    pub(super) fn late_arrivals(&self, id: MessageId) -> Vec<Arrivals> {
        let kept = self.arrivals.iter().rev().find(|(kept, _)| *kept == id);
        kept.map(|(_, arrivals)| arrivals.clone()).unwrap_or_default()
    }

    /// Remembers how `id` ended, and returns its memory.
    pub(super) fn end(&mut self, id: MessageId, ending: Ending) -> Option<Incoming> {
        if id >= self.floor {
            self.ended.entry(id).or_insert(ending);
        }
        let incoming = self.incoming.remove(&id)?;
        self.memory -= incoming.memory();
        Some(incoming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Lanes;
    use crate::wire::HelloAck;
    use crate::wire::keys::PresharedKey;

    fn session() -> Session {
        let (initiator, responder) = (Incarnation([1; 16]), Incarnation([3; 16]));
        let ack = HelloAck {
            path: PathId(0),
            initiator,
            nonce: 2,
            responder,
            session_nonce: [4; 16],
            current_alive: false,
            more_ports: 0,
        };
        let peer = SocketAddr::from(([10, 0, 0, 1], 1));
        let keys = PresharedKey::new([5; 32]).session(&ack);
        let mut session = Session::new(Instant::ZERO, peer, initiator, keys.forward);
        session.learn_route(PathId(0), Via { lane: 0, remote: peer });
        session
    }

    #[test]
    fn answers_to_a_peer_that_goes_on_asking_leave_by_all_paths_until_it_is_content() {
        let mut session = session();
        let ask = |session: &mut Session| {
            session.doubt_routes(true);
            (0..session.copies(100, 1_452))
                .filter_map(|_| session.take_route(&Lanes(3)))
                .map(|(_, via)| via.lane)
                .collect::<Vec<_>>()
        };
        let answers: Vec<_> = (0..5).map(|_| ask(&mut session)).collect();
        assert_eq!(answers[0], [0]);
        assert_eq!(answers[1..], [[0, 0, 1, 2]; 4]);
        assert_eq!((session.copies(100, 299), session.copies(100, 85)), (2, 1));
        assert_eq!(session.take_route(&Lanes(0)).map(|(_, via)| via.lane), Some(0), "no own path");
        session.trust_routes();
        assert_eq!(session.copies(100, 1_452), 1);
        assert_eq!(ask(&mut session).len(), 4, "at once, where it took patience before");
        session.trust_routes();
        session.trust_routes();
        assert_eq!(ask(&mut session), [0]);
        session.trust_routes();
        (0..9).for_each(|_| session.doubt_routes(false));
        assert_eq!(session.copies(100, 1_452), 1, "it may ask as often as it likes");
    }
}
