//! One direction of messages from one incarnation of one peer.

use super::incoming::Incoming;
use super::routes::Routes;
use crate::id::{Digest, Incarnation, MessageId, PathId};
use crate::proto::limits::KEPT_ARRIVALS;
use crate::proto::stats::ReceivedFrom;
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys};
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Answer, Arrivals, Prefix, RejectReason, Role};
use foldhash::{HashMap, HashMapExt};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

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
    pub(super) routes: Routes,
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
            routes: Routes::default(),
            floor: MessageId(0),
            ended: BTreeMap::new(),
            arrivals: VecDeque::new(),
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
