//! A session that idled for long is asked after before use, and answers of it that come late meanwhile
//! say that it lives.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

fn delayed(delay: Duration) -> LinkConfig {
    LinkConfig { delay, ..Setup::default().link }
}

#[test]
fn a_message_leaves_as_soon_as_a_late_answer_shows_that_a_stale_session_lives() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let idle_since = pair.now;
    // The answers to this one are on their way for 35 s; nobody waits for them after 1 s.
    pair.set_links(Side::B, None, &delayed(Duration::from_secs(35)));
    let short = SendOptions { deadline: Some(Duration::from_secs(1)), ..SendOptions::default() };
    let unheard = pair.send_from(Side::A, message(5_000, 1), short);
    pair.outcome(unheard);
    pair.set_links(Side::B, None, &Setup::default().link);

    pair.run_for(Duration::from_secs(33));
    pair.set_links(Side::A, None, &crate::common::lossy(1.0));
    let hellos = pair.a.counters().sender.hellos_sent;
    let id = pair.send(message(5_000, 2));
    let before = idle_since + Duration::from_millis(34_990);
    pair.run_for(before.saturating_since(pair.now));
    assert!(pair.a.counters().sender.hellos_sent > hellos, "the session is stale");
    pair.set_links(Side::A, None, &Setup::default().link);

    let late = pair.a.counters().sender.late_answers;
    pair.run(|pair| pair.a.counters().sender.late_answers > late + 1);
    let heard = pair.now;
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)), "{:?}", pair.a.outcomes[&id]);
    let waited = pair.now.saturating_since(heard);
    assert!(waited < Duration::from_millis(2), "{waited:?}");
}
