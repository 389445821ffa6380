//! One direction of messages from one incarnation of one peer.

use super::incoming::Incoming;
use crate::id::{Digest, Incarnation, MessageId, PathId};
use crate::path::{PathMap, Via};
use crate::proto::peers::ReceivedFrom;
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys};
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Answer, Arrivals, Prefix, RejectReason, Role};
use foldhash::{HashMap, HashMapExt};
use std::collections::{BTreeMap, VecDeque};
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
/// Ways that the answer to a peer takes that has had none for long, if that is no more bytes than
/// the question has.
const COPIES: usize = 4;
/// Messages whose arrivals are remembered after their delivery.
const KEPT_ARRIVALS: usize = 32;
/// What remembering one ending takes, about.
pub(super) const ENDING_BYTES: usize = 64;

#[derive(Debug)]
pub(super) struct Session {
    /// The address that the peer is known by.
    pub(super) peer: SocketAddr,
    /// Where it takes messages, and nobody else does.
    pub(super) own: SocketAddr,
    pub(super) incarnation: Incarnation,
    pub(super) opener: Opener,
    pub(super) sealer: Sealer,
    pub(super) digest: DigestKey,
    pub(super) last_heard: Instant,
    pub(super) tally: ReceivedFrom,
    /// HELLOs that asked after it.
    pub(super) hellos: usize,
    pub(super) incoming: HashMap<MessageId, Incoming>,
    /// Bytes that `incoming` may take.
    pub(super) memory: usize,
    /// Ways back to the peer, by the path number of what came that way.
    routes: Vec<Route>,
    next_route: usize,
    /// Symbols that came by any route.
    symbols: u64,
    /// Answers that did not take a route.
    detours: usize,
    /// The peer has finished with all messages below.
    floor: MessageId,
    /// What became of messages from `floor` on.
    ended: BTreeMap<MessageId, Ending>,
    /// Arrivals of the messages that were delivered last, for the STOPs that answer late symbols.
    arrivals: VecDeque<(MessageId, Vec<Arrivals>)>,
}

/// How often to send an answer of `len` bytes to a peer that has had none for long: all of them
/// together are no larger than what it sent, of `limit` bytes.
pub(super) fn copies(len: usize, limit: usize) -> usize {
    (limit / len.max(1)).clamp(1, COPIES)
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
            own: peer,
            incarnation,
            opener: Opener::new(flow.symbols),
            sealer: Sealer::new(flow.answers),
            digest: flow.digest,
            last_heard: now,
            tally: ReceivedFrom { session_since: Some(now), ..ReceivedFrom::default() },
            hellos: 0,
            incoming: HashMap::new(),
            memory: 0,
            routes: Vec::new(),
            next_route: 0,
            symbols: 0,
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

    /// Appends an answer, sealed, that leaves by `path`.
    pub(super) fn write_answer(&mut self, answer: &Answer, path: PathId, buffer: &mut Vec<u8>) {
        let at = buffer.len();
        let prefix = Prefix {
            kind: answer.kind(),
            ask: false,
            partial: false,
            again: false,
            role: Role::Plain,
            path,
            session: self.sealer.session(),
            number: self.sealer.next_number(),
        };
        answer.write(&prefix, buffer);
        self.sealer.seal(buffer, at, buffer.len() - at);
        self.tally.answers_sent += 1;
    }

    /// The peer asks: what it was told may have been lost. Quiet routes are tried sooner.
    pub(super) fn doubt_routes(&mut self) {
        self.routes.iter_mut().for_each(|route| route.passed += DOUBT);
    }

    /// The next way back that is a path of our own, to the address of the next route: all ways by
    /// which the peer's symbols come may be dead the other way.
    pub(super) fn take_detour(&mut self, own: &dyn PathMap) -> Option<(PathId, Via)> {
        let (path, via) = self.take_route()?;
        let ways = own.paths(via.remote, 1);
        let way = ways.get(self.detours % ways.len().max(1)).copied();
        self.detours += 1;
        Some((path, way.unwrap_or(via)))
    }

    /// The next route in turn. What brings no symbols any more hardly takes answers back: such
    /// routes are passed over most of the time, but not always, for one may work in one direction.
    pub(super) fn take_route(&mut self) -> Option<(PathId, Via)> {
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
            port: 0,
        };
        let peer = SocketAddr::from(([10, 0, 0, 1], 1));
        let keys = PresharedKey::new([5; 32]).session(&ack);
        let mut session = Session::new(Instant::ZERO, peer, initiator, keys.forward);
        session.learn_route(PathId(0), Via { lane: 0, remote: peer });
        session
    }

    #[test]
    fn detours_take_all_paths_of_our_own_in_turn() {
        let mut session = session();
        let lanes = |own: &dyn PathMap, session: &mut Session| {
            let taken = (0..6).filter_map(|_| session.take_detour(own));
            taken.map(|(_, via)| via.lane).collect::<Vec<_>>()
        };
        assert_eq!(lanes(&Lanes(4), &mut session), [0, 1, 2, 3, 0, 1]);
        assert_eq!(lanes(&Lanes(0), &mut session), [0; 6], "no own path");
        assert_eq!(session.take_route().map(|(_, via)| via.lane), Some(0));
        assert_eq!((copies(100, 1_452), copies(100, 299), copies(100, 85)), (4, 2, 1));
    }
}
