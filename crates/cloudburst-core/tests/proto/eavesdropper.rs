//! An observer of all packets learns addresses, sizes and headers, but nothing of the contents of
//! messages.

use crate::common::{Pair, Setup, Side, message};
use bytes::Bytes;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::symbol::SymbolView;
use cloudburst_core::wire::{Kind, Report, Verdict, answer};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// All packets of `kind` while A sends `bytes` to B.
fn packets(pair: &mut Pair, kind: Kind, bytes: &Bytes, options: SendOptions) -> Vec<Vec<u8>> {
    pair.tap = Some(Vec::new());
    pair.send_from(Side::A, bytes.clone(), options);
    pair.settle();
    let all = pair.tap.take().unwrap().into_iter().map(|(.., packet)| packet);
    all.filter(|packet| Kind::of(packet) == Ok(kind)).collect()
}

#[test]
fn symbols_show_the_length_of_a_message_and_none_of_its_bytes() {
    let bytes = message(20_000, 1);
    let clear: HashSet<&[u8]> = bytes.windows(8).collect();
    for code in ["rlf256", "lt", "lt-systematic"] {
        let mut pair = Pair::new(Setup::default());
        let options = SendOptions::default().code(code.parse().unwrap());
        let symbols = packets(&mut pair, Kind::Symbol, &bytes, options);
        assert!(symbols.len() > 14 && pair.b.inbox[0].bytes == bytes);
        for packet in symbols {
            assert!(packet.windows(8).all(|seen| !clear.contains(seen)), "{code}");
            assert_eq!(SymbolView::parse(&packet).unwrap().header.length, 20_000);
        }
    }
}

#[test]
fn the_same_message_has_another_digest_each_time() {
    let mut pair = Pair::new(Setup::default());
    let bytes = message(1_000, 1);
    let mut digests = BTreeSet::new();
    for _ in 0..2 {
        for _ in 0..2 {
            let answers = packets(&mut pair, Kind::Answer, &bytes, SendOptions::default());
            let reports = answers.iter().flat_map(|packet| answer::parse(packet).unwrap().1);
            digests.extend(reports.filter_map(|report| match report {
                Report::Message(answer) => match answer.verdict {
                    Verdict::Delivered { digest, .. } => Some(digest.0),
                    _ => None,
                },
                _ => None,
            }));
        }
        // The IDs begin again, and so do the packet numbers.
        pair.restart(Side::A);
    }
    assert_eq!((pair.b.inbox.len(), digests.len()), (4, 4));
}

#[test]
fn each_handshake_has_ephemeral_keys_of_its_own() {
    let mut pair = Pair::new(Setup::default());
    pair.tap = Some(Vec::new());
    for seed in 0..3 {
        pair.deliver(message(10, seed));
        // Both ends forget the session.
        pair.run_for(Duration::from_secs(700));
    }
    assert_eq!(pair.a.counters().sender.sessions_opened, 3);
    let tap = pair.tap.take().unwrap();
    for (kind, at) in [(Kind::Open, 28), (Kind::Accept, 12)] {
        let of_kind = tap.iter().filter(|(.., packet)| Kind::of(packet) == Ok(kind));
        // By nonce, because copies of a packet have the same one.
        let keys: BTreeMap<&[u8], &[u8]> =
            of_kind.map(|(.., packet)| (&packet[4..12], &packet[at..at + 32])).collect();
        let distinct: BTreeSet<&[u8]> = keys.values().copied().collect();
        assert_eq!((keys.len(), distinct.len()), (3, 3), "{kind:?}");
    }
}
