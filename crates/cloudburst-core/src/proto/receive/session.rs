//! A session: messages in one direction, from one incarnation of one peer.

use super::answers::{ArrivalCounts, Counted, Report};
use super::elsewhere::Elsewhere;
use super::quota::PeerKey;
use super::routes::{PathPosition, Routes, TRIED_ROUTES};
use super::window::Window;
use crate::id::{Incarnation, MessageId, PathId, SessionId};
use crate::naming::address_of;
use crate::path::{PathResolver, Via};
use crate::proto::indexed::Indexed;
use crate::proto::limits::{IDLE_AFTER, KEPT_ARRIVALS, LEFT_FOR};
use crate::proto::marking::Class;
use crate::proto::round_trip::RoundTrip;
use crate::proto::session::{Discovery, Peering, Sighting};
use crate::proto::stats::ReceivedFrom;
use crate::time::Instant;
use crate::wire::keys::{DigestKey, FlowKeys};
use crate::wire::seal::{Opener, Sealer};
use crate::wire::{Capabilities, Prefix};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// How far the order of idle sessions may lag behind, so that it does not change with every
/// packet.
pub(super) const IDLE_GRAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Session {
    /// The name that the peer is known by: its address, or an alias.
    pub(super) peer: SocketAddr,
    /// The address at which it is: its validated IP address, and the port at which it alone accepts
    /// messages. At first that of its name; another once it has moved.
    pub(super) own: SocketAddr,
    /// Other addresses from which its packets have arrived, if any have.
    elsewhere: Option<Box<Elsewhere>>,
    /// Whether an address translator is in between, so that the peer is reachable only at the
    /// addresses from which its packets arrive.
    pub(super) translated: bool,
    /// Given to the sending half as soon as there is a route to the peer.
    pub(super) unadopted: Option<Box<Peering>>,
    pub(super) incarnation: Incarnation,
    /// Whether the incarnation has left.
    pub(super) has_left: bool,
    /// The peer's capabilities beyond this version.
    pub(super) capabilities: Capabilities,
    pub(super) opener: Opener,
    pub(super) sealer: Sealer,
    pub(super) digest: DigestKey,
    pub(super) last_heard: Instant,
    /// The number of the first packet that may begin a message. Those of messages that were given up are
    /// below.
    // A number and no list of such messages, which a peer could make as long as it likes. Packets of other
    // messages that a final one overtakes are answered by BUSY, and sent again.
    pub(super) begins_from: u64,
    pub(super) counts: ReceivedFrom,
    pub(super) window: Window,
    pub(super) routes: Routes,
    /// The round trip from a pull to the symbol that it requests.
    pub(super) pull_round_trip: RoundTrip,
    /// Arrivals of the messages delivered most recently, for the STOPs that answer late symbols.
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
            elsewhere: None,
            translated: false,
            unadopted: None,
            incarnation,
            has_left: false,
            capabilities,
            opener: if capabilities.has(Capabilities::TRIM) {
                Opener::with_header_tags(flow.symbols)
            } else {
                Opener::new(flow.symbols)
            },
            sealer: Sealer::new(flow.answers),
            digest: flow.digest,
            last_heard: now,
            begins_from: 0,
            counts: ReceivedFrom { session_since: Some(now), ..ReceivedFrom::default() },
            window: Window::new(),
            routes: Routes::default(),
            pull_round_trip: RoundTrip::default(),
            arrivals: VecDeque::new(),
        }
    }

    /// The holder of the quota that it counts against.
    pub(super) fn key(&self) -> PeerKey {
        PeerKey { incarnation: self.incarnation, ip: address_of(self.peer).ip() }
    }

    /// Records that an authentic packet arrived. `idle` is the order of idle sessions, in which
    /// this one is `name`.
    #[inline]
    pub(super) fn heard(
        &mut self,
        now: Instant,
        name: SessionId,
        idle: &mut Indexed<SessionId, Instant>,
    ) {
        self.last_heard = now;
        let at = self.forget_at();
        if idle.rank(name).is_some_and(|before| at.saturating_since(before) >= IDLE_GRAIN) {
            idle.set(name, Some(at));
        }
    }

    /// When it is forgotten, if nothing arrives until then.
    pub(super) fn forget_at(&self) -> Instant {
        self.last_heard + if self.has_left { LEFT_FOR } else { IDLE_AFTER }
    }

    /// Records that an authentic packet of `len` bytes on the peer's path `path` arrived by `via`.
    /// `position` is its position on the path, if it counts there. Returns what the sending half must learn:
    /// the routes, or that the peer may have moved.
    #[inline]
    pub(super) fn learn_route(
        &mut self,
        now: Instant,
        path: PathId,
        via: Via,
        len: usize,
        position: Option<PathPosition>,
    ) -> Option<Discovery> {
        let is_own = via.remote.ip() == self.own.ip();
        if !is_own {
            return self.learn_route_elsewhere(now, path, via, len, position);
        }
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.last_own = now;
        }
        let is_new = self.routes.learn(path, via, len, true, position);
        // For a peer that has an address of its own, trying a few is enough.
        let counts = is_new && (self.translated || self.routes.len() <= TRIED_ROUTES);
        counts.then(|| {
            Discovery::Routes(self.peer, self.incarnation, self.routes.vias(self.own.ip()))
        })
    }

    /// [`learn_route`](Self::learn_route) for a packet from an IP address at which the peer is not: it
    /// has several, it has moved, or a third party has forwarded the packet.
    #[cold]
    fn learn_route_elsewhere(
        &mut self,
        now: Instant,
        path: PathId,
        via: Via,
        len: usize,
        position: Option<PathPosition>,
    ) -> Option<Discovery> {
        let ip = via.remote.ip();
        let is_name = ip == address_of(self.peer).ip();
        let elsewhere = self.elsewhere.get_or_insert_with(Box::default);
        let validated = elsewhere.is_validated(ip);
        // Half of what a HELLO leaves for answers is its ALIVE, which takes a path of its own.
        let for_answers = if position.is_some() { len } else { len / 2 };
        self.routes.learn(path, via, for_answers, validated, position);
        elsewhere.asks(now, ip, is_name).then(|| {
            Discovery::Elsewhere(Box::new(Sighting {
                peer: self.peer,
                incarnation: self.incarnation,
                via,
                len,
            }))
        })
    }

    /// Records that the peer has proved to receive at `ip`.
    pub(super) fn validate(&mut self, ip: IpAddr) {
        if ip != self.own.ip() {
            self.elsewhere.get_or_insert_with(Box::default).validate(ip);
        }
        self.routes.validate(ip);
    }

    /// Records that the peer is at `ip` from now on, where it has proved to receive. Returns the
    /// routes by which its packets arrive from there.
    pub(super) fn move_to(&mut self, now: Instant, ip: IpAddr) -> Vec<Via> {
        self.routes.validate(ip);
        if ip != self.own.ip() {
            let elsewhere = self.elsewhere.get_or_insert_with(Box::default);
            elsewhere.validate(self.own.ip());
            elsewhere.forget(ip);
            elsewhere.last_own = now;
            self.own.set_ip(ip);
        }
        self.routes.vias(ip)
    }

    /// The newest route to each other address at which the peer has proved to receive.
    pub(super) fn alternates(&self) -> Vec<Via> {
        let Some(elsewhere) = &self.elsewhere else { return Vec::new() };
        let newest = |ip: &IpAddr| self.routes.vias(*ip).into_iter().next();
        elsewhere.validated().iter().filter_map(newest).collect()
    }

    /// Whether the peer is at another address than that of its name.
    pub(super) fn has_moved(&self) -> bool {
        self.own.ip() != address_of(self.peer).ip()
    }

    /// The next alternate reverse path for an answer of `len` bytes to a peer that has had none for
    /// long.
    pub(super) fn take_alternate(
        &mut self,
        len: usize,
        own: &dyn PathResolver,
    ) -> Option<(PathId, Via)> {
        if self.translated { self.routes.take(len) } else { self.routes.take_alternate(len, own) }
    }

    /// Appends a sealed ANSWER with these reports, which leaves by `path` in `class`.
    pub(super) fn write_answer<'a>(
        &mut self,
        reports: impl IntoIterator<Item = &'a Report>,
        class: Class,
        path: PathId,
        buffer: &mut Vec<u8>,
    ) {
        let at = buffer.len();
        let session = self.sealer.session();
        let number = self.sealer.next_number();
        Prefix::answer(class.0, path, session, number).write(buffer);
        reports.into_iter().for_each(|report| report.write(buffer));
        self.sealer.seal(buffer, at, buffer.len() - at);
        self.counts.answers_sent += 1;
    }

    /// The traffic received so far.
    pub(super) const fn received(&self) -> ReceivedFrom {
        ReceivedFrom { missing_symbols: self.routes.missing(), ..self.counts }
    }

    /// Keeps the arrivals of a delivered message for a while.
    pub(super) fn keep_arrivals(&mut self, id: MessageId, arrivals: &ArrivalCounts) {
        let full = self.arrivals.len() == KEPT_ARRIVALS;
        let (_, mut kept) =
            self.arrivals.pop_front_if(|_| full).unwrap_or((id, ArrivalCounts::default()));
        kept.copy(arrivals);
        self.arrivals.push_back((id, kept));
    }

    /// The arrivals of a delivered message, if it was one of the last. First adds `late`, the path
    /// of a late symbol and whether it had a CE mark; `None` for a late probe, which is no arrival.
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
