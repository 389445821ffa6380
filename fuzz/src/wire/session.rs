//! The packets of a session: SYMBOL and ANSWER.

use super::{DIRECTION, be, flipped};
use cloudburst_core::id::MessageId;
use cloudburst_core::wire::answer::{self, ANSWER_OVERHEAD};
use cloudburst_core::wire::packet::PREFIX_LEN;
use cloudburst_core::wire::seal::{OpenError, Opener, Sealer, TAG_LEN};
use cloudburst_core::wire::symbol::{SYMBOL_OVERHEAD, SymbolView, UNSCHEDULED_LEN};
use cloudburst_core::wire::{Kind, Prefix, Report, WireError};

/// The bytes of the longest index set.
const MAX_INDEX_SET: usize = 16;

pub(super) fn check_prefix(data: &[u8], prefix: &Prefix) {
    let mut again = Vec::new();
    prefix.write(&mut again);
    assert_eq!(again, data[..PREFIX_LEN]);
    assert_eq!((u64::from(prefix.session.0), prefix.number), (be(&data[4..8]), be(&data[8..14])));

    let payload_at = data.len().saturating_sub(TAG_LEN);
    let opened = open(&mut Opener::new(DIRECTION.clone()), data, payload_at);
    assert_eq!(opened, Err(OpenError::Forged), "it was never sealed");
}

pub(super) fn check_symbol(data: &[u8], view: &SymbolView<'_>) {
    assert_eq!((Ok(view.prefix), view.prefix.kind), (Prefix::parse(data), Kind::Symbol));
    let payload = data.len() - TAG_LEN - view.payload_at;
    let size = if view.prefix.probe { 0 } else { view.header.symbol_size.into() };
    assert_eq!(payload, size);
    let overhead = SYMBOL_OVERHEAD + if view.prefix.pulled { UNSCHEDULED_LEN } else { 0 };
    assert_eq!(data.len(), overhead + view.index_set.len() + payload);
    let mut again = Vec::new();
    view.header.write(&view.prefix, None, view.index_set, &mut again);
    assert_eq!(again, data[..view.payload_at]);
    check_length_of_symbol(data, view);
    seal_and_open(data, view.payload_at);
}

/// A SYMBOL states the size of its payload, so a byte less or more belongs to its index set.
fn check_length_of_symbol(data: &[u8], view: &SymbolView<'_>) {
    let len = data.len();
    let index_set = view.index_set.len();
    let [shorter, longer] = with_other_lengths(data);
    match SymbolView::parse(&shorter) {
        Ok(other) => {
            assert_eq!((other.prefix, other.header), (view.prefix, view.header));
            assert_eq!(other.index_set.len() + 1, index_set);
        }
        Err(error) => {
            assert_eq!(index_set, 0);
            assert_eq!(error, WireError::TooShort { needed: len, got: len - 1 });
        }
    }
    match SymbolView::parse(&longer) {
        Ok(other) => {
            assert_eq!((other.prefix, other.header), (view.prefix, view.header));
            assert_eq!(other.index_set.len(), index_set + 1);
        }
        Err(error) => {
            assert_eq!(index_set, if view.prefix.probe { 0 } else { MAX_INDEX_SET });
            assert_eq!(error, WireError::TooLong { expected: len, got: len + 1 });
        }
    }
}

pub(super) fn check_answer(data: &[u8], prefix: &Prefix, reports: &[Report]) {
    assert_eq!((Ok(*prefix), prefix.kind), (Prefix::parse(data), Kind::Answer));
    assert!(!reports.is_empty());
    let mut again = Vec::new();
    prefix.write(&mut again);
    for report in reports {
        let start = again.len();
        report.write(&mut again);
        assert_eq!(again.len() - start, report.len());
    }
    assert_eq!(again, data[..data.len() - TAG_LEN]);
    let len = data.len();
    assert_eq!(len, ANSWER_OVERHEAD + reports.iter().map(Report::len).sum::<usize>());

    let [shorter, longer] = with_other_lengths(data);
    let too_short = WireError::TooShort { needed: len, got: len - 1 };
    assert_eq!(answer::parse(&shorter), Err(too_short));
    assert!(answer::parse(&longer).is_err());
    for report in reports {
        if let Report::Ended(end) = report {
            assert!(end.rules_out(end.next) && end.rules_out(MessageId(u64::MAX)));
        }
    }
    seal_and_open(data, len - TAG_LEN);
}

/// Seals the packet's fields under the next number of a sender, and opens the result.
fn seal_and_open(data: &[u8], payload_at: usize) {
    let mut sealer = Sealer::new(DIRECTION.clone());
    let mut opener = Opener::new(DIRECTION.clone());
    let mut packet = data[..data.len() - TAG_LEN].to_vec();
    // Kind, flags, class and path stay. The sealer sets session and number.
    packet[4..8].copy_from_slice(&sealer.session().0.to_be_bytes());
    packet[8..PREFIX_LEN].copy_from_slice(&sealer.next_number().to_be_bytes()[2..]);
    let clear = packet.clone();
    sealer.seal(&mut packet, 0, payload_at);
    assert_eq!(packet.len(), data.len());
    assert_eq!(packet[..payload_at], clear[..payload_at], "headers travel in the clear");

    let [shorter, longer] = with_other_lengths(&packet);
    for damaged in [flipped(&packet, data), shorter, longer] {
        // A receiver locates the payload by the damaged packet's fields, if it parses at all.
        for payload_at in [Some(payload_at), place_of_payload(&damaged)].into_iter().flatten() {
            let opened = open(&mut opener, &damaged, payload_at);
            assert_eq!(opened, Err(OpenError::Forged), "it was damaged");
        }
    }

    assert_eq!(place_of_payload(&packet), Some(payload_at));
    let opened = open(&mut opener, &packet, payload_at);
    assert_eq!(opened.as_deref(), Ok(&clear[payload_at..]));
    assert_eq!(open(&mut opener, &packet, payload_at), Err(OpenError::Replayed));
}

/// Opens a copy of the packet, under the number that it states.
fn open(opener: &mut Opener, packet: &[u8], payload_at: usize) -> Result<Vec<u8>, OpenError> {
    let number = be(&packet[8..PREFIX_LEN]);
    opener.open(number, &mut packet.to_vec(), payload_at).map(|payload| payload.to_vec())
}

fn place_of_payload(packet: &[u8]) -> Option<usize> {
    let symbol = SymbolView::parse(packet).ok().map(|view| view.payload_at);
    symbol.or_else(|| answer::parse(packet).ok().map(|_| packet.len() - TAG_LEN))
}

/// The packet with a byte less, and with a byte more.
fn with_other_lengths(packet: &[u8]) -> [Vec<u8>; 2] {
    [packet[..packet.len() - 1].to_vec(), [packet, &[0]].concat()]
}
