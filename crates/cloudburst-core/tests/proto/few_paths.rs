//! Handshakes where most paths silently drop all packets: a message arrives if any path can carry
//! it.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::rng::SplitMix64;
use core::time::Duration;

const EGRESSES: u16 = 16;

/// A pair, in which a path from an egress to one of the other side is alive if `is_alive` returns
/// true.
fn pair(seed: u64, is_alive: impl Fn(Side, u16, u16) -> bool) -> Pair {
    let mut pair = Pair::new(Setup { seed, paths: EGRESSES, ..Setup::default() });
    for from in [Side::A, Side::B] {
        for (egress, to) in
            (0..EGRESSES).flat_map(|egress| (0..EGRESSES).map(move |to| (egress, to)))
        {
            pair.link(from, egress, to).set_down(!is_alive(from, egress, to));
        }
    }
    pair
}

/// Sends a message to an unknown peer. Returns how long that took, if it arrived.
fn meet(mut pair: Pair, seed: u64) -> Option<Duration> {
    let start = pair.now;
    let length = [1_500, 20_000, 93_000][seed as usize % 3];
    let id = pair.send(message(length, seed));
    pair.outcome(id);
    (pair.a.delivered() == 1).then(|| pair.now.saturating_since(start))
}

#[test]
fn where_ports_are_hashed_onto_one_living_path_of_four_all_meet_that_can() {
    let mut cut_off = 0;
    for seed in 0..1_000 {
        let alive = |from: Side, egress: u16, to: u16| {
            let ports = u64::from(egress) << 16 | u64::from(to) << 32 | (from as u64 + 1) << 48;
            let drawn = SplitMix64::new(SplitMix64::new(seed).next_u64() ^ ports).next_u64();
            drawn.is_multiple_of(4)
        };
        // HELLOs go to one port, and answers return to the source of a HELLO.
        let there = (0..EGRESSES).filter(|&egress| alive(Side::A, egress, 0));
        let back = |to: u16| (0..EGRESSES).any(|egress| alive(Side::B, egress, to));
        let can = there.into_iter().any(back);
        cut_off += u32::from(!can);
        let took = meet(pair(seed, alive), seed);
        assert_eq!(took.is_some(), can, "{seed}");
        assert!(took.is_none_or(|took| took < Duration::from_secs(5)), "{seed}: {took:?}");
    }
    // (3/4)^16 is one in a hundred.
    assert!((1..30).contains(&cut_off), "{cut_off}");
}

#[test]
fn whichever_one_egress_leads_back_is_found() {
    for seed in 0..10 * u64::from(EGRESSES) {
        let egress_back = (seed % u64::from(EGRESSES)) as u16;
        let alive = |from, egress, _| match from {
            Side::A => u64::from(egress % 4) == seed / 16 % 4,
            Side::B => egress == egress_back,
        };
        let took = meet(pair(seed, alive), seed);
        let limit = Duration::from_millis(1_500);
        assert!(took.is_some_and(|took| took < limit), "{seed}: {took:?}");
    }
}
