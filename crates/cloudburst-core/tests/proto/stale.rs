//! A session is checked before use after a long idle time, and late answers to old questions do not
//! count.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Kind;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

fn delayed(delay: Duration) -> LinkConfig {
    LinkConfig { delay, ..Setup::default().link }
}

fn within(seconds: u64) -> SendOptions {
    SendOptions::default().deadline(Duration::from_secs(seconds))
}

#[test]
fn late_answers_in_a_stale_session_leave_its_handshake_alone() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let idle_since = pair.now;
    // The answers to this message take 35 s, and the sender stops waiting after 1 s.
    pair.set_links(Side::B, None, &delayed(Duration::from_secs(35)));
    let unheard = pair.send_from(Side::A, message(5_000, 1), within(1));
    pair.outcome(unheard);
    pair.set_links(Side::B, None, &Setup::default().link);

    pair.run_for(Duration::from_secs(33));
    pair.set_links(Side::A, None, &lossy(1.0));
    let hellos = pair.a.counters().sender.handshakes_sent;
    let id = pair.send(message(5_000, 2));
    pair.run_for((idle_since + Duration::from_millis(34_990)).saturating_since(pair.now));
    assert!(pair.a.counters().sender.handshakes_sent > hellos, "the session is stale");

    let late = pair.a.counters().sender.late_answers;
    let symbols = pair.a.counters().sender.symbols_sent;
    pair.run(|pair| pair.a.counters().sender.late_answers > late + 1);
    assert_eq!(pair.a.counters().sender.symbols_sent, symbols, "nothing is begun in it");
    pair.set_links(Side::A, None, &Setup::default().link);
    let healed = pair.now;
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)), "{:?}", pair.a.outcomes[&id]);
    let waited = pair.now.saturating_since(healed);
    assert!(waited < Duration::from_millis(250), "{waited:?}");
}

#[test]
fn a_late_accept_opens_no_session_that_its_responder_has_forgotten() {
    let mut pair = Pair::new(Setup::default());
    pair.tap = Some(Vec::new());
    let id = pair.send_from(Side::A, message(5_000, 0), within(60));
    let opens = |pair: &Pair| {
        let mut tap = pair.tap.iter().flatten();
        tap.any(|(_, _, packet)| Kind::of(packet) == Ok(Kind::Open))
    };
    pair.run(opens);
    // The OPEN arrives, and no packet after it.
    pair.set_links(Side::B, None, &delayed(Duration::from_secs(35)));
    pair.run_for(Duration::from_micros(500));
    pair.set_links(Side::A, None, &lossy(1.0));
    pair.tap = None;
    pair.run_for(Duration::from_secs(30));
    pair.set_links(Side::B, None, &Setup::default().link);
    let late = pair.a.counters().sender.late_answers;
    pair.run_for(Duration::from_millis(5_100));
    assert!(pair.a.counters().sender.late_answers > late);
    assert_eq!(pair.a.counters().sender.sessions_opened, 0);
    pair.set_links(Side::A, None, &Setup::default().link);
    let healed = pair.now;
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)), "{:?}", pair.a.outcomes[&id]);
    let waited = pair.now.saturating_since(healed);
    assert!(waited < Duration::from_millis(250), "{waited:?}");
}
