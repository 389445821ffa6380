//! HELLOs that a stranger replays keep no session alive. Those of the peer are answered truthfully.

use super::crowd::{Crowd, Says};
use cloudburst_core::config::{Config, Tuning};
use core::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A stranger replays captured packets, and discards the answers.
fn replay(crowd: &mut Crowd, captured: &[Vec<u8>]) {
    for hello in captured {
        let _ = crowd.greet(66, hello.clone());
    }
}

#[test]
fn replayed_hellos_do_not_keep_a_dead_session_alive() {
    let mut crowd = Crowd::new(Config {
        tuning: Tuning { max_peers: Some(1), ..Tuning::default() },
        ..Config::default()
    });
    let captured: Vec<Vec<u8>> = (1..=2)
        .map(|who| {
            let mut dead = crowd.meet(who);
            assert!(crowd.delivers(&mut dead, Says::whole(0, 10)));
            let hello = dead.hello(9);
            assert!(crowd.greet(who, hello.clone()).is_some());
            hello
        })
        .collect();
    for _ in 0..2 {
        crowd.wait(25 * SECOND);
        replay(&mut crowd, &captured);
    }
    let mut newcomer = crowd.meet(3);
    assert!(crowd.delivers(&mut newcomer, Says::whole(0, 10)), "50 s after the last symbol");
    for _ in 0..25 {
        crowd.wait(25 * SECOND);
        replay(&mut crowd, &captured);
    }
    assert_eq!(
        crowd.receiver.peers().iter().filter(|peer| peer.received.session_since.is_some()).count(),
        0
    );
}

#[test]
fn a_session_confirmed_alive_lives_for_as_long_as_its_sender_relies_on_it() {
    let mut said_so = Vec::new();
    for idle in (5..700).step_by(5) {
        let mut crowd = Crowd::new(Config::default());
        let mut peer = crowd.meet(1);
        assert!(crowd.delivers(&mut peer, Says::whole(0, 10)));
        crowd.wait(idle * SECOND);
        if crowd.asks(1, &mut peer) {
            // It may begin a message at any time before it would check the session again.
            crowd.wait(30 * SECOND);
            assert!(crowd.delivers(&mut peer, Says::whole(1, 10)), "idle for {idle} s");
            said_so.push(idle);
        }
    }
    assert_eq!(said_so.last(), Some(&595));
}

#[test]
fn a_half_open_session_is_confirmed_by_a_liveness_check() {
    let mut said_so = Vec::new();
    for idle in 1..25 {
        let mut crowd = Crowd::new(Config::default());
        let mut peer = crowd.meet(1);
        crowd.wait(idle * SECOND);
        if crowd.asks(1, &mut peer) {
            crowd.wait(30 * SECOND);
            assert!(crowd.delivers(&mut peer, Says::whole(1, 10)), "half-open for {idle} s");
            said_so.push(idle);
        }
    }
    assert_eq!(said_so.last(), Some(&19));
}
