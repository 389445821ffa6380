//! Messages of any size arrive once, byte for byte, and receipts report their cost.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::code::Code;
use cloudburst_core::config::{BurstPolicy, Config, Tuning};
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Kind;

const LENGTHS: [usize; 10] = [0, 1, 2, 1400, 1401, 2816, 2817, 5_000, 20_000, 93_000];

#[test]
fn messages_of_all_sizes_arrive_over_a_perfect_network_with_no_wasted_wait() {
    let mut pair = Pair::new(Setup::default());
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        let sent = message(length, seed as u64);
        let receipt = pair.deliver(sent.clone());
        assert_eq!(pair.b.inbox.pop().unwrap().bytes, sent);
        assert_eq!((receipt.bytes, receipt.blocks), (length, 1));
        assert!(receipt.redundancy() <= 1.1, "{receipt:?}");
        let arrived: usize = receipt.arrivals.iter().map(|on| usize::from(on.count)).sum();
        assert!((receipt.source_symbols..=receipt.packets).contains(&arrived), "{receipt:?}");
    }
    assert_eq!(pair.b.inbox.len(), 0);
    assert_eq!(pair.b.endpoint.receive_memory(), 0);
}

#[test]
fn every_code_and_policy_delivers() {
    let codes = ["rlf256", "lt", "lt:robust", "lt:ideal", "lt:uniform=9", "lt-systematic"];
    for code in codes.into_iter().chain(cfg!(feature = "raptorq").then_some("raptorq")) {
        for policy in [BurstPolicy::Oblivious, BurstPolicy::default()] {
            let code: Code = code.parse().unwrap();
            let mut pair = Pair::new(Setup::default());
            let options = SendOptions::default().code(code).policy(policy);
            for (seed, length) in [0, 1, 1340, 5_000, 93_000].into_iter().enumerate() {
                let sent = message(length, seed as u64);
                let id = pair.send_from(Side::A, sent.clone(), options);
                let outcome = pair.outcome(id);
                assert!(matches!(outcome, Outcome::Delivered(_)), "{code} {length} {outcome:?}");
                assert_eq!(pair.b.inbox.pop().unwrap().bytes, sent, "{code} {length}");
            }
        }
    }
}

#[test]
fn the_papers_largest_message_is_one_block_in_packets_of_1500_bytes() {
    let mut pair = Pair::new(Setup::default());
    pair.tap = Some(Vec::new());
    let receipt = pair.deliver(message(93_000, 1));
    assert_eq!(receipt.blocks, 1);
    let largest = pair.tap.unwrap().iter().map(|(_, _, packet)| packet.len()).max().unwrap();
    assert!(largest + 28 <= 1500, "{largest} bytes of UDP payload, and 28 of headers");
}

#[test]
fn larger_messages_go_as_blocks_a_few_at_a_time() {
    let mut pair = Pair::new(Setup::default());
    for (seed, length) in [(1, 200_000), (2, 1_000_000), (3, 5_000_001)] {
        let sent = message(length, seed);
        let receipt = pair.deliver(sent.clone());
        assert!(receipt.blocks > 1);
        assert_eq!(pair.b.inbox.pop().unwrap().bytes, sent);
    }
    assert_eq!(pair.b.endpoint.receive_memory(), 0);
}

#[test]
fn both_sides_send_at_once_and_answers_need_no_second_handshake() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(10, 1));
    let peer = pair.b.inbox[0].peer;
    assert_eq!(peer, Side::A.address(0));
    for seed in 0..20 {
        pair.send_from(Side::A, message(3_000, seed), SendOptions::default());
        pair.send_from(Side::B, message(3_000, seed), SendOptions::default());
    }
    pair.settle();
    assert_eq!((pair.a.inbox.len(), pair.b.inbox.len()), (20, 21));
    assert_eq!(pair.b.counters().sender.handshakes_sent, 0);
    assert_eq!(pair.a.counters().sender.handshakes_sent, 3, "HELLO over two paths, and one OPEN");
}

#[test]
fn the_rate_bounds_what_all_messages_send_together() {
    // 100 messages of 93 KB are 9.9 MB on the wire: 0.79 s at 100 Mb/s.
    let a = Config { capacity: 100_000_000.into(), ..Config::default() };
    let mut pair = Pair::new(Setup { a, ..Setup::default() });
    pair.deliver(message(1, 0));
    let start = pair.now;
    for seed in 0..100 {
        pair.send(message(93_000, seed));
    }
    pair.settle();
    let sent = pair.a.counters().sender;
    let bits = (sent.symbol_bytes_sent + sent.symbols_sent * 28) * 8;
    let seconds = pair.now.saturating_since(start).as_secs_f64();
    let rate = bits as f64 / seconds;
    assert!((0.97e8..1.01e8).contains(&rate), "{rate} bits per second");
    assert_eq!(pair.a.delivered(), 101);
}

#[test]
fn the_shortest_message_goes_first() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let long: Vec<_> = (0..10).map(|seed| pair.send(message(93_000, seed))).collect();
    let short = pair.send(message(500, 99));
    pair.outcome(short);
    assert!(long.iter().all(|id| !pair.a.outcomes.contains_key(id)));
    pair.settle();
    assert_eq!(pair.a.delivered(), 12);
}

#[test]
fn symbols_are_spread_evenly_over_all_paths() {
    let mut pair = Pair::new(Setup { paths: 4, ..Setup::default() });
    for seed in 0..16 {
        pair.deliver(message(93_000, seed));
    }
    let stats = pair.a.endpoint.paths(Side::B.address(0));
    let sent: Vec<u64> = stats.iter().map(|path| path.sent).collect();
    let min = sent.iter().min().unwrap();
    let max = sent.iter().max().unwrap();
    assert!(*max - *min <= 16 * 4, "{sent:?}");
    assert!(stats.iter().all(|path| path.arrived > 0 && path.last_heard.is_some()));
}

#[test]
fn a_small_message_goes_over_many_paths_until_they_are_known_to_be_alive() {
    let mut pair = Pair::new(Setup { paths: 4, ..Setup::default() });
    let receipt = pair.deliver(message(5_000, 1));
    assert!(receipt.packets == 4 && receipt.arrivals.len() >= 3, "{receipt:?}");
    (2..6).for_each(|seed| drop(pair.deliver(message(20_000, seed))));
    for seed in 6..10 {
        let receipt = pair.deliver(message(5_000, seed));
        assert_eq!((receipt.packets, receipt.arrivals.len()), (4, 1), "{receipt:?}");
    }
    pair.run_for(core::time::Duration::from_secs(2));
    assert!(pair.deliver(message(5_000, 10)).arrivals.len() >= 3, "it was long ago");
}

#[test]
fn packets_visit_paths_in_the_order_that_was_chosen() {
    // Paths 0 and 1 share one uplink, 2 and 3 the other.
    for (order, expected) in
        [("drb:2x2", [0, 2, 1, 3]), ("drb:fat-tree:4", [0, 2, 1, 3]), ("rrb", [0, 1, 2, 3])]
    {
        let a = Config {
            order: order.parse().unwrap(),
            tuning: Tuning { train: 1, ..Setup::default().a.tuning },
            ..Setup::default().a
        };
        let mut pair = Pair::new(Setup { a, ..Setup::default() });
        pair.tap = Some(Vec::new());
        for seed in 0..3 {
            pair.deliver(message(30_001, seed));
        }
        // HELLOs and messages alike, because the pair has one position in its order. An OPEN goes to
        // the source of its RETRY.
        let tap = pair.tap.take().unwrap();
        let egresses: Vec<u16> = tap
            .iter()
            .filter(|(from, _, packet)| *from == Side::A && Kind::of(packet) != Ok(Kind::Open))
            .map(|(_, via, _)| via.egress)
            .collect();
        let start = expected.iter().position(|&egress| egress == egresses[0]).unwrap();
        let turns = expected.iter().cycle().skip(start);
        assert!(
            egresses.len() > 60 && egresses.iter().zip(turns).all(|(a, b)| a == b),
            "{egresses:?}"
        );
    }
}

#[test]
fn random_paths_deliver_too() {
    let a = Config { order: "rb".parse().unwrap(), ..Setup::default().a };
    let mut pair = Pair::new(Setup { a, link: crate::common::lossy(0.1), ..Setup::default() });
    for seed in 0..16 {
        pair.deliver(message(93_000, seed));
    }
    assert!(pair.a.endpoint.paths(Side::B.address(0)).iter().all(|path| path.arrived > 100));
}
