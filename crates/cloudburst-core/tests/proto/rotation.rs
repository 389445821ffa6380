//! Keys that change while endpoints are in use.

use crate::common::{KEY, Pair, Setup, Side, lossy, message};
use cloudburst_core::config::Security;
use cloudburst_core::error::{Outcome, Rejection};
use cloudburst_core::proto::SendOptions;
use core::time::Duration;

const NEXT: [u8; 32] = [8; 32];

/// The keys after each step of a rotation.
fn steps() -> [Security; 3] {
    [
        Security::pre_shared(KEY).also_accept(NEXT),
        Security::pre_shared(NEXT).also_accept(KEY),
        Security::pre_shared(NEXT),
    ]
}

fn change(pair: &mut Pair, side: Side, security: &Security) {
    let now = pair.now;
    pair.host(side).endpoint.set_security(now, security);
    pair.host(side).endpoint.check_invariants();
}

#[test]
fn no_message_is_lost_whenever_keys_change_during_a_handshake() {
    for seed in 0..10 {
        for at in 0..30 {
            let mut pair = Pair::new(Setup { seed, link: lossy(0.1), ..Setup::default() });
            let mut both = Vec::new();
            for (step, security) in steps().iter().enumerate() {
                for side in [Side::A, Side::B] {
                    let options = SendOptions::default();
                    both.push((side, pair.send_from(side, message(3_000, 1), options)));
                    pair.run_for(Duration::from_micros(10 * at));
                    change(&mut pair, side, security);
                }
                // A session under the next keys, whatever is under way in the present one.
                if step == 1 {
                    pair.settle();
                    pair.run_for(Duration::from_secs(700));
                }
            }
            pair.settle();
            for (side, id) in both {
                let outcome = &pair.host(side).outcomes[&id];
                assert!(matches!(outcome, Outcome::Delivered(_)), "{seed} {at}: {outcome:?}");
            }
        }
    }
}

#[test]
fn sessions_go_on_under_keys_that_are_accepted_no_more() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver("a session");
    let handshakes = pair.a.counters().sender.handshakes_sent;
    let [.., last] = steps();
    change(&mut pair, Side::A, &last);
    change(&mut pair, Side::B, &last);
    pair.deliver("in the same session");
    assert_eq!(pair.a.counters().sender.sessions_opened, 1);
    assert_eq!(pair.a.counters().sender.handshakes_sent, handshakes);
}

#[test]
fn an_endpoint_that_has_only_the_old_key_is_refused_after_the_last_step() {
    let mut pair = Pair::new(Setup::default());
    let [.., last] = steps();
    change(&mut pair, Side::B, &last);
    let options = SendOptions::default().deadline(Duration::from_secs(1));
    let old = pair.send_from(Side::A, "under the old key", options);
    assert_eq!(pair.outcome(old), Outcome::Rejected(Rejection::NoAnswer));
    assert!(pair.b.counters().receiver.refused_handshakes > 0);
    let late = pair.send("under the old key at first");
    pair.run_for(Duration::from_millis(300));
    change(&mut pair, Side::A, &last);
    assert!(matches!(pair.outcome(late), Outcome::Delivered(_)));
}
