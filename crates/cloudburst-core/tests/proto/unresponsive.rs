//! Retries to an unresponsive peer come out of one credit, however many messages wait for it, and when
//! it answers again all of them proceed at once.

use crate::star::Star;
use cloudburst_core::config::Config;
use cloudburst_core::error::Outcome;
use core::time::Duration;

const LIVING: usize = 1;
const SILENT: usize = 2;
const BACKLOG: usize = 4_000;

fn star() -> Star {
    Star::new(&Config::default(), 2)
}

/// The other peer is silent, and `BACKLOG` messages of `length` bytes, one symbol each, wait for
/// it.
fn with_backlog(star: &mut Star, length: usize) {
    star.silence(SILENT, true);
    for _ in 0..BACKLOG {
        star.send(SILENT, length);
    }
}

/// How long messages of `length` bytes to the live peer take, one every 5 ms.
fn times(star: &mut Star, length: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..50 {
        times.push(star.deliver(LIVING, length));
        star.run_for(Duration::from_millis(5));
    }
    times
}

#[test]
fn a_backlog_for_an_unresponsive_peer_is_probed_as_slowly_as_one_message() {
    let mut star = star();
    with_backlog(&mut star, 100);
    star.run_for(Duration::from_secs(1));
    let before = star.sent_to(SILENT).symbols_sent;
    println!("{before} symbols in the first second");
    assert!(before < 4 * BACKLOG as u64, "{before}: each was sent once, and hardly any again");
    star.run_for(Duration::from_secs(10));
    let sent = star.sent_to(SILENT).symbols_sent - before;
    println!("{} symbols a second", sent / 10);
    assert!(sent / 10 <= 160, "{sent} in 10 s");
    assert!(sent / 10 >= 20, "{sent} in 10 s: it may be back");
}

#[test]
fn a_backlog_for_an_unresponsive_peer_does_not_slow_down_messages_to_others() {
    for length in [100, 5_000, 93_000] {
        let mut star = Star::new(&Config { capacity: 100_000_000.into(), ..Config::default() }, 2);
        let idle = times(&mut star, length);
        with_backlog(&mut star, 1_300);
        star.run_for(Duration::from_millis(200));
        let busy = times(&mut star, length);
        let longest = |times: &[Duration]| times.iter().copied().max().unwrap();
        println!("{length} bytes: {:?} became {:?}", longest(&idle), longest(&busy));
        assert!(longest(&busy) < longest(&idle) * 11 / 10, "{idle:?} became {busy:?}");
    }
}

#[test]
fn messages_to_an_unresponsive_peer_wait() {
    let mut star = star();
    star.silence(SILENT, true);
    star.send(SILENT, 100);
    star.run_for(Duration::from_secs(1));
    let before = star.sent_to(SILENT).symbols_sent;
    for _ in 0..100 {
        star.send(SILENT, 93_000);
        star.run_for(Duration::from_millis(10));
    }
    let sent = star.sent_to(SILENT).symbols_sent - before;
    println!("{sent} symbols in a second for 100 new messages");
    assert!(sent <= 160, "{sent}");
}

#[test]
fn all_messages_resume_at_once_when_an_unresponsive_peer_answers() {
    for silence in [1, 20, 100, 3_000] {
        let mut star = star();
        with_backlog(&mut star, 100);
        let long = star.send(SILENT, 93_000);
        star.run_for(Duration::from_millis(silence));
        star.silence(SILENT, false);
        let before = star.sent_to(SILENT);
        let healed = star.now;
        star.run(|star| star.sent_to(SILENT).answers_received > before.answers_received);
        let found = star.now.saturating_since(healed);
        assert!(found < Duration::from_millis(210), "{found:?}");
        star.run(|star| star.sent_to(SILENT).unfinished == 0);
        let took = star.now.saturating_since(healed) - found;
        println!("after {silence} ms: found after {found:?}, all there {took:?} later");
        assert!(matches!(star.outcomes[&long], Outcome::Delivered(_)));
        assert_eq!(star.sent_to(SILENT).delivered, BACKLOG as u64 + 2);
        // Two packets of 213 bytes for each message of 100 take 14 ms at 1 Gb/s.
        assert!(took < Duration::from_millis(40), "{took:?}");
    }
}

#[test]
fn probing_continues_when_probed_messages_are_cancelled() {
    let mut star = star();
    star.silence(SILENT, true);
    let ids: Vec<_> = (0..100).map(|_| star.send(SILENT, 100)).collect();
    for id in &ids[..99] {
        star.run_for(Duration::from_millis(7));
        star.cancel(*id);
    }
    let before = star.sent_to(SILENT).symbols_sent;
    star.run_for(Duration::from_secs(2));
    assert!(star.sent_to(SILENT).symbols_sent >= before + 20);
    star.silence(SILENT, false);
    star.run(|star| star.outcomes.contains_key(&ids[99]));
    assert!(matches!(star.outcomes[&ids[99]], Outcome::Delivered(_)));
}

#[test]
fn a_hundred_unresponsive_peers_do_not_slow_down_messages_to_another() {
    const PEERS: usize = 100;
    for length in [100, 5_000, 93_000] {
        let mut star =
            Star::new(&Config { capacity: 100_000_000.into(), ..Config::default() }, 1 + PEERS);
        let idle = times(&mut star, length);
        for peer in 2..=1 + PEERS {
            star.silence(peer, true);
            for _ in 0..10 {
                star.send(peer, 1_300);
            }
        }
        star.run_for(Duration::from_millis(500));
        let busy = times(&mut star, length);
        let idle: Duration = idle.iter().sum();
        let busy: Duration = busy.iter().sum();
        println!("{length} bytes, 50 times: {idle:?} became {busy:?}");
        assert!(busy < idle * 21 / 20, "{idle:?} became {busy:?}");
    }
}

#[test]
fn many_unresponsive_peers_are_all_probed_in_turn() {
    const PEERS: usize = 100;
    let mut star =
        Star::new(&Config { capacity: 100_000_000.into(), ..Config::default() }, 1 + PEERS);
    for peer in 2..=1 + PEERS {
        star.silence(peer, true);
        star.send(peer, 1_300);
    }
    star.run_for(Duration::from_millis(500));
    let sent = |star: &Star| -> Vec<u64> {
        (2..=1 + PEERS).map(|peer| star.sent_to(peer).symbols_sent).collect()
    };
    let before = sent(&star);
    star.run_for(Duration::from_secs(2));
    let probes: Vec<u64> = sent(&star).iter().zip(&before).map(|(now, then)| now - then).collect();
    // A sixteenth of the link is 553 packets of 1,413 bytes in a second.
    let sum: u64 = probes.iter().sum();
    assert!((1_080..1_120).contains(&sum), "{probes:?}");
    assert!(probes.iter().all(|probes| (4..20).contains(probes)), "{probes:?}");
}
