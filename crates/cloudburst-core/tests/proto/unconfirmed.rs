//! A session in which no symbol has arrived yet.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::error::Outcome;
use core::time::Duration;

/// The receiver forgets such a session after 15 s, and what it says of it until then is no promise.
#[test]
fn a_message_arrives_in_spite_of_a_session_that_was_forgotten_since_it_was_asked_after() {
    let mut pair = Pair::new(Setup::default());
    // Twice, HELLO and HELLO_ACK get through and no symbol does. The second time the session is
    // asked after, and lives.
    for (seed, rest) in [(1, 9), (2, 4)] {
        pair.set_links(Side::A, None, &Setup::default().link);
        let id = pair.send(message(10, seed));
        pair.run_for(Duration::from_micros(70));
        pair.set_links(Side::A, None, &lossy(1.0));
        pair.run_for(Duration::from_millis(1));
        pair.a.endpoint.cancel(id);
        pair.run_for(Duration::from_secs(rest));
    }
    assert_eq!(pair.a.counters().sender.sessions_opened, 1);
    pair.set_links(Side::A, None, &Setup::default().link);
    let id = pair.send(message(10, 3));
    let outcome = pair.outcome(id);
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
}
