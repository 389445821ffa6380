//! Sessions: answering handshakes, confirming a session by its first packet, evicting, forgetting.

use super::Receiver;
use super::answers::Report;
use super::session::Session;
use super::symbols::discovery;
use crate::config::Security;
use crate::id::{PathId, SessionId};
use crate::naming::{Naming, alias};
use crate::path::Via;
use crate::proto::marking;
use crate::proto::observe::{Observation, emit};
use crate::proto::session::{Chooser, Discovery, Peering, more_ports, ports};
use crate::time::Instant;
use crate::wire::handshake::{
    ANY_RETURN_PATH, Accept, AcceptFields, Hello, HelloKey, Open, OpenFields, Retry, Versions,
    other_hello,
};
use crate::wire::keys::{FlowKeys, SessionKeys};
use crate::wire::packet::VERSION;
use crate::wire::seal::{OpenError, Opener};
use std::net::{IpAddr, SocketAddr};

/// Of each group of this many answers to a handshake, the first returns on the path of its cause.
// Where few egresses lead back, drawing paths at random missed some for long: 6.5 s until new
// peers' messages arrived with three of four spines dead, and 2.1 s with all paths in turn.
const RETURN_EVERY: usize = 4;

/// The reply to a handshake packet, with the key of that packet: the endpoint may have others when the reply
/// leaves.
#[derive(Debug)]
pub(super) enum HandshakeReply {
    Retry(HelloKey, Retry),
    Accept(HelloKey, Accept),
    /// An ANSWER in a session, which says that the session is still held.
    Alive(SessionId, u64),
    /// The supported versions, in reply to a packet of another one.
    Versions(HelloKey, Versions),
}

/// A session of which no packet has arrived yet.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    pub(super) session: Session,
    backward: FlowKeys,
    ports: u16,
    /// See [`Peering::local`].
    local: Option<IpAddr>,
}

/// The contents of a packet that may confirm a session, and the peer of the session that it
/// confirms.
type Confirmed<T> = Result<(T, Option<Box<Peering>>), OpenError>;

impl Receiver {
    /// Adopts the backward direction of a session that the sending half opened.
    pub(in crate::proto) fn adopt(&mut self, now: Instant, peering: Peering) {
        let Peering { peer, incarnation, flow, capabilities, port, .. } = peering;
        let name = flow.symbols.session;
        let capabilities = self.config.capabilities_with(capabilities);
        let mut session = Session::new(now, peer, incarnation, flow, capabilities);
        session.own.set_port(port);
        let host = session.key().host();
        if !self.sessions.contains_key(&name) && self.has_session_capacity(now, host) {
            self.insert_session(now, name, session);
        }
    }

    /// Handles a HELLO that arrived by `via`. One that proves that it belongs to a session is as
    /// good as a symbol of it. Of any other, nothing is kept, because a third party may have
    /// replayed it. Returns what the sending half must learn: a new peer, or new routes to one.
    pub(in crate::proto) fn handle_hello(
        &mut self,
        now: Instant,
        via: Via,
        packet: &[u8],
    ) -> Option<Discovery> {
        if self.ended {
            return None;
        }
        let (key, hello) = match Hello::parse(&self.identity.hello_keys, packet) {
            Ok(Some(known)) => known,
            Ok(None) => {
                self.note_other_key(via);
                return None;
            }
            Err(_) => {
                self.counters.malformed += 1;
                return None;
            }
        };
        let name = hello.current;
        let open = |opener: &mut Opener| hello.open(packet, opener);
        let asked = match self.sessions.get_mut(&name) {
            Some(session) => Some(open(&mut session.opener).map(|()| None)),
            None => self
                .confirm(now, name, hello.number, open)
                .map(|confirmed| confirmed.map(|((), peering)| peering)),
        };
        let mut found = None;
        // The first reply returns on the path by which its cause arrived.
        let mut return_path = if hello.count == 0 { 0 } else { self.next_return_path() };
        let reply = if let Some(Ok(peering)) = asked {
            // A session that was refused for lack of capacity gets no reply.
            let session = self.sessions.get_mut(&name)?;
            let routes = session.learn_route(now, hello.path, via, packet.len(), None);
            found = discovery(session, peering).or(routes);
            return_path = if session.translated { 0 } else { return_path };
            session.heard(now, name, &mut self.idle);
            HandshakeReply::Alive(name, hello.nonce)
        } else if matches!(asked, Some(Err(OpenError::Replayed))) {
            // The session is alive. A RETRY would make its peer give it up.
            self.counters.replayed += 1;
            return None;
        } else if self.leaves_to_others() {
            return None;
        } else {
            let Hello { path, nonce, .. } = hello;
            HandshakeReply::Retry(self.key(key), self.retry(now, via, path, nonce, return_path))
        };
        self.reply(via, return_path, reply);
        found
    }

    /// Handles an OPEN that arrived by `via`. If its token shows that its sender receives there,
    /// and it is meant for this endpoint, creates a half-open session.
    pub(in crate::proto) fn handle_open(&mut self, now: Instant, via: Via, packet: &[u8]) {
        let (key, open) = match Open::parse(&self.identity.hello_keys, packet) {
            Ok(Some(known)) => known,
            Ok(None) => return self.note_other_key(via),
            Err(_) => return self.counters.malformed += 1,
        };
        if self.ended || self.leaves_to_others() {
            return;
        }
        // The process may have slept since the timer was due.
        self.half_open.expire(now);
        let ip = via.remote.ip();
        let return_path = if open.return_path == ANY_RETURN_PATH {
            self.next_return_path()
        } else {
            open.return_path
        };
        let reply = if !self.identity.token_key.holds(&open.token, millis(now), open.nonce, ip) {
            let Open { path, nonce, .. } = open;
            let retry = self.retry(now, via, path, nonce, return_path);
            HandshakeReply::Retry(self.key(key), Retry { token_refused: true, ..retry })
        } else if let Some(known) = self.half_open.known((ip, open.nonce)) {
            let Some((key, accept)) = known.accept(open.path) else { return };
            HandshakeReply::Accept(key, accept)
        } else {
            let Some(reply) = self.open(now, via, key, &open) else { return };
            reply
        };
        self.reply(via, return_path, reply);
    }

    /// Handles a packet of another version. If it is a HELLO under a key of this endpoint, its
    /// sender is told which version is supported.
    pub(in crate::proto) fn handle_other_version(&mut self, via: Via, packet: &[u8]) {
        self.counters.malformed += 1;
        if let Some((key, nonce)) = other_hello(&self.identity.hello_keys, packet) {
            let versions = Versions { nonce, versions: [VERSION].into_iter().collect() };
            self.reply(via, 0, HandshakeReply::Versions(self.key(key), versions));
        }
    }

    /// Uses other keys in handshakes that begin from now on.
    pub(in crate::proto) fn set_security(&mut self, security: &Security) {
        self.identity.set_security(security);
    }

    fn key(&self, index: usize) -> HelloKey {
        self.identity.hello_keys[index].clone()
    }

    /// Counts a handshake under another key. It is not answered, and its source may be forged.
    // An answer would tell scanners where Cloudburst listens.
    fn note_other_key(&mut self, via: Via) {
        self.counters.refused_handshakes += 1;
        self.refused_from = Some(via.remote);
    }

    /// Opens the session that `open` requests. Returns `None` if the OPEN gets no reply.
    fn open(&mut self, now: Instant, via: Via, key: usize, open: &Open) -> Option<HandshakeReply> {
        self.opened += 1;
        let count = self.opened;
        let ephemeral = self.ephemeral.draw();
        let Some((mut fields, response)) = open.read(self.identity.preshared(key), ephemeral)
        else {
            self.note_other_key(via);
            return None;
        };
        let naming = self.naming(fields.addressed, via);
        if naming == Naming::Foreign {
            self.counters.misdirected += 1;
            return None;
        }
        let name = self.identity.choose_session(Chooser::Responder, count, |taken| {
            self.sessions.contains_key(&taken) || self.half_open.contains(taken)
        });
        // An address translator forwards one port, and may by now forward it to another endpoint.
        let is_own = naming == Naming::Own;
        let (message, secrets) = response.accept(&AcceptFields {
            incarnation: self.identity.incarnation,
            session: name,
            capabilities: self.config.capabilities(),
            // If the port is not shared, the one that the peer already uses works.
            port: if self.config.ports.is_shared { self.config.ports.first } else { 0 },
            more_ports: if is_own { more_ports(self.config.ports.count) } else { 0 },
        });
        let keys = SessionKeys::new(&secrets, fields.session, name);
        let known = name_of(via.remote, &fields);
        // Messages for the one that has moved must not reach the one that has its address now.
        if self.is_name_of_moved(known, fields.incarnation) {
            fields.translated = true;
        }
        let peer = name_of(via.remote, &fields);
        let capabilities = self.config.capabilities_with(fields.capabilities);
        let mut session = Session::new(now, peer, fields.incarnation, keys.forward, capabilities);
        session.translated = fields.translated;
        let unconfirmed = Unconfirmed {
            session,
            backward: keys.backward,
            ports: if fields.translated { 1 } else { ports(fields.more_ports) },
            // No other address, because it may belong to one path (XPath): packets sent from it are
            // answered on that path alone.
            local: via.local.filter(|ip| !is_own || *ip == fields.addressed.ip().to_canonical()),
        };
        let opened_by = (via.remote.ip(), open.nonce);
        let key = self.key(key);
        self.half_open.insert(now, name, opened_by, unconfirmed, key.clone(), message);
        Some(HandshakeReply::Accept(key, Accept { path: open.path, nonce: open.nonce, message }))
    }

    /// Classifies `addressed`, the address to which packets of `via` claim to have been sent. Every
    /// host has the loopback addresses, so packets to them must have come from this host.
    fn naming(&self, addressed: SocketAddr, via: Via) -> Naming {
        let to = addressed.ip();
        let from = via.remote.ip();
        let source = SocketAddr::new(from, addressed.port());
        let of_any_host = to.is_loopback() || to.is_unspecified();
        if of_any_host && !from.is_loopback() && self.resolver.naming(source) != Naming::Own {
            return Naming::Foreign;
        }
        self.resolver.naming(addressed)
    }

    /// Whether handshakes are left to other endpoints at this port, because this one is closing.
    const fn leaves_to_others(&self) -> bool {
        self.closing && self.config.ports.is_shared
    }

    fn retry(&self, now: Instant, via: Via, path: PathId, nonce: u64, return_path: u8) -> Retry {
        let token = self.identity.token_key.issue(millis(now), nonce, via.remote.ip());
        Retry { path, token_refused: false, nonce, return_path, token, observed: via.remote }
    }

    /// The number of the next return path: neither 0 nor [`ANY_RETURN_PATH`].
    const fn next_return_path(&mut self) -> u8 {
        self.return_path = self.return_path % (ANY_RETURN_PATH - 1) + 1;
        self.return_path
    }

    /// Queues a reply to a packet that arrived by `via`.
    fn reply(&mut self, via: Via, return_path: u8, reply: HandshakeReply) {
        let via = self.reply_path(via, return_path.into());
        self.replies.push(via.remote.ip(), (via, reply));
    }

    /// The path of the reply to a handshake packet. Some replies return on the path by which the
    /// packet arrived, as firewalls expect. That path may be dead, so the others take all paths of
    /// our own in turn. Few of these may be alive: if paths were drawn at random, some would be
    /// missed for long.
    fn reply_path(&self, arrived: Via, return_path: usize) -> Via {
        if return_path.is_multiple_of(RETURN_EVERY) {
            return arrived;
        }
        let return_path = return_path - return_path / RETURN_EVERY;
        let paths = self.resolver.paths(arrived.remote, 1);
        let Some(pass) = return_path.checked_div(paths.len()) else { return arrived };
        // Packets arrive from several addresses in a pattern of their own. So that every path meets
        // every address, each pass but the first begins at a pseudorandom path.
        let start = (pass as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        paths[(return_path + start as usize) % paths.len()].leaving_from(arrived.local)
    }

    /// Appends a reply to a handshake. Returns its path, or `None` if its session is gone.
    pub(super) fn write_reply(
        &mut self,
        via: Via,
        reply: HandshakeReply,
        buffer: &mut Vec<u8>,
    ) -> Option<Via> {
        match reply {
            HandshakeReply::Retry(key, retry) => retry.write(&key, buffer),
            HandshakeReply::Accept(key, accept) => accept.write(&key, buffer),
            HandshakeReply::Versions(key, versions) => versions.write(&key, buffer),
            HandshakeReply::Alive(name, nonce) => {
                let session = self.sessions.get_mut(&name)?;
                let class = marking::control(&self.config).class;
                session.write_answer([&Report::Alive { nonce }], class, PathId(0), buffer);
            }
        }
        Some(via)
    }

    /// Opens the first packet of a session. It shows that the peer has received our ACCEPT, so the
    /// session begins. Returns the result of `open`, and the peer if there is capacity for the session.
    /// Returns `None` if there is no such handshake.
    pub(super) fn confirm<T>(
        &mut self,
        now: Instant,
        name: SessionId,
        number: u64,
        open: impl FnOnce(&mut Opener) -> Result<T, OpenError>,
    ) -> Option<Confirmed<T>> {
        let pending = self.half_open.get_mut(now, name)?;
        // A packet that was refused for lack of capacity must not begin a session when it is replayed.
        if pending.refused.is_some_and(|newest| number <= newest) {
            return Some(Err(OpenError::Replayed));
        }
        let session = &mut pending.session.as_mut()?.session;
        let host = session.key().host();
        let opened = match open(&mut session.opener) {
            Ok(opened) => opened,
            Err(error) => return Some(Err(error)),
        };
        if !self.has_session_capacity(now, host) {
            // The peer is alive and will retry: it must not take this endpoint for another
            // incarnation.
            self.half_open.refuse(now, name, number);
            return Some(Ok((opened, None)));
        }
        let Unconfirmed { mut session, backward, ports, local } =
            *self.half_open.get_mut(now, name)?.session.take()?;
        // The time from its ACCEPT. Without a sample, stalls of the first message would last 10 ms.
        session.pull_round_trip.sample(now.saturating_since(session.last_heard));
        session.last_heard = now;
        let peer = session.peer;
        let incarnation = session.incarnation;
        let port = session.peer.port();
        let capabilities = session.capabilities;
        self.insert_session(now, name, session);
        self.counters.sessions_confirmed += 1;
        emit(&self.observer, || Observation::SessionOpened { peer, sends: false });
        let flow = backward;
        let routes = Vec::new();
        let peering = Peering { peer, incarnation, flow, capabilities, port, ports, local, routes };
        Some(Ok((opened, Some(Box::new(peering)))))
    }
}

/// The name of an initiator that was seen at `observed`. Only an initiator that owns that address
/// may use it as its name: messages to an address must not reach a host that borrows it.
fn name_of(mut observed: SocketAddr, fields: &OpenFields) -> SocketAddr {
    if fields.translated {
        return alias(observed, fields.incarnation);
    }
    if fields.port != 0 {
        observed.set_port(fields.port);
    }
    observed
}

/// The time in milliseconds, as tokens state it.
const fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
