//! Symbols that switches have trimmed: they are lost, but the receiver knows it (NDP; SCDP, section
//! IV-B).

use super::Receiver;
use super::answers::{Counted, Verdict};
use super::incoming::Incoming;
use super::pulling::PullCredit;
use super::quota::HostKey;
use super::symbols::Symbol;
use crate::path::Via;
use crate::proto::session::Discovery;
use crate::time::Instant;
use crate::wire::seal::Opener;
use crate::wire::symbol::{PROBE_LEN, TrimmedView};
use crate::wire::{Capabilities, Prefix, SymbolHeader};

impl Receiver {
    /// Whether a SYMBOL belongs to a session whose symbols carry header tags. Called only if the
    /// configuration allows such tags, because it looks up the session.
    pub(super) fn has_header_tag(&self, packet: &[u8]) -> bool {
        let Some(name) = Prefix::session_of(packet) else { return false };
        let capabilities = match self.sessions.get(&name) {
            Some(session) => Some(session.capabilities),
            None => self.half_open.get(name).map(|unconfirmed| unconfirmed.session.capabilities),
        };
        capabilities.is_some_and(|capabilities| capabilities.has(Capabilities::TRIM))
    }

    /// Handles a trimmed SYMBOL that arrived by `via`. Returns what the sending half must learn.
    pub(super) fn handle_trimmed(
        &mut self,
        now: Instant,
        via: Via,
        view: TrimmedView<'_>,
        packet_len: usize,
    ) -> Option<Discovery> {
        let TrimmedView { prefix, header, authenticated, tag } = view;
        let verify = |opener: &mut Opener| opener.verify_header(prefix.number, authenticated, tag);
        let opened = match self.sessions.get_mut(&prefix.session) {
            Some(session) => Some(verify(&mut session.opener).map(|()| ((), None))),
            None => self.confirm(now, prefix.session, prefix.number, verify),
        };
        let ((), confirmed) = self.count_opened(opened)?;
        // Without capacity for its session, the packet gets no answer.
        if !self.sessions.contains_key(&prefix.session) {
            return None;
        }
        self.counters.symbols_trimmed += 1;
        let symbol = Symbol {
            session: prefix.session,
            prefix,
            header,
            index_set: &[],
            payload: &[],
            // Leaves no bytes for arrivals in the answer: the sender would take those that fit for
            // all of them.
            packet_len: packet_len.min(PROBE_LEN),
            ce: false,
            is_arrival: true,
        };
        // It may have overtaken earlier packets on its path.
        let counts = false;
        let found = self.hear(now, via, packet_len, &symbol, counts, confirmed);
        self.take_trimmed(now, &symbol);
        self.pull(now);
        found
    }

    /// Handles an authentic trimmed symbol, which may be the first packet of its message to arrive.
    fn take_trimmed(&mut self, now: Instant, symbol: &Symbol<'_>) {
        if !self.reach_message(now, symbol) {
            return;
        }
        let key = (symbol.session, symbol.header.message);
        let Some(session) = self.sessions.get_mut(&key.0) else { return };
        let rto = session.pull_round_trip.rto();
        let host = HostKey::of(session.peer.ip());
        let Some(incoming) = session.window.receiving(key.1) else { return };
        // An arrival, so that a congested path does not seem dead.
        incoming.arrivals.add(symbol.prefix.path, false);
        if let Some(digest) = incoming.block_digest(symbol.header.block) {
            let arrivals = incoming.arrivals.report();
            return self.answer_to(symbol, Verdict::BlockDone { digest, arrivals });
        }
        let Loss { symbols, unfinished } = note_loss(now, incoming, &symbol.header);
        self.counters.symbols_lost += u64::from(symbols);
        self.pulls.update(incoming, host, rto, key);
        if symbol.prefix.ack_request {
            // The packet may have overtaken symbols sent before it, so its ACK request counts as a
            // probe.
            self.note_probe(now, symbol, symbol.header.symbol.saturating_add(1));
        } else if let Some(PullCredit { credit, fin, .. }) = unfinished {
            let arrivals = Counted::new();
            self.answer_to(symbol, Verdict::Pull { credit, fin, arrivals });
        }
    }
}

/// The loss that a trimmed symbol reveals.
#[derive(Default)]
struct Loss {
    /// How many more symbols are lost.
    symbols: u32,
    /// The credit of the block, if its sender may have been told that no more symbols will be
    /// pulled. The sender must not take a receiver whose pull waits in the queue for unresponsive.
    unfinished: Option<PullCredit>,
}

/// Counts a trimmed symbol as lost, if its message is pulled.
fn note_loss(now: Instant, incoming: &mut Incoming, header: &SymbolHeader) -> Loss {
    let SymbolHeader { block, symbol, unscheduled, .. } = *header;
    let is_wanted = incoming.needed(block).is_some();
    let Some((pulling, layout)) = incoming.pulling().filter(|_| is_wanted) else {
        return Loss::default();
    };
    let was_final = pulling.credit(block).fin;
    let symbols = pulling.on_trimmed(now, block, symbol, unscheduled.into(), layout);
    let credit = pulling.credit(block);
    Loss { symbols, unfinished: (was_final && !credit.fin).then_some(credit) }
}
