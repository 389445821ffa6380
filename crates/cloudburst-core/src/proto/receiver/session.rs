//! One direction of messages from one incarnation of one peer.

use super::incoming::Incoming;
use crate::id::{Digest, Incarnation, MessageId, PathId};
use crate::path::{Via, answer_lane};
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys};
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Arrivals, RejectReason};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

/// Reverse paths that are remembered of one peer.
const MAX_ROUTES: usize = 256;
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
    pub(super) incoming: HashMap<MessageId, Incoming>,
    /// Bytes that `incoming` may take.
    pub(super) memory: usize,
    /// Ways back to the peer, by the path number of what came that way.
    routes: Vec<(PathId, Via)>,
    /// Answers sent.
    turns: u64,
    /// The peer has finished with all messages below.
    floor: MessageId,
    /// What became of messages from `floor` on.
    ended: BTreeMap<MessageId, Ending>,
    /// Arrivals of the messages that were delivered last, for the STOPs that answer late symbols.
    arrivals: VecDeque<(MessageId, Vec<Arrivals>)>,
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
            incoming: HashMap::new(),
            memory: 0,
            routes: Vec::new(),
            turns: 0,
            floor: MessageId(0),
            ended: BTreeMap::new(),
            arrivals: VecDeque::new(),
        }
    }

    /// An authentic packet of the peer's path `path` came by `via`.
    pub(super) fn learn_route(&mut self, path: PathId, via: Via) {
        if let Some(known) = self.routes.iter_mut().find(|(known, _)| *known == path) {
            known.1 = via;
        } else if self.routes.len() < MAX_ROUTES {
            self.routes.push((path, via));
        }
    }

    /// The next way back in turn.
    pub(super) fn take_route(&mut self, lanes: u16) -> Option<(PathId, Via)> {
        let routes = self.routes.len() as u64;
        let route = self.turns.checked_rem(routes)? as usize;
        // All routes by one lane, then all by the next: so that each meets each.
        let mut via = self.routes[route].1;
        via.lane = answer_lane(via.lane, lanes, self.turns / routes);
        self.turns += 1;
        Some((PathId(route as u16), via))
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
