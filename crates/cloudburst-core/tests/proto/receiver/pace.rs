//! The receiver's timing: answers leave at the rate of the link, and deadlines are exact.

use super::crowd::{Crowd, Says};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::wire::Verdict;
use core::time::Duration;

/// The bytes of IP and UDP headers.
const HEADERS: usize = 28;
const NANO: Duration = Duration::from_nanos(1);

fn small() -> Config {
    Config { max_message: 10_000, ..Config::default() }
}

/// A symbol of a message that is too large, which is answered with REJECT.
fn refused(id: u64) -> Says {
    Says { symbol_size: 16, ..Says::part(id, 100_000) }
}

#[test]
fn a_flood_of_answers_does_not_exceed_the_link() {
    let mut crowd = Crowd::new(Config { capacity: 100_000_000.into(), ..small() });
    let mut peer = crowd.meet(1);
    (0..4_000).for_each(|id| crowd.hear(&mut peer, refused(id)));
    let start = crowd.now;
    let mut sent = 0;
    loop {
        let mut batch = Vec::new();
        while crowd.poll_transmit(&mut batch).is_some() {
            sent += batch.len() + HEADERS;
            batch.clear();
        }
        let elapsed = crowd.now.saturating_since(start);
        // Half a millisecond's worth may leave at once, and packets are whole.
        let allowed = (elapsed + Duration::from_micros(500)).as_nanos() as usize / 80 + 330;
        assert!(sent <= allowed, "{sent} bytes of {allowed} after {elapsed:?}");
        if crowd.counters().rejects_sent == 4_000 {
            break;
        }
        let due = crowd.receiver.poll_timeout().unwrap();
        assert!(due > crowd.now);
        crowd.now = due;
    }
    let took = crowd.now.saturating_since(start).as_micros();
    assert!((6_000..=6_700).contains(&took), "{took} us for 82 KB at 100 Mb/s");
}

#[test]
fn the_next_answer_leaves_at_the_nanosecond_that_is_said() {
    let mut crowd = Crowd::new(Config { capacity: 1_000_000.into(), ..small() });
    let mut peer = crowd.meet(1);
    (0..100).for_each(|id| crowd.hear(&mut peer, refused(id)));
    crowd.discard_answers();
    let due = crowd.receiver.poll_timeout().unwrap();
    crowd.now = due - NANO;
    assert_eq!(crowd.poll_transmit(&mut Vec::new()), None);
    crowd.now = due;
    assert!(crowd.poll_transmit(&mut Vec::new()).is_some());
}

#[test]
fn answers_to_what_a_full_link_brings_wait_for_nothing() {
    let mut crowd = Crowd::new(Config { capacity: 100_000_000.into(), ..small() });
    let mut peer = crowd.meet(1);
    for id in 0..2_000 {
        // 86 bytes and headers at 100 Mb/s; the answer has 57.
        crowd.now += Duration::from_nanos(80 * (86 + HEADERS as u64));
        assert!(crowd.say(&mut peer, refused(id)).is_some(), "symbol {id}");
    }
}

#[test]
fn output_of_a_timeout_can_be_polled_at_once() {
    let mut crowd = Crowd::new(Config {
        tuning: Tuning { receive_bytes: Some(10_000), ..small().tuning },
        ..small()
    });
    let mut first = crowd.meet(1);
    let mut gone = crowd.meet(2);
    let mut patient = crowd.meet(3);
    assert!(crowd.delivers(&mut first, Says::whole(0, 9_000)));
    assert_eq!(crowd.messages().len(), 1);
    assert_eq!(crowd.say(&mut gone, Says::whole(0, 5_000)), Some(Verdict::Held));
    crowd.wait(Duration::from_secs(1));
    assert_eq!(crowd.say(&mut patient, Says::whole(0, 1_000)), Some(Verdict::Held));
    // There is room for the second message, but the first has precedence until it is forgotten.
    crowd.wait(Duration::from_secs(14) - NANO);
    assert_eq!(crowd.messages(), []);
    crowd.wait(NANO);
    assert_eq!(crowd.messages().len(), 1);
    let mut packet = Vec::new();
    assert_eq!(crowd.poll_transmit(&mut packet).map(|via| via.remote), Some(patient.address));
    assert!(matches!(patient.open(&mut packet)[0].verdict, Verdict::Delivered { .. }));
}

#[test]
fn a_stop_does_not_wait_behind_stops_that_are_repeated_for_every_path() {
    // At this rate, an answer takes 0.85 ms.
    let mut crowd = Crowd::new(Config { capacity: 1_000_000.into(), ..small() });
    let mut peer = crowd.meet(1);
    let late = |id: u64, path: u16| Says { path, age: id as u32, ..Says::whole(id, 10) };
    for again in 0..12 {
        for id in 0..40 {
            crowd.hear(&mut peer, late(id, (id as u16 + again) % 4));
        }
    }
    crowd.hear(&mut peer, late(40, 0));
    let mut stops = 0;
    loop {
        let mut batch = Vec::new();
        while let Some(segment) = crowd.poll_batch(&mut batch) {
            for packet in batch.chunks_mut(segment) {
                stops += 1;
                if peer.open(packet).iter().any(|answer| answer.message.0 == 40) {
                    assert!(stops < 100, "{stops} STOPs for 40 messages went before");
                    return;
                }
            }
            batch.clear();
        }
        crowd.now = crowd.receiver.poll_timeout().unwrap();
    }
}
