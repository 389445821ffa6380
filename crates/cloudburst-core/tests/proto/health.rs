//! Paths that deliver nothing are degraded to a trickle, and recover once they deliver again.

use crate::common::peer::{accept_by_hand, accept_fields};
use crate::common::{KEY, Pair, Setup, Side, lossy, message};
use bytes::Bytes;
use cloudburst_core::config::{BurstPolicy, Config, ListenPorts, Security, Tuning};
use cloudburst_core::error::Outcome;
use cloudburst_core::id::{Incarnation, MessageId, PathId};
use cloudburst_core::path::{Egresses, Order, PathStats, Via};
use cloudburst_core::proto::{Event, SendOptions, Transceiver};
use cloudburst_core::rng::{Seed, SplitMix64};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::answer::NONE_ACKNOWLEDGED;
use cloudburst_core::wire::seal::Sealer;
use cloudburst_core::wire::{Answer, Arrivals, Prefix, Report, Verdict};
use cloudburst_netem::LinkConfig;
use core::time::Duration;

const SIZES: [usize; 4] = [1_300, 5_000, 20_000, 93_000];

/// Trains of one length: learned lengths would affect the number of packets on each path.
fn even_trains() -> Setup {
    let a =
        Config { tuning: Tuning { train: 4, ..Setup::default().a.tuning }, ..Setup::default().a };
    Setup { a, ..Setup::default() }
}

/// The paths from A to B.
fn paths(pair: &Pair) -> &[PathStats] {
    pair.a.endpoint.paths(Side::B.address(0))
}

fn degraded(pair: &Pair) -> Vec<usize> {
    let paths = paths(pair).iter().enumerate();
    paths.filter(|(_, path)| path.degraded).map(|(at, _)| at).collect()
}

/// The number of packets on each path while `count` messages of `length` bytes are delivered, one
/// after the other.
fn deliver(pair: &mut Pair, count: u64, length: usize) -> Vec<u64> {
    let sent = |pair: &Pair| paths(pair).iter().map(|path| path.sent).collect::<Vec<_>>();
    let before = sent(pair);
    for seed in 0..count {
        pair.deliver(message(length, seed));
    }
    let before = before.into_iter().chain(core::iter::repeat(0));
    sent(pair).iter().zip(before).map(|(now, before)| now - before).collect()
}

fn set_dead(pair: &mut Pair, dead: u16, down: bool) {
    (0..dead).for_each(|path| pair.set_down(path, down));
}

#[test]
fn with_one_two_or_three_of_four_dead_packets_are_hardly_more_than_the_living_need() {
    for one_way in [true, false] {
        for length in SIZES {
            let needed: u64 = deliver(&mut Pair::new(Setup::default()), 100, length).iter().sum();
            for dead in 1..4 {
                let mut pair = Pair::new(Setup::default());
                deliver(&mut pair, 20, length);
                if one_way {
                    (0..dead).for_each(|path| pair.set_links(Side::A, Some(path), &lossy(1.0)));
                } else {
                    set_dead(&mut pair, dead, true);
                }
                deliver(&mut pair, 40, length);
                assert_eq!(degraded(&pair), (0..usize::from(dead)).collect::<Vec<_>>());
                let sent = deliver(&mut pair, 100, length);
                let (dead, living) = sent.split_at(usize::from(dead));
                let ratio = sent.iter().sum::<u64>() as f64 / needed as f64;
                println!("{length} bytes, one way {one_way}: {ratio:.2}, {dead:?} {living:?}");
                // If a path is dead in both directions, an answer is lost on it now and then, and
                // the silence costs a symbol for each path: much for short messages, little for
                // long ones.
                let limit = if one_way || length > 5_000 { 1.25 } else { 2.5 };
                assert!(ratio < limit, "{ratio}: {sent:?}");
                // Each is probed all the time.
                assert!(dead.iter().all(|&sent| sent > 0), "{sent:?}");
                let probes = *dead.iter().max().unwrap() as f64;
                let trickle = 0.4 * *living.iter().min().unwrap() as f64;
                assert!(probes < trickle, "{sent:?}");
            }
        }
    }
}

#[test]
fn a_path_is_degraded_within_a_few_round_trips_and_has_its_share_again_within_a_few() {
    let mut times = Vec::new();
    for dead in 1..4 {
        let mut pair = Pair::new(even_trains());
        deliver(&mut pair, 10, 20_000);
        let round_trip = paths(&pair).iter().find_map(|path| path.round_trip).unwrap();
        assert!((90..400).contains(&round_trip.as_micros()), "{round_trip:?}");
        // Messages queue up, so there is always one to send.
        for seed in 0..3_000 {
            pair.send(message(20_000, seed));
        }
        set_dead(&mut pair, dead, true);
        let died = pair.now;
        let all: Vec<usize> = (0..usize::from(dead)).collect();
        pair.run(|pair| degraded(pair) == all);
        let degraded_after = pair.now.saturating_since(died);
        pair.run_for(Duration::from_millis(20));
        set_dead(&mut pair, dead, false);
        let healed = pair.now;
        pair.run(|pair| degraded(pair).is_empty());
        let full = pair.now.saturating_since(healed);
        times.push((dead, degraded_after, full));
        let before: Vec<u64> = paths(&pair).iter().map(|path| path.sent).collect();
        pair.run_for(Duration::from_millis(10));
        let more = paths(&pair).iter().zip(before).map(|(path, before)| path.sent - before);
        let more: Vec<u64> = more.collect();
        let least = *more.iter().min().unwrap();
        let most = *more.iter().max().unwrap();
        assert!(least * 10 > most * 7, "full shares: {more:?}");
        pair.settle();
        assert_eq!(pair.a.delivered(), 3_010);
    }
    println!("dead, until degraded, from healed to full rate: {times:?}");
    for (_, degraded_after, full) in times {
        assert!(degraded_after < Duration::from_millis(4), "{degraded_after:?}");
        assert!(full < Duration::from_millis(4), "{full:?}");
    }
}

#[test]
fn messages_one_at_a_time_find_a_healed_path_within_its_sixteenth_turn() {
    for length in SIZES {
        let mut pair = Pair::new(even_trains());
        set_dead(&mut pair, 3, true);
        deliver(&mut pair, 60, length);
        assert_eq!(degraded(&pair), [0, 1, 2]);
        set_dead(&mut pair, 3, false);
        let mut messages = 0;
        while !degraded(&pair).is_empty() {
            messages += deliver(&mut pair, 1, length).len() / 4;
            // A message may take no more than one turn, of four paths.
            assert!(messages <= 4 * 16 + 16, "{length}: {:?}", paths(&pair));
        }
        let sent = deliver(&mut pair, 40, length);
        assert!(sent.iter().min().unwrap() * 10 > sent.iter().max().unwrap() * 7, "{sent:?}");
    }
}

#[test]
fn a_path_that_loses_a_fifth_is_not_degraded_and_reports_its_loss() {
    for length in SIZES {
        let mut pair = Pair::new(Setup { seed: length as u64, ..even_trains() });
        pair.set_links(Side::A, Some(1), &lossy(0.2));
        pair.set_links(Side::B, Some(1), &lossy(0.2));
        let sent = deliver(&mut pair, 400, length);
        let least = *sent.iter().min().unwrap();
        assert!(least * 10 > sent.iter().max().unwrap() * 7, "{length}: {sent:?}");
        let loss: Vec<u16> = paths(&pair).iter().map(|path| path.loss_permille).collect();
        assert!((80..350).contains(&loss[1]), "{length}: {loss:?}");
    }
}

#[test]
fn loss_on_all_paths_alike_condemns_none_for_long() {
    let mut pair = Pair::new(Setup { link: lossy(0.2), ..Setup::default() });
    let sent = deliver(&mut pair, 300, 20_000);
    assert!(sent.iter().min().unwrap() * 10 > sent.iter().max().unwrap() * 7, "{sent:?}");
}

#[test]
fn a_path_that_loses_only_answers_is_not_degraded() {
    for length in SIZES {
        let mut pair = Pair::new(even_trains());
        for path in 0..3 {
            pair.set_links(Side::B, Some(path), &lossy(1.0));
        }
        let sent = deliver(&mut pair, 100, length);
        assert_eq!(degraded(&pair), []);
        assert!(sent.iter().min().unwrap() * 10 > sent.iter().max().unwrap() * 7, "{sent:?}");
    }
}

#[test]
fn one_path_there_and_another_back_are_enough() {
    for length in SIZES {
        let mut pair = Pair::new(Setup::default());
        deliver(&mut pair, 20, length);
        for path in 0..4 {
            if path != 1 {
                pair.set_links(Side::A, Some(path), &lossy(1.0));
            }
            if path != 2 {
                pair.set_links(Side::B, Some(path), &lossy(1.0));
            }
        }
        for seed in 0..20 {
            let receipt = pair.deliver(message(length, seed));
            assert!(receipt.completed_in < Duration::from_millis(60), "{receipt:?}");
        }
    }
}

#[test]
fn bursts_that_end_unanswered_degrade_no_path() {
    // Each is sent eight times over, and its STOP reports only the first symbols: those of the path
    // on which every burst begins.
    let a = Config { policy: BurstPolicy::Oblivious, ..Config::default() };
    for order in ["rrb", "rb", "drb:2x2"] {
        let a = Config { order: order.parse::<Order>().unwrap(), ..a.clone() };
        let mut pair = Pair::new(Setup { a, ..Setup::default() });
        for length in [1, 1_300, 2_600, 20_000] {
            for seed in 0..100 {
                pair.deliver(message(length, seed));
                assert_eq!(degraded(&pair), [], "{order}, {length}");
            }
        }
    }
}

#[test]
fn a_path_that_is_always_too_late_is_degraded_until_messages_are_long_enough_for_it() {
    let mut pair = Pair::new(even_trains());
    let slow = LinkConfig { delay: Duration::from_millis(2), ..lossy(0.0) };
    pair.set_links(Side::A, Some(3), &slow);
    deliver(&mut pair, 100, 20_000);
    assert_eq!(degraded(&pair), [3]);
    let sent = deliver(&mut pair, 2, 4_000_000);
    assert_eq!(degraded(&pair), []);
    assert!(sent[3] * 10 > sent[0] * 7, "{sent:?}");
    let path = &paths(&pair)[3];
    assert!(path.round_trip.is_some_and(|took| took > Duration::from_millis(2)), "{path:?}");
}

#[test]
fn when_nothing_arrives_no_path_is_blamed_and_all_are_used() {
    let mut pair = Pair::new(Setup::default());
    deliver(&mut pair, 20, 20_000);
    set_dead(&mut pair, 4, true);
    let options = SendOptions::default().deadline(Duration::from_secs(30));
    pair.send_from(Side::A, message(93_000, 1), options);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(degraded(&pair), []);
    set_dead(&mut pair, 4, false);
    pair.settle();
    assert_eq!(pair.a.delivered(), 21);
}

#[test]
fn when_the_last_living_path_dies_the_degraded_ones_are_tried_at_once() {
    let mut pair = Pair::new(Setup::default());
    set_dead(&mut pair, 3, true);
    deliver(&mut pair, 20, 20_000);
    assert_eq!(degraded(&pair), [0, 1, 2]);
    // Path 1 heals when path 3 dies.
    pair.set_down(1, false);
    pair.set_down(3, true);
    for seed in 0..20 {
        let receipt = pair.deliver(message(20_000, seed));
        assert!(receipt.completed_in < Duration::from_millis(20), "{receipt:?}");
    }
    assert_eq!(degraded(&pair), [0, 2, 3]);
}

#[test]
fn health_survives_a_restart_of_the_peer() {
    let mut pair = Pair::new(even_trains());
    set_dead(&mut pair, 2, true);
    deliver(&mut pair, 20, 20_000);
    pair.restart(Side::B);
    let doubtful = pair.send(message(1, 1));
    pair.outcome(doubtful);
    deliver(&mut pair, 20, 20_000);
    assert_eq!(degraded(&pair), [0, 1]);
    set_dead(&mut pair, 2, false);
    deliver(&mut pair, 20, 20_000);
    assert_eq!(degraded(&pair), []);
}

#[test]
fn a_receiver_that_lies_about_arrivals_harms_nothing_but_its_own_messages() {
    let config = Config::default();
    let security = Security::pre_shared(KEY);
    let map = Box::new(Egresses(4));
    let mut sender =
        Transceiver::new(config, ListenPorts::one(7000), &security, Seed::new([3; 32]), map)
            .unwrap();
    let liar = Via { egress: 0, local: None, remote: ([10, 0, 0, 2], 7000).into() };
    let mut now = Instant::from_nanos(1_000_000_000);
    let mut packet = Vec::new();
    let options = SendOptions::default();
    let first = sender.send(now, liar.remote, Bytes::from_static(&[1; 1_000]), &options).unwrap();
    // Nor is there such a path.
    let fields = accept_fields(Incarnation([9; 16]));
    let flow = accept_by_hand(&mut sender, now, PathId(77), &fields).forward;
    let mut sealer = Sealer::new(flow.answers.clone());
    let mut rng = SplitMix64::new(4);
    let mut say = |sender: &mut Transceiver, now, message, digest| {
        let arrivals: Vec<_> = (0..rng.below(8))
            .map(|_| Arrivals {
                path: PathId(rng.below(6) as u16 * [1, 1, 1, 13_000][rng.below(4) as usize]),
                count: rng.next_u64() as u16 >> rng.below(16),
                marked: rng.next_u64() as u8,
            })
            .collect();
        let acknowledged = [rng.below(2_000), NONE_ACKNOWLEDGED, 0][rng.below(3) as usize];
        let verdict = match digest {
            Some(digest) => Verdict::Delivered { digest, arrivals },
            None => Verdict::Nack { needed: rng.below(9) as u16, arrivals },
        };
        let answer = Answer { message, block: 0, acknowledged, verdict };
        let mut packet = Vec::new();
        Prefix::answer(0, PathId(0), sealer.session(), sealer.next_number()).write(&mut packet);
        Report::Message(answer).write(&mut packet);
        let payload_at = packet.len();
        sealer.seal(&mut packet, 0, payload_at);
        sender.handle_datagram(now, liar, &mut packet);
    };
    let bytes = [1; 1_000];
    let mut delivered = 0;
    for id in first.0..500 {
        let message = MessageId(id);
        for _ in 0..8 {
            packet.clear();
            while sender.poll_transmit(now, &mut packet).is_some() {
                packet.clear();
            }
            say(&mut sender, now, message, None);
            now += Duration::from_micros(700);
            sender.handle_timeout(now);
        }
        let digest = flow.digest.message(message, &[flow.digest.block(message, 0, &bytes)]);
        say(&mut sender, now, message, Some(digest));
        while let Some(event) = sender.poll_event() {
            delivered += usize::from(matches!(event, Event::Ended(_, Outcome::Delivered(_))));
        }
        sender.send(now, liar.remote, Bytes::from_static(&[1; 1_000]), &options).unwrap();
    }
    assert_eq!(delivered, 500);
    let paths = sender.paths(liar.remote);
    assert_eq!(paths.len(), 4);
    assert!(paths.iter().all(|path| path.sent > 100 && path.loss_permille <= 1000), "{paths:?}");
}
