//! More peers than a receiver remembers: the last ones wait, and are not told of a restart.

use super::crowd::{Crowd, Says};
use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::SendOptions;
use core::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_peer_that_finds_no_capacity_keeps_its_session_for_as_long_as_it_tries() {
    let mut crowd = Crowd::unpaced(Config {
        tuning: Tuning { max_peers: Some(1), ..Tuning::default() },
        ..Config::default()
    });
    let mut active = [crowd.meet(1), crowd.meet(2)];
    let mut third = crowd.meet(3);
    for id in 0..60 {
        for peer in &mut active {
            assert!(crowd.delivers(peer, Says::whole(id, 10)));
        }
        assert_eq!(crowd.say(&mut third, Says::whole(0, 10)), None);
        assert!(!crowd.asks(3, &mut third), "after {id} s");
        crowd.wait(SECOND);
    }
    // The others fall silent, which makes room.
    crowd.wait(10 * SECOND);
    assert_eq!(crowd.say(&mut third, Says::whole(0, 10)), None);
    crowd.wait(10 * SECOND);
    assert_eq!(crowd.say(&mut third, Says::whole(0, 10)), None);
    crowd.wait(12 * SECOND);
    assert!(crowd.delivers(&mut third, Says::whole(0, 10)));
}

#[test]
fn replayed_packets_do_not_keep_a_refused_session() {
    let mut crowd = Crowd::unpaced(Config {
        tuning: Tuning { max_peers: Some(1), ..Tuning::default() },
        ..Config::default()
    });
    let mut active = [crowd.meet(1), crowd.meet(2)];
    let mut third = crowd.meet(3);
    let captured = third.symbol(Says::whole(0, 10));
    for id in 0..30 {
        for peer in &mut active {
            assert!(crowd.delivers(peer, Says::whole(id, 10)));
        }
        crowd.replay(3, &captured);
        crowd.wait(SECOND);
    }
    assert!(!crowd.asks(3, &mut third));
}

#[test]
fn a_message_that_meets_a_full_receiver_arrives_when_there_is_room() {
    let b =
        Config { tuning: Tuning { max_peers: Some(1), ..Tuning::default() }, ..Config::default() };
    // The receiver is silent meanwhile, and that takes symbols.
    let a = Config {
        tuning: Tuning { max_redundancy: 1_000, ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { a, b, ..Setup::default() });
    // Two former incarnations of A hold both places.
    for life in 0..2 {
        pair.deliver(message(10, life));
        pair.restart(Side::A);
    }
    let options = SendOptions::default().deadline(60 * SECOND);
    let id = pair.send_from(Side::A, message(5_000, 9), options);
    let outcome = pair.outcome(id);
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
}

#[test]
fn a_session_confirmed_alive_is_not_evicted_before_its_peer_can_use_it() {
    let mut crowd = Crowd::unpaced(Config {
        tuning: Tuning { max_peers: Some(1), ..Tuning::default() },
        ..Config::default()
    });
    let mut asks = crowd.meet(1);
    assert!(crowd.delivers(&mut asks, Says::whole(0, 10)));
    crowd.wait(SECOND * 2);
    let mut other = crowd.meet(2);
    assert!(crowd.delivers(&mut other, Says::whole(0, 10)));
    crowd.wait(40 * SECOND);
    assert!(crowd.asks(1, &mut asks));
    let mut newcomer = crowd.meet(3);
    assert!(crowd.delivers(&mut newcomer, Says::whole(0, 10)), "the other gives way");
    crowd.wait(29 * SECOND);
    let mut second = crowd.meet(4);
    assert_eq!(crowd.say(&mut second, Says::whole(0, 10)), None);
    assert!(crowd.delivers(&mut asks, Says::whole(1, 10)));
}
