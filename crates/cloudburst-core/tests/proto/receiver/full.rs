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

fn with_peers(max_peers: usize) -> Crowd {
    let tuning = Tuning { max_peers: Some(max_peers), ..Tuning::default() };
    Crowd::unpaced(Config { tuning, ..Config::default() })
}

#[test]
fn a_host_that_makes_up_incarnations_leaves_sessions_to_others() {
    let mut crowd = with_peers(40);
    let opened = (0..200).filter(|&life| {
        let own_port = ([10, 0, 0, 1], 8000 + life as u16).into();
        let mut voice = crowd.meet_at(own_port, life, life.into());
        crowd.delivers(&mut voice, Says::whole(0, 10))
    });
    assert_eq!(opened.count(), 70, "seven eighths of 80");
    for who in 2..10 {
        let mut other = crowd.meet(who);
        assert!(crowd.delivers(&mut other, Says::whole(0, 10)), "host {who}");
    }
}

#[test]
fn addresses_of_one_ipv6_prefix_are_one_host() {
    let mut crowd = with_peers(8);
    let opened = |crowd: &mut Crowd, net: u16, host: u16| {
        let at = ([0x2001, 0xdb8, 0, net, 0, 0, 0, host], 7000).into();
        let mut voice = crowd.meet_at(at, u32::from(host), host.into());
        crowd.delivers(&mut voice, Says::whole(0, 10))
    };
    assert_eq!((0..40).filter(|&host| opened(&mut crowd, 1, host)).count(), 14);
    assert!(opened(&mut crowd, 2, 100) && opened(&mut crowd, 3, 101));
}

#[test]
fn in_a_crash_loop_the_next_life_has_the_session_of_an_earlier_one() {
    let mut crowd = with_peers(4);
    for life in 0..100 {
        let mut voice = crowd.meet_as(1, 100 + life, life.into());
        assert!(crowd.delivers(&mut voice, Says::whole(0, 10)), "life {life}");
    }
}

#[test]
fn a_living_session_does_not_give_way_to_one_that_claims_its_name() {
    let mut crowd = with_peers(4);
    let mut first = crowd.meet_as(1, 1, 1);
    assert!(crowd.delivers(&mut first, Says::whole(0, 10)));
    for life in 0..50 {
        let mut voice = crowd.meet_as(1, 100 + life, 100 + u64::from(life));
        let _ = crowd.say(&mut voice, Says::whole(0, 10));
        crowd.wait(SECOND / 50);
        assert!(crowd.delivers(&mut first, Says::whole(u64::from(life) + 1, 10)), "after {life}");
    }
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
