//! A session in which no symbol has arrived yet.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::error::Outcome;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

/// The receiver forgets such a session after 20 s. If it is checked before that, it is kept like any
/// other; the sender learns of that within 5 s, or not at all.
#[test]
fn a_session_confirmed_alive_is_still_held_when_it_is_used() {
    let mut pair = Pair::new(Setup::default());
    let ok = Setup::default().link;
    let lost = lossy(1.0);
    // HELLO and OPEN arrive, but no symbol.
    let id = pair.send(message(10, 1));
    pair.run_for(Duration::from_micros(170));
    pair.set_links(Side::A, None, &lost);
    pair.run_for(Duration::from_millis(1));
    pair.a.endpoint.cancel(id);
    pair.run_for(Duration::from_millis(19_900));
    // The session is checked, and the answer is almost too late.
    let late = LinkConfig { delay: Duration::from_millis(4_900), ..ok.clone() };
    pair.set_links(Side::A, None, &ok);
    pair.set_links(Side::B, None, &late);
    let id = pair.send(message(10, 2));
    pair.run_for(Duration::from_micros(70));
    pair.set_links(Side::A, None, &lost);
    pair.run_for(Duration::from_millis(4_901));
    pair.a.endpoint.cancel(id);
    pair.run_for(Duration::from_millis(25_000));
    // The session is used without another check.
    let hellos = pair.a.counters().sender.handshakes_sent;
    pair.set_links(Side::A, None, &ok);
    pair.set_links(Side::B, None, &ok);
    let id = pair.send(message(10, 3));
    let outcome = pair.outcome(id);
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    let sender = pair.a.counters().sender;
    assert_eq!((sender.handshakes_sent, sender.sessions_opened), (hellos, 1));
}
