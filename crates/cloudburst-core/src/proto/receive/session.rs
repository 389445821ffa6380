//! One direction of messages from one incarnation of one peer.

use super::answers::{ArrivalCounts, Counted, Report};
use super::deadlines::QUIET_GRAIN;
use super::held::PeerKey;
use super::routes::{Place, Routes, TRIED_ROUTES};
use super::window::Window;
use crate::id::{Incarnation, MessageId, PathId, SessionId};
use crate::path::{PathMap, Via, address_of};
use crate::proto::limits::KEPT_ARRIVALS;
use crate::proto::marking::Class;
use crate::proto::round_trip::RoundTrip;
use crate::proto::session::{Discovery, Peering};
use crate::proto::stats::ReceivedFrom;
use crate::proto::timers::Timers;
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys, HEADER_TAG_LEN};
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Capabilities, Prefix};
use std::collections::VecDeque;
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Session {
    /// The name that the peer is known by: its address, or an alias.
    pub(super) peer: SocketAddr,
    /// Where it is seen: its validated IP address, and the port where it takes messages and nobody
    /// else does.
    pub(super) own: SocketAddr,
    /// It is reached only where its packets come from: a translator is between.
    pub(super) translated: bool,
    /// What the sending half is told as soon as there is a way to the peer.
    pub(super) unadopted: Option<Box<Peering>>,
    pub(super) incarnation: Incarnation,
    /// What the peer can do beyond this version.
    pub(super) capabilities: Capabilities,
    pub(super) opener: Opener,
    pub(super) sealer: Sealer,
    pub(super) digest: DigestKey,
    pub(super) last_heard: Instant,
    /// Where the order of quiet sessions has it: no earlier than `QUIET_GRAIN` before it was heard last.
    pub(super) quiet: Option<Instant>,
    pub(super) tally: ReceivedFrom,
    pub(super) window: Window,
    pub(super) routes: Routes,
    /// The round trip from a pull to the symbol that it requests.
    pub(super) pull_round_trip: RoundTrip,
    /// Arrivals of the messages that were delivered last, for the STOPs that answer late symbols.
    arrivals: VecDeque<(MessageId, ArrivalCounts)>,
}

impl Session {
    pub(super) fn new(
        now: Instant,
        peer: SocketAddr,
        incarnation: Incarnation,
        flow: FlowKeys,
        capabilities: Capabilities,
    ) -> Self {
        Self {
            peer,
            own: address_of(peer),
            translated: false,
            unadopted: None,
            incarnation,
            capabilities,
            opener: if capabilities.has(Capabilities::TRIM) {
                Opener::with_header_tags(flow.symbols)
            } else {
                Opener::new(flow.symbols)
            },
            sealer: Sealer::new(flow.answers),
            digest: flow.digest,
            last_heard: now,
            quiet: None,
            tally: ReceivedFrom { session_since: Some(now), ..ReceivedFrom::default() },
            window: Window::new(),
            routes: Routes::default(),
            pull_round_trip: RoundTrip::default(),
            arrivals: VecDeque::new(),
        }
    }

    /// Whose quota it counts against.
    pub(super) const fn key(&self) -> PeerKey {
        PeerKey { incarnation: self.incarnation, ip: self.own.ip() }
    }

    /// Bytes of the header tag of its symbols.
    pub(super) const fn header_tag_len(&self) -> usize {
        if self.capabilities.has(Capabilities::TRIM) { HEADER_TAG_LEN } else { 0 }
    }

    /// Records that something authentic arrived. The order of quiet sessions is `quiet`, where this one
    /// is `name`.
    #[inline]
    pub(super) fn heard(&mut self, now: Instant, name: SessionId, quiet: &mut Timers<SessionId>) {
        self.last_heard = now;
        if self.quiet.is_some_and(|at| now.saturating_since(at) >= QUIET_GRAIN) {
            quiet.set(&mut self.quiet, Some(now), name);
        }
    }

    /// Records that an authentic packet of `len` bytes of the peer's path `path` came by `via`; `counted`:
    /// the place that it has on its path. Returns what the sending half must know of that.
    #[inline]
    pub(super) fn learn_route(
        &mut self,
        path: PathId,
        via: Via,
        len: usize,
        counted: Option<Place>,
    ) -> Option<Discovery> {
        let validated = via.remote.ip() == self.own.ip();
        let is_new = self.routes.learn(path, via, len, validated, counted);
        // Of a peer that has an address of its own, a few are enough to try.
        let counts = is_new && (self.translated || self.routes.len() <= TRIED_ROUTES);
        counts.then(|| {
            Discovery::Routes(self.peer, self.incarnation, self.routes.vias(self.own.ip()))
        })
    }

    /// The next way back for an answer of `len` bytes to a peer that has had none for long.
    pub(super) fn take_alternate(
        &mut self,
        len: usize,
        own: &dyn PathMap,
    ) -> Option<(PathId, Via)> {
        if self.translated { self.routes.take(len) } else { self.routes.take_alternate(len, own) }
    }

    /// Appends an ANSWER with these reports, sealed, that leaves by `path` in `class`.
    pub(super) fn write_answer<'a>(
        &mut self,
        reports: impl IntoIterator<Item = &'a Report>,
        class: Class,
        path: PathId,
        buffer: &mut Vec<u8>,
    ) {
        let at = buffer.len();
        let (session, number) = (self.sealer.session(), self.sealer.next_number());
        Prefix::answer(class.0, path, session, number).write(buffer);
        reports.into_iter().for_each(|report| report.write(buffer));
        self.sealer.seal(buffer, at, buffer.len() - at);
        self.tally.answers_sent += 1;
    }

    /// What has come so far.
    pub(super) const fn received(&self) -> ReceivedFrom {
        ReceivedFrom { missing_symbols: self.routes.missing(), ..self.tally }
    }

    /// Keeps the arrivals of a message that was delivered, for a while.
    pub(super) fn keep_arrivals(&mut self, id: MessageId, arrivals: &ArrivalCounts) {
        let full = self.arrivals.len() == KEPT_ARRIVALS;
        let (_, mut kept) =
            self.arrivals.pop_front_if(|_| full).unwrap_or((id, ArrivalCounts::default()));
        kept.copy(arrivals);
        self.arrivals.push_back((id, kept));
    }

    /// The arrivals of a delivered message, if it was one of the last. Adds a late symbol by its path,
    /// with a CE mark or without; a late probe has none, as it is no arrival.
    pub(super) fn count_late(&mut self, id: MessageId, late: Option<(PathId, bool)>) -> Counted {
        let Some((_, arrivals)) = self.arrivals.iter_mut().rev().find(|(kept, _)| *kept == id)
        else {
            return Counted::new();
        };
        if let Some((path, ce)) = late {
            arrivals.add(path, ce);
        }
        arrivals.report()
    }
}
