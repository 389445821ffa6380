//! Peers that do not answer do not slow down those that do.

use crate::common::{Pair, Setup, message};
use cloudburst_core::config::Config;
use cloudburst_core::error::Outcome;
use cloudburst_core::proto::SendOptions;
use core::time::Duration;
use std::net::SocketAddr;

const CAPACITY: u64 = 100_000_000;
/// The bytes of a HELLO on the wire: 64, and headers of IP and UDP.
const HELLO_BITS: u64 = 8 * (64 + 28);

fn pair() -> Pair {
    Pair::new(Setup {
        a: Config { capacity: CAPACITY.into(), ..Setup::default().a },
        ..Setup::default()
    })
}

/// A sends a message to each of `count` addresses without a host.
fn send_to_nobody(pair: &mut Pair, count: u32) {
    let options = SendOptions::default().deadline(Duration::from_secs(60));
    for number in 0..count {
        let [_, a, b, c] = number.to_be_bytes();
        let peer = SocketAddr::from(([11, a, b, c], 9));
        pair.a.endpoint.send(pair.now, peer, message(100, 1), &options).unwrap();
    }
}

/// How long messages of `length` bytes to B take, one every 10 ms.
fn times(pair: &mut Pair, length: usize) -> Vec<Duration> {
    let times = (0..50).map(|seed| {
        let id = pair.send(message(length, seed));
        let sent_at = pair.now;
        assert!(matches!(pair.outcome(id), Outcome::Delivered(_)), "{:?}", pair.a.outcomes[&id]);
        let took = pair.now.saturating_since(sent_at);
        pair.run_for(Duration::from_millis(10));
        took
    });
    times.collect()
}

#[test]
fn handshakes_with_thousands_of_dead_peers_leave_the_link_to_the_living() {
    let mut pair = pair();
    pair.deliver(message(1, 0));
    for length in [5_000, 93_000] {
        let idle = times(&mut pair, length);
        send_to_nobody(&mut pair, 2_000);
        pair.run_for(Duration::from_secs(1));
        let busy = times(&mut pair, length);
        println!("{length} bytes: {:?} to {:?}", idle.iter().max(), busy.iter().max());
        let idle: Duration = idle.iter().sum();
        let busy: Duration = busy.iter().sum();
        assert!(busy < idle * 21 / 20, "{idle:?} became {busy:?}");
    }
}

#[test]
fn handshakes_that_nobody_answers_take_a_small_share_of_the_link() {
    let mut pair = pair();
    send_to_nobody(&mut pair, 2_000);
    pair.run_for(Duration::from_secs(1));
    let first = pair.a.counters().sender.handshakes_sent;
    pair.run_for(Duration::from_secs(1));
    let hellos = pair.a.counters().sender.handshakes_sent - first;
    println!("{hellos} HELLOs a second");
    assert!(hellos * HELLO_BITS < 2_600_000, "{hellos}");
    assert!(hellos * HELLO_BITS > 2_400_000, "{hellos}: dead peers may be back");
}

#[test]
fn a_handshake_with_a_living_peer_does_not_wait_for_those_with_dead_ones() {
    let mut pair = pair();
    send_to_nobody(&mut pair, 2_000);
    pair.run_for(Duration::from_secs(1));
    let sent_at = pair.now;
    pair.deliver(message(100, 1));
    let took = pair.now.saturating_since(sent_at);
    assert!(took < Duration::from_millis(1), "{took:?}");
}

#[test]
fn many_handshakes_at_once_do_not_hold_up_what_is_under_way() {
    let mut pair = pair();
    pair.deliver(message(1, 0));
    let idle = times(&mut pair, 93_000)[0];
    send_to_nobody(&mut pair, 2_000);
    let busy = times(&mut pair, 93_000)[0];
    println!("{idle:?} became {busy:?}");
    assert!(busy < idle * 6 / 5, "{idle:?} became {busy:?}");
}
