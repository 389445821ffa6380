//! STOP: lost ones are repeated, forged ones are ignored, and late symbols are answered.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::error::{Indeterminate, Outcome};
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Kind;
use cloudburst_netem::{LinkConfig, Loss};
use core::time::Duration;

fn dead() -> LinkConfig {
    LinkConfig { loss: Loss::Independent(1.0), ..Setup::default().link }
}

#[test]
fn lost_stops_are_repeated_for_late_symbols_and_deliver_only_once() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_links(Side::B, None, &lossy(0.9));
    let ids: Vec<_> = (1..50).map(|seed| pair.send(message(2_000, seed))).collect();
    pair.settle();
    assert!(ids.iter().all(|id| matches!(pair.a.outcomes[id], Outcome::Delivered(_))));
    assert_eq!(pair.b.inbox.len(), 50);
    assert!(pair.b.counters().receiver.stops_sent > 100);
}

#[test]
fn without_any_stop_the_outcome_is_unknown_at_the_deadline_though_the_message_arrived() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_links(Side::B, None, &dead());
    let start = pair.now;
    let options = SendOptions::default().deadline(Duration::from_secs(2));
    let id = pair.send_from(Side::A, message(5_000, 1), options);
    assert_eq!(pair.outcome(id), Outcome::Unknown(Indeterminate::Deadline));
    assert_eq!(pair.now.saturating_since(start), Duration::from_secs(2));
    assert_eq!(pair.b.inbox.len(), 2);
    // Only a few packets in two seconds of silence: the burst is degraded.
    assert!(pair.a.counters().sender.symbols_sent < 100, "{:?}", pair.a.counters().sender);
}

#[test]
fn an_oblivious_burst_stops_with_the_stop() {
    let mut pair = Pair::new(Setup::default());
    let options = SendOptions::default().policy(BurstPolicy::Oblivious);
    let id = pair.send_from(Side::A, message(93_000, 1), options);
    pair.outcome(id);
    let sent = pair.a.counters().sender.symbols_sent;
    assert!(sent > 66, "it bursts until STOP: {sent}");
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.a.counters().sender.symbols_sent, sent);
}

#[test]
fn an_oblivious_burst_that_nobody_hears_ends_at_its_caps() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_links(Side::A, None, &dead());
    let deadline = Duration::from_secs(5);
    let options = SendOptions::default().policy(BurstPolicy::Oblivious).deadline(deadline);
    let id = pair.send_from(Side::A, message(93_000, 1), options);
    let before = pair.a.counters().sender.symbols_sent;
    assert_eq!(pair.outcome(id), Outcome::Unknown(Indeterminate::Deadline));
    let sent = pair.a.counters().sender.symbols_sent - before;
    assert!((8 * 66..8 * 66 + 200).contains(&sent), "eight times, then a trickle: {sent}");
}

#[test]
fn a_burst_until_stop_keeps_its_rate_though_nobody_hears_it_and_ends_at_the_deadline() {
    let mut setup = Setup::default();
    setup.a.capacity = 10_000_000.into();
    setup.a.rate = 0.5.into();
    setup.a.tuning.max_redundancy = 2;
    let mut pair = Pair::new(setup);
    pair.deliver(message(1, 0));
    pair.set_links(Side::A, None, &dead());
    let deadline = Duration::from_secs(10);
    let options = SendOptions::default().policy(BurstPolicy::UntilStop).deadline(deadline);
    let id = pair.send_from(Side::A, message(20_000, 1), options);
    let bits = |pair: &Pair| {
        let sent = pair.a.counters().sender;
        8 * (sent.symbol_bytes_sent + 28 * sent.symbols_sent)
    };
    for second in 0..10 {
        let before = bits(&pair);
        pair.run_for(Duration::from_secs(1));
        let sent = bits(&pair) - before;
        assert!(sent.abs_diff(5_000_000) < 200_000, "in second {second}: {sent}");
    }
    assert_eq!(pair.outcome(id), Outcome::Unknown(Indeterminate::Deadline));
    let sent = pair.a.counters().sender.symbols_sent;
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.a.counters().sender.symbols_sent, sent);
}

#[test]
fn a_burst_until_stop_lasts_as_long_as_the_round_trip_and_not_longer() {
    let mut setup = Setup::default();
    setup.link.delay = Duration::from_millis(50);
    setup.a.capacity = 100_000_000.into();
    let mut pair = Pair::new(setup);
    pair.deliver(message(1, 0));
    for (policy, expected) in
        [(BurstPolicy::UntilStop, 800..1_000), (BurstPolicy::Oblivious, 32..100)]
    {
        let before = pair.a.counters().sender.symbols_sent;
        let options = SendOptions::default().policy(policy);
        let id = pair.send_from(Side::A, message(5_000, 1), options);
        assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
        let sent = pair.a.counters().sender.symbols_sent;
        assert!(expected.contains(&(sent - before)), "{policy}: {}", sent - before);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.a.counters().sender.symbols_sent, sent);
    }
}

#[test]
fn packets_are_bounded_in_rate_even_where_the_deadline_is_far() {
    let mut setup = Setup::default();
    setup.a.tuning.max_redundancy = 2;
    let mut pair = Pair::new(setup);
    pair.deliver(message(1, 0));
    pair.set_links(Side::A, None, &dead());
    let seconds = 300;
    let options = SendOptions::default().deadline(Duration::from_secs(seconds));
    let before = pair.a.counters().sender.symbols_sent;
    let id = pair.send_from(Side::A, message(93_000, 1), options);
    pair.outcome(id);
    let sent = pair.a.counters().sender.symbols_sent - before;
    assert!((10 * seconds..2 * 66 + 256 + 80 * seconds).contains(&sent), "{sent}");
}

#[test]
fn a_false_stop_is_not_believed() {
    // A stranger replays STOPs of another message, and sends noise of their shape.
    let mut pair = Pair::new(Setup::default());
    pair.tap = Some(Vec::new());
    pair.deliver(message(3_000, 1));
    let stops: Vec<_> = pair
        .tap
        .take()
        .unwrap()
        .into_iter()
        .filter(|(side, _, packet)| *side == Side::B && Kind::of(packet) == Ok(Kind::Answer))
        .collect();
    assert!(!stops.is_empty());
    pair.set_links(Side::A, None, &dead());
    let options = SendOptions::default().deadline(Duration::from_secs(1));
    let id = pair.send_from(Side::A, message(3_000, 2), options);
    pair.run_for(Duration::from_millis(10));
    for (_, via, packet) in &stops {
        let mut replayed = packet.clone();
        pair.a.endpoint.handle_datagram(pair.now, *via, &mut replayed);
        let mut forged = packet.clone();
        // Another message, and another number.
        forged[20] = id.0 as u8;
        forged[13] ^= 0x7f;
        pair.a.endpoint.handle_datagram(pair.now, *via, &mut forged);
    }
    assert_eq!(pair.outcome(id), Outcome::Unknown(Indeterminate::Deadline));
    let seen = pair.a.counters().sender;
    assert!(seen.replayed > 0 && seen.forged > 0, "{seen:?}");
    assert_eq!(pair.b.inbox.len(), 1);
}
