//! A peer that is away for longer than any backoff, beyond what the table of [`outages`](crate::outages) shows: small
//! packet caps, many messages, restarts, and a return by one path of many.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::error::{Indeterminate, Outcome};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::{LinkConfig, Loss};
use core::time::Duration;

/// A few of the longest backoffs, and a handshake.
const SOON: Duration = Duration::from_millis(400);

const POLICIES: [BurstPolicy; 4] = [
    BurstPolicy::Budgeted { margin: 1.0 / 16.0 },
    BurstPolicy::Budgeted { margin: 0.0 },
    BurstPolicy::Oblivious,
    BurstPolicy::Pulled { window: None },
];

/// A pair with a session, in which `setup` says the rest.
fn met(setup: Setup) -> Pair {
    let mut pair = Pair::new(setup);
    pair.deliver(message(1, 0));
    pair
}

fn leave(pair: &mut Pair, away: bool) {
    for side in [Side::A, Side::B] {
        let loss = Loss::Independent(if away { 1.0 } else { 0.0 });
        pair.set_links(side, None, &LinkConfig { loss, ..Setup::default().link });
    }
}

fn send(pair: &mut Pair, length: usize, policy: BurstPolicy, deadline: u64) -> MessageId {
    let options = SendOptions::default().policy(policy).deadline(Duration::from_secs(deadline));
    pair.send_from(Side::A, message(length, 1), options)
}

/// Ends the outage, and runs until `id` has ended. Returns its outcome and how long that took.
fn back(pair: &mut Pair, id: MessageId) -> (Outcome, Duration) {
    leave(pair, false);
    let start = pair.now;
    (pair.outcome(id), pair.now.saturating_since(start))
}

#[track_caller]
fn assert_delivered_soon(pair: &mut Pair, id: MessageId, what: &str) {
    let (outcome, took) = back(pair, id);
    assert!(matches!(outcome, Outcome::Delivered(_)), "{what}: {outcome:?}");
    println!("{what}: {took:?}");
    assert!(took < SOON, "{what}: {took:?}");
}

#[test]
fn a_small_packet_cap_does_not_end_a_message_whose_peer_is_away() {
    for policy in POLICIES {
        let mut setup = Setup { paths: 16, ..Setup::default() };
        setup.a.tuning.max_redundancy = 2;
        let mut pair = met(setup);
        leave(&mut pair, true);
        let id = send(&mut pair, 93_000, policy, 10);
        pair.run_for(Duration::from_secs(5));
        assert_delivered_soon(&mut pair, id, &format!("{policy:?}"));
    }
}

#[test]
fn a_message_goes_out_after_many_outages() {
    // Each outage costs the burst that it swallows, so that the cap is reached after some.
    let mut setup = Setup::default();
    setup.a.tuning.max_redundancy = 2;
    for policy in POLICIES {
        let mut pair = met(setup.clone());
        leave(&mut pair, true);
        let id = send(&mut pair, 93_000, policy, 60);
        for _ in 0..20 {
            pair.run_for(Duration::from_secs(1));
            // Too short for a whole message, long enough for an answer.
            leave(&mut pair, false);
            pair.run_for(Duration::from_micros(300));
            leave(&mut pair, true);
        }
        let (outcome, took) = back(&mut pair, id);
        assert!(matches!(outcome, Outcome::Delivered(_)), "{policy:?}: {outcome:?}");
        assert!(took < Duration::from_secs(2), "{policy:?}: {took:?}");
    }
}

#[test]
fn a_peer_that_is_away_for_longer_than_a_session_is_believed_is_found_again() {
    let mut pair = met(Setup::default());
    leave(&mut pair, true);
    let under_way = send(&mut pair, 5_000, BurstPolicy::default(), 100);
    pair.run_for(Duration::from_secs(35));
    let waiting = send(&mut pair, 5_000, BurstPolicy::default(), 100);
    pair.run_for(Duration::from_secs(25));
    assert_delivered_soon(&mut pair, under_way, "sent before");
    assert_delivered_soon(&mut pair, waiting, "sent meanwhile");
    assert_eq!(pair.a.counters().sender.sessions_opened, 1, "in the same session");
}

#[test]
fn a_peer_that_is_away_gets_few_packets_however_long_and_whatever_waits() {
    for (messages, length) in [(1, 93_000), (100, 5_000)] {
        for policy in POLICIES {
            let mut pair = met(Setup::default());
            leave(&mut pair, true);
            for _ in 0..messages {
                send(&mut pair, length, policy, 300);
            }
            pair.run_for(Duration::from_secs(1));
            for minute in 0..3 {
                let before = pair.a.counters().sender;
                pair.run_for(Duration::from_secs(60));
                let after = pair.a.counters().sender;
                let symbols = (after.symbols_sent - before.symbols_sent) / 60;
                let hellos = (after.handshakes_sent - before.handshakes_sent) / 60;
                let rates = format!("{symbols} symbols and {hellos} HELLOs a second");
                println!("{messages} of {length} bytes, {policy:?}: {rates}");
                assert!((10..=160).contains(&symbols), "minute {minute}: {rates}");
                assert!((10..=160).contains(&hellos), "minute {minute}: {rates}");
            }
        }
    }
}

#[test]
fn a_restart_during_an_outage_is_found_out_soon_after_it() {
    let mut pair = met(Setup::default());
    leave(&mut pair, true);
    let before = send(&mut pair, 5_000, BurstPolicy::default(), 40);
    pair.run_for(Duration::from_secs(10));
    pair.restart(Side::B);
    pair.run_for(Duration::from_secs(10));
    let after = send(&mut pair, 5_000, BurstPolicy::default(), 40);
    let (outcome, took) = back(&mut pair, before);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::PeerRestarted));
    assert!(took < SOON, "{took:?}");
    assert_delivered_soon(&mut pair, after, "sent after the restart");
    assert_eq!(pair.b.inbox.len(), 1);
}

#[test]
fn a_peer_that_comes_back_by_one_path_of_many_is_found_there() {
    // Both a probing symbol and its answer must take that path.
    for (paths, limit) in [(4, SOON), (16, 5 * SOON)] {
        for alive in [0, paths / 2, paths - 1] {
            let mut pair = met(Setup { paths, ..Setup::default() });
            (0..paths).for_each(|path| pair.set_down(path, true));
            let id = send(&mut pair, 5_000, BurstPolicy::default(), 40);
            pair.run_for(Duration::from_secs(25));
            pair.set_down(alive, false);
            let start = pair.now;
            let outcome = pair.outcome(id);
            let took = pair.now.saturating_since(start);
            println!("path {alive} of {paths}: {took:?}");
            assert!(matches!(outcome, Outcome::Delivered(_)), "{alive}: {outcome:?}");
            assert!(took < limit, "path {alive} of {paths}: {took:?}");
        }
    }
}
