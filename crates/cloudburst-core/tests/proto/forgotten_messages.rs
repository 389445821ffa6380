//! Receivers that forget: a message with some blocks decoded begins again, and sessions in use are
//! not evicted.

use crate::common::peer::Liar;
use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::Config;
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Verdict;
use core::time::Duration;

fn patient() -> SendOptions {
    SendOptions::default().deadline(Duration::from_secs(120))
}

#[test]
fn a_message_of_many_blocks_survives_a_blackout_in_which_the_receiver_forgot_it() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let sent = message(1_000_000, 1);
    let id = pair.send_from(Side::A, sent.clone(), patient());
    pair.run_for(Duration::from_millis(4));
    for path in 0..4 {
        pair.set_down(path, true);
    }
    pair.run_for(Duration::from_secs(40));
    assert_eq!(pair.b.counters().receiver.decoders_expired, 1);
    for path in 0..4 {
        pair.set_down(path, false);
    }
    let healed = pair.now;
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)), "{:?}", pair.a.outcomes[&id]);
    assert!(pair.now.saturating_since(healed) < Duration::from_secs(1));
    assert_eq!(pair.b.inbox.len(), 2);
    assert_eq!(pair.b.inbox[1].bytes, sent);
    assert!(pair.b.counters().receiver.forgotten_sent > 0);
    assert_eq!(pair.b.endpoint.receive_memory(), 0);
}

#[test]
fn a_session_confirmed_alive_does_not_expire_soon_after() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.run_for(Duration::from_secs(100));
    // After so long an idle time, the sender checks the session first. The message itself never
    // leaves.
    let id = pair.send(message(1, 1));
    pair.run_for(Duration::from_micros(60));
    pair.a.endpoint.cancel(id);
    pair.run_for(Duration::from_secs(25));
    pair.deliver(message(1, 2));
    assert_eq!(pair.b.inbox.last().unwrap().bytes, message(1, 2));
}

#[test]
fn a_burst_of_any_policy_stops_while_the_receiver_is_busy() {
    use cloudburst_core::config::BurstPolicy::{Oblivious, UntilStop};
    for policy in [Oblivious, UntilStop] {
        let mut setup = Setup::default();
        setup.b.tuning.receive_messages = Some(1);
        let mut pair = Pair::new(setup);
        pair.b.takes = false;
        pair.deliver(message(1, 0));
        let id = pair.send_from(Side::A, message(20_000, 1), patient().policy(policy));
        pair.run_for(Duration::from_millis(100));
        let before = pair.a.counters().sender;
        pair.run_for(Duration::from_secs(2));
        let after = pair.a.counters().sender;
        assert_eq!(after.symbols_sent, before.symbols_sent, "{policy}");
        let probes = after.probes_sent - before.probes_sent;
        assert!((2..=5).contains(&probes), "{policy}: {probes}");
        pair.b.takes = true;
        pair.b.take_all(pair.now);
        pair.outcome(id);
        assert_eq!(pair.a.delivered(), 2);
    }
}

#[test]
fn probing_a_busy_receiver_does_not_use_up_the_packets_of_a_message() {
    let mut setup = Setup::default();
    setup.a.tuning.max_redundancy = 2;
    setup.b.tuning.receive_messages = Some(1);
    let mut pair = Pair::new(setup);
    pair.b.takes = false;
    pair.deliver(message(1, 0));
    let id = pair.send_from(Side::A, message(100, 1), patient());
    pair.run_for(Duration::from_secs(60));
    // The STOP that the freed queue triggers is lost: only a probe can trigger another.
    pair.set_links(
        Side::B,
        None,
        &cloudburst_netem::LinkConfig {
            loss: cloudburst_netem::Loss::Independent(1.0),
            ..Setup::default().link
        },
    );
    pair.b.takes = true;
    pair.b.take_all(pair.now);
    pair.run_for(Duration::from_millis(1));
    pair.set_links(Side::B, None, &Setup::default().link);
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
}

#[test]
fn a_late_forgotten_costs_a_repetition_and_no_message() {
    for moment in 0..40 {
        let mut setup = Setup::default();
        setup.b.tuning.decode_timeout = Duration::from_secs(2);
        let mut pair = Pair::new(setup);
        pair.deliver(message(1, 0));
        let id = pair.send_from(Side::A, message(600_000, 1), patient());
        pair.run_for(Duration::from_micros(3_000));
        for path in 0..4 {
            pair.set_down(path, true);
        }
        pair.run_for(Duration::from_secs(5));
        // The answers on two paths are slow, and outdated when they arrive.
        let slow = cloudburst_netem::LinkConfig {
            delay: Duration::from_micros(1_000 + moment * 150),
            ..Setup::default().link
        };
        pair.set_links(Side::B, Some(1), &slow);
        pair.set_links(Side::B, Some(2), &slow);
        for path in 0..4 {
            pair.set_down(path, false);
        }
        let healed = pair.now;
        assert!(matches!(pair.outcome(id), Outcome::Delivered(_)), "{:?}", pair.a.outcomes[&id]);
        assert!(pair.now.saturating_since(healed) < Duration::from_secs(1), "{moment}");
    }
}

#[test]
fn a_straggler_that_begins_a_message_anew_does_not_hide_that_it_was_forgotten() {
    let mut peer = Liar::meet(Config::default());
    // Two blocks. The sender knows that the first was decoded before the receiver forgot it.
    let bytes = message(2 * (128 * 32 - 16), 1);
    let mut header = peer.header(0, &bytes, 32, 0);
    header.block = 1;
    let block = &bytes[bytes.len() / 2..];
    assert_eq!(peer.say(&header, false, &block[..32]), [], "sent before the sender knew of it");
    peer.partial = true;
    header.symbol = 1;
    let answers = peer.say(&header, true, &block[32..64]);
    let verdicts: Vec<&Verdict> = answers.iter().map(|answer| &answer.verdict).collect();
    assert_eq!(verdicts, [&Verdict::Forgotten]);
}
