//! Old handshakes, replayed by a stranger.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::path::Via;
use cloudburst_core::wire::Kind;
use core::time::Duration;

#[test]
fn replayed_hellos_do_not_keep_dead_sessions_from_newcomers() {
    let b =
        Config { tuning: Tuning { max_peers: Some(1), ..Tuning::default() }, ..Config::default() };
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    let mut old = Vec::new();
    for life in 0..2 {
        pair.deliver(message(10, life));
        // The session is stale, so it is checked.
        pair.run_for(Duration::from_secs(40));
        pair.tap = Some(Vec::new());
        pair.deliver(message(10, life));
        let sent = pair.tap.take().unwrap().into_iter().map(|(.., packet)| packet);
        old.extend(sent.filter(|packet| Kind::of(packet) == Ok(Kind::Hello)));
        pair.restart(Side::A);
    }
    assert!(old.len() >= 2);
    for _ in 0..20 {
        pair.run_for(Duration::from_secs(25));
        for packet in &old {
            let via = Via { egress: 0, local: None, remote: ([192, 0, 2, 1], 9).into() };
            pair.b.endpoint.handle_datagram(pair.now, via, &mut packet.clone());
        }
    }
    pair.deliver(message(10, 2));
}
