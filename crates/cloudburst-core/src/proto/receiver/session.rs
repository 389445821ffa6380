//! One direction of messages from one incarnation of one peer.

use super::incoming::Incoming;
use crate::id::{Digest, Incarnation, MessageId, PathId};
use crate::path::Via;
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys};
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Arrivals, RejectReason};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Reverse paths that are remembered of one peer.
const MAX_ROUTES: usize = 256;

#[derive(Debug)]
pub(super) struct Session {
    /// Where the peer takes messages.
    pub(super) peer: SocketAddr,
    pub(super) incarnation: Incarnation,
    /// Which HELLO opened the session, where one did.
    pub(super) nonce: Option<u64>,
    pub(super) session_nonce: [u8; 16],
    /// The other direction's keys, until the first symbol confirms the peer.
    pub(super) backward: Option<FlowKeys>,
    pub(super) opener: Opener,
    pub(super) sealer: Sealer,
    pub(super) digest: DigestKey,
    pub(super) last_heard: Instant,
    pub(super) incoming: HashMap<MessageId, Incoming>,
    /// Bytes that `incoming` may take.
    pub(super) memory: usize,
    /// Ways back to the peer, by the path number of what came that way.
    routes: Vec<(PathId, Via)>,
    next_route: usize,
    /// The peer has finished with all messages below.
    floor: MessageId,
    /// What became of messages from `floor` on, in order of their ids.
    ended: VecDeque<(MessageId, Ending)>,
}

/// How the receiver ended a message, for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Delivered(Digest, Box<[Arrivals]>),
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
            nonce: None,
            session_nonce: [0; 16],
            backward: None,
            opener: Opener::new(flow.symbols),
            sealer: Sealer::new(flow.answers),
            digest: flow.digest,
            last_heard: now,
            incoming: HashMap::new(),
            memory: 0,
            routes: Vec::new(),
            next_route: 0,
            floor: MessageId(0),
            ended: VecDeque::new(),
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
    pub(super) fn take_route(&mut self) -> Option<(PathId, Via)> {
        let turn = self.next_route.checked_rem(self.routes.len())?;
        self.next_route = turn + 1;
        Some((PathId(turn as u16), self.routes[turn].1))
    }

    /// The peer has finished with what is older than `floor`: forget it. Returns the memory that
    /// this frees.
    pub(super) fn raise_floor(&mut self, floor: MessageId) -> usize {
        if floor <= self.floor {
            return 0;
        }
        self.floor = floor;
        let below = self.ended.partition_point(|(id, _)| *id < floor);
        self.ended.drain(..below);
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
        let at = self.ended.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.ended[at].1)
    }

    /// Remembers how `id` ended, and returns its memory.
    pub(super) fn end(&mut self, id: MessageId, ending: Ending) -> Option<Incoming> {
        if id >= self.floor
            && let Err(at) = self.ended.binary_search_by_key(&id, |(id, _)| *id)
        {
            self.ended.insert(at, (id, ending));
        }
        let incoming = self.incoming.remove(&id)?;
        self.memory -= incoming.memory();
        Some(incoming)
    }
}
