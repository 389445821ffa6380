//! The log of the bytes that a host received from each address and sent to it: no host floods a third party.

use super::trace::hash;
use cloudburst_core::wire::answer::{self, NONE_ACKNOWLEDGED};
use cloudburst_core::wire::keys::HEADER_TAG_LEN;
use cloudburst_core::wire::seal::TAG_LEN;
use cloudburst_core::wire::symbol::{
    MIN_SYMBOL_LEN, SYMBOL_OVERHEAD, TrimmedView, UNSCHEDULED_LEN,
};
use cloudburst_core::wire::{Answer, Kind, Prefix, Report, Verdict};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Maximum ratio of bytes sent to an unvalidated address to bytes received from it (RFC 9000,
/// section 8.1).
const AMPLIFICATION: usize = 3;

/// Bytes of a STOP without arrivals. A trimmed symbol may be shorter.
const STOP_LEN: usize = 63;

/// The traffic of all hosts in their present lives.
#[derive(Debug, Default)]
pub(crate) struct TrafficLog {
    /// By host: bytes that it may answer with, and bytes that it has answered with.
    answers: HashMap<usize, (usize, usize)>,
    /// By host and address: bytes that came from there, and bytes that went there.
    traffic: HashMap<(usize, IpAddr), (usize, usize)>,
    /// The hashes of all packets, and of all headers of symbols, that endpoints sent.
    made: HashSet<u64>,
}

impl TrafficLog {
    /// Notes that `host` has lost its memory: no answers are pending, and no address is validated.
    pub(crate) fn on_restarted(&mut self, host: usize) {
        self.answers.remove(&host);
        self.traffic.retain(|(of, _), _| *of != host);
    }

    pub(crate) fn on_arrival(&mut self, host: usize, from: IpAddr, packet: &[u8]) {
        self.traffic.entry((host, from)).or_default().0 += packet.len();
        let owed = &mut self.answers.entry(host).or_default().0;
        if self.made.contains(&hash(packet)) {
            *owed += packet.len();
        } else if TrimmedView::parse(packet).is_ok()
            && header(packet).is_some_and(|header| self.made.contains(&hash(header)))
        {
            *owed += packet.len().max(STOP_LEN);
        }
    }

    /// Notes that a message has entered the application's queue at `host`. A message that found the
    /// queue full is answered only when it enters.
    pub(crate) fn on_message(&mut self, host: usize) {
        self.answers.entry(host).or_default().0 += MIN_SYMBOL_LEN;
    }

    /// # Panics
    ///
    /// If `host` sends more bytes of answers, PULLs excluded, than genuine packets entitle it to, or
    /// too many bytes to an address that is not `known`: one without a host.
    pub(crate) fn on_departure(&mut self, host: usize, to: IpAddr, known: bool, packet: &[u8]) {
        self.made.insert(hash(packet));
        self.made.extend(header(packet).map(hash));
        if !matches!(Kind::of(packet), Ok(Kind::Hello | Kind::Open | Kind::Symbol)) {
            let (asked, answered) = self.answers.entry(host).or_default();
            *answered += packet.len() - pulls(packet);
            assert!(answered <= asked, "host {host} answers {answered} bytes, allowed: {asked}");
        }
        let (received, sent) = self.traffic.entry((host, to)).or_default();
        *sent += packet.len();
        let may = AMPLIFICATION * *received;
        assert!(known || *sent <= may, "host {host} sends {sent} bytes to {to}, allowed: {may}");
    }
}

/// The header of a SYMBOL, with its tag if it has one.
fn header(packet: &[u8]) -> Option<&[u8]> {
    let prefix = Prefix::parse(packet).ok().filter(|prefix| prefix.kind == Kind::Symbol)?;
    let unasked = if prefix.pulled { UNSCHEDULED_LEN } else { 0 };
    packet.get(..SYMBOL_OVERHEAD - TAG_LEN + unasked + HEADER_TAG_LEN)
}

/// Bytes of an ANSWER that answer no packet: those of PULLs, which are paced, and repeated when
/// nothing arrives.
fn pulls(packet: &[u8]) -> usize {
    let is_pull = |report: &&Report| match report {
        Report::Message(Answer { verdict: Verdict::Pull { .. }, acknowledged, .. }) => {
            *acknowledged == NONE_ACKNOWLEDGED
        }
        _ => false,
    };
    let Ok((_, reports)) = answer::parse(packet) else { return 0 };
    let pulls: usize = reports.iter().filter(is_pull).map(Report::len).sum();
    if reports.iter().all(|report| is_pull(&report)) { packet.len() } else { pulls }
}
