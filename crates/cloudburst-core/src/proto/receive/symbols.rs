//! Symbols: their sessions, their authentication, and the answers to them.

use super::Receiver;
use super::answers::{Answer, Verdict};
use super::routes::PathPosition;
use super::session::Session;
use crate::id::{MessageId, SessionId};
use crate::path::Via;
use crate::proto::session::{Discovery, Peering};
use crate::time::Instant;
use crate::wire::seal::OpenError;
use crate::wire::symbol::{SymbolView, TrimmedView};
use crate::wire::{Prefix, SymbolHeader};

/// An authentic symbol, and its session.
pub(super) struct Symbol<'a> {
    pub(super) session: SessionId,
    pub(super) prefix: Prefix,
    pub(super) header: SymbolHeader,
    pub(super) index_set: &'a [u8],
    pub(super) payload: &'a [u8],
    pub(super) packet_len: usize,
    /// Whether it arrived with a CE mark.
    pub(super) ce: bool,
    /// Whether it counts as an arrival on its path: it is neither a probe nor a copy of a packet
    /// that was already counted when it arrived trimmed.
    pub(super) is_arrival: bool,
}

impl Receiver {
    /// Handles a SYMBOL that arrived by `via`; `ce` says whether it had a CE mark. The contents of
    /// `packet` are unspecified afterwards. Returns what the sending half must learn: a new peer,
    /// to which it needs no handshake, or new routes to one.
    pub(in crate::proto) fn handle_symbol(
        &mut self,
        now: Instant,
        via: Via,
        ce: bool,
        packet: &mut [u8],
    ) -> Option<Discovery> {
        // Nothing is delivered any more: the peers have been told so.
        if self.ended {
            return None;
        }
        let tagged = self.config.trimmable && self.has_header_tag(packet);
        let shape =
            if tagged { SymbolView::parse_tagged(packet) } else { SymbolView::parse(packet) };
        let Ok(view) = shape else {
            let trimmed = if tagged { TrimmedView::parse(packet).ok() } else { None };
            if let Some(view) = trimmed {
                return self.handle_trimmed(now, via, view, packet.len());
            }
            self.counters.malformed += 1;
            return None;
        };
        let prefix = view.prefix;
        let header = view.header;
        let payload_at = view.payload_at;
        let index_set_at = payload_at - view.index_set.len();
        let name = prefix.session;
        let (payload_len, confirmed) = self.open_symbol(now, &prefix, packet, payload_at)?;
        // Without capacity for its session, the packet gets no answer.
        let session = self.sessions.get(&name)?;
        let len = packet.len();
        let symbol = Symbol {
            session: name,
            prefix,
            header,
            index_set: &packet[index_set_at..payload_at],
            payload: &packet[payload_at..payload_at + payload_len],
            packet_len: len,
            ce,
            is_arrival: !(prefix.probe || session.opener.was_trimmed(prefix.number)),
        };
        let found = self.hear(now, via, len, &symbol, !prefix.probe, confirmed);
        if !prefix.probe {
            self.take_symbol(now, &symbol);
        } else if prefix.is_final {
            self.give_up(now, &symbol);
        } else if self.reach_message(now, &symbol) {
            self.note_probe(now, &symbol, header.symbol);
        }
        self.pull(now);
        found
    }

    /// Records an authentic packet of `len` bytes. `counts` says whether it shows that earlier
    /// packets on its path have arrived or are lost. Returns what the sending half must learn.
    #[inline]
    pub(super) fn hear(
        &mut self,
        now: Instant,
        via: Via,
        len: usize,
        Symbol { prefix, header, .. }: &Symbol<'_>,
        counts: bool,
        confirmed: Option<Box<Peering>>,
    ) -> Option<Discovery> {
        let session = self.sessions.get_mut(&prefix.session)?;
        self.counters.symbols_received += 1;
        session.counts.symbols_received += 1;
        session.heard(now, prefix.session, &mut self.idle);
        let position = counts.then_some(PathPosition {
            class: prefix.class,
            path_number: header.path_number,
            packet: prefix.number,
        });
        let routes = session.learn_route(now, prefix.path, via, len, position);
        let found = discovery(session, confirmed).or(routes);
        let low_watermark = header.low_watermark();
        let rises = low_watermark > session.window.low_watermark;
        if rises {
            self.raise_low_watermark(prefix.session, low_watermark);
        }
        found
    }

    /// Opens the payload of a symbol in place. Returns its length, and the peer that it confirms.
    fn open_symbol(
        &mut self,
        now: Instant,
        prefix: &Prefix,
        packet: &mut [u8],
        payload_at: usize,
    ) -> Option<(usize, Option<Box<Peering>>)> {
        let opened = match self.sessions.get_mut(&prefix.session) {
            Some(session) => {
                let payload = session.opener.open(prefix.number, packet, payload_at);
                Some(payload.map(|payload| (payload.len(), None)))
            }
            None => self.confirm(now, prefix.session, prefix.number, |opener| {
                opener.open(prefix.number, packet, payload_at).map(|payload| payload.len())
            }),
        };
        self.count_opened(opened)
    }

    /// Counts a packet that could not be opened.
    pub(super) fn count_opened<T>(&mut self, opened: Option<Result<T, OpenError>>) -> Option<T> {
        let counter = match opened {
            Some(Ok(opened)) => return Some(opened),
            Some(Err(OpenError::Replayed)) => &mut self.counters.replayed,
            Some(Err(OpenError::Forged)) => &mut self.counters.forged,
            None => &mut self.counters.unknown_session,
        };
        *counter += 1;
        None
    }

    /// Drops messages older than `low_watermark`, with which the peer has finished.
    fn raise_low_watermark(&mut self, name: SessionId, low_watermark: MessageId) {
        let dropped =
            self.update(name, |session| session.window.raise_low_watermark(low_watermark));
        for (id, mut incoming) in dropped.into_iter().flatten() {
            self.detach(name, id, &mut incoming);
            self.recycler.put_message(incoming);
        }
    }

    /// Answers a symbol, with no more bytes than it had.
    pub(super) fn answer_to(&mut self, symbol: &Symbol<'_>, verdict: Verdict) {
        self.answer(
            symbol.session,
            Some(symbol.prefix),
            Answer {
                message: symbol.header.message,
                block: symbol.header.block,
                acknowledged: symbol.prefix.number,
                verdict,
            },
            symbol.packet_len,
        );
    }
}

/// What the sending half must learn of a session in which a packet has arrived: the peer, as soon
/// as there is a route to it.
#[inline]
pub(super) fn discovery(
    session: &mut Session,
    confirmed: Option<Box<Peering>>,
) -> Option<Discovery> {
    let mut peering = confirmed.or_else(|| session.unadopted.take())?;
    peering.routes = session.routes.vias(session.own.ip());
    if session.translated && peering.routes.is_empty() {
        session.unadopted = Some(peering);
        return None;
    }
    Some(Discovery::Peer(peering))
}
