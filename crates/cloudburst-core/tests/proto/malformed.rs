//! Whatever packets arrive, nothing panics, only valid ones are answered, and the messages under
//! way arrive.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::path::Via;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::symbol::{SymbolView, TrimmedView};
use cloudburst_core::wire::{Kind, Prefix, answer};
use proptest::prelude::*;

/// Real packets of both directions: handshakes, symbols of two codes, STOPs, NACKs.
fn real_packets() -> Vec<(Side, Vec<u8>)> {
    let mut pair = Pair::new(Setup { link: crate::common::lossy(0.2), ..Setup::default() });
    pair.tap = Some(Vec::new());
    pair.send(message(20_000, 1));
    pair.send_from(Side::A, message(5_000, 2), SendOptions::default().code("lt".parse().unwrap()));
    pair.settle();
    pair.tap.take().unwrap().into_iter().map(|(side, _, packet)| (side, packet)).collect()
}

#[derive(Clone, Debug)]
enum Mutation {
    Flip(usize, u8),
    Truncate(usize),
    Extend(Vec<u8>),
    Swap(usize, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<usize>(), 1..=255_u8).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        any::<usize>().prop_map(Mutation::Truncate),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Mutation::Extend),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Mutation::Swap(a, b)),
    ]
}

fn mutate(packet: &mut Vec<u8>, mutation: &Mutation) {
    let len = packet.len().max(1);
    match mutation {
        Mutation::Flip(at, bits) => {
            if let Some(byte) = packet.get_mut(at % len) {
                *byte ^= bits;
            }
        }
        Mutation::Truncate(to) => packet.truncate(to % len),
        Mutation::Extend(tail) => packet.extend_from_slice(tail),
        Mutation::Swap(a, b) => {
            if !packet.is_empty() {
                packet.swap(a % len, b % len);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 2_000 } else { 20_000 }))]

    #[test]
    fn random_bytes_parse_or_are_refused_and_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0..=16_u8,
    ) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() && kind < 16 {
            *first = 0x20 | kind;
        }
        let _ = Kind::of(&bytes);
        let _ = Prefix::parse(&bytes);
        let _ = SymbolView::parse(&bytes);
        let _ = SymbolView::parse_tagged(&bytes);
        let _ = TrimmedView::parse(&bytes);
        if let Ok((prefix, reports)) = answer::parse(&bytes) {
            // A packet that parses is written back unchanged, except for the tag.
            let mut again = Vec::new();
            prefix.write(&mut again);
            reports.iter().for_each(|report| report.write(&mut again));
            prop_assert_eq!(&again[..], &bytes[..bytes.len() - 16]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_and_mutated_packets_disturb_nothing(
        noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..50),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), mutation()), 1..300),
        seed in any::<u64>(),
    ) {
        let packets = real_packets();
        let mut pair = Pair::new(Setup { seed, ..Setup::default() });
        let first = pair.send(message(20_000, 1));
        pair.run_for(core::time::Duration::from_micros(250));
        // Packets of another run with the same key and incarnations, but another session; noise;
        // and mutants of packets of this very session.
        pair.tap = Some(Vec::new());
        let second = pair.send(message(60_000, 2));
        pair.run_for(core::time::Duration::from_micros(400));
        let own = pair.tap.take().unwrap().into_iter().map(|(side, _, packet)| (side, packet));
        let packets: Vec<_> = own.chain(packets).collect();
        let sent_by_b = pair.link_stats(Side::B).sent;
        let inject = |pair: &mut Pair, side: Side, mut packet: Vec<u8>| {
            let via = Via { egress: 0, local: None, remote: side.address(1) };
            let now = pair.now;
            let to = if side == Side::A { &mut pair.b } else { &mut pair.a };
            to.endpoint.handle_datagram(now, via, &mut packet);
        };
        for bytes in noise {
            inject(&mut pair, Side::A, bytes.clone());
            inject(&mut pair, Side::B, bytes);
        }
        for (index, mutation) in &mutations {
            let (side, mut packet) = index.get(&packets).clone();
            let original = packet.clone();
            mutate(&mut packet, mutation);
            if packet != original {
                inject(&mut pair, side, packet);
            }
        }
        pair.drain();
        prop_assert_eq!(pair.link_stats(Side::B).sent, sent_by_b, "no stranger got an answer");
        for id in [first, second] {
            let outcome = pair.outcome(id);
            let delivered = matches!(outcome, cloudburst_core::error::Outcome::Delivered(_));
            prop_assert!(delivered, "{:?}", outcome);
        }
        prop_assert_eq!(pair.b.inbox.len(), 2);
    }
}
