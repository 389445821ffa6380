//! A link that trims: what overflows is cut, and overtakes.

use cloudburst_netem::{Link, LinkConfig, Trim};
use core::time::Duration;

/// A byte takes 1 us.
const RATE: u64 = 8_000_000;

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn link(queue: usize, trim: Trim) -> Link {
    let config = LinkConfig { rate: Some(RATE), queue, trim: Some(trim), ..LinkConfig::default() };
    Link::new(config, 1).expect("the tests use valid configurations")
}

/// Takes all packets out: when each arrives, its first byte and its length.
fn drain(link: &mut Link) -> Vec<(Duration, u8, usize)> {
    let mut arrived = Vec::new();
    // Half of the times are those of departures.
    for _ in 0..100 {
        let Some(at) = link.next_at() else { break };
        while let Some(packet) = link.poll(at) {
            arrived.push((at, packet[0], packet.len()));
        }
    }
    assert_eq!((link.next_at(), link.in_flight()), (None, 0));
    arrived
}

fn packet(name: u8) -> [u8; 1_000] {
    [name; 1_000]
}

#[test]
fn a_packet_that_finds_the_queue_full_is_trimmed_and_sent_first() {
    let mut link = link(2, Trim { header: 100, queue: 8 });
    (0..4).for_each(|name| link.send(us(0), &packet(name)));
    assert_eq!(link.in_flight(), 4);
    let arrived = drain(&mut link);
    let expected =
        [(us(1_000), 0, 1_000), (us(1_100), 2, 100), (us(1_200), 3, 100), (us(2_200), 1, 1_000)];
    assert_eq!(arrived, expected);
    let stats = *link.stats();
    assert_eq!((stats.trimmed, stats.queue_dropped, stats.delivered), (2, 0, 4));
}

#[test]
fn headers_beyond_their_queue_are_dropped() {
    let mut link = link(1, Trim { header: 100, queue: 2 });
    (0..4).for_each(|name| link.send(us(0), &packet(name)));
    let arrived = drain(&mut link);
    let expected = [(us(1_000), 0, 1_000), (us(1_100), 1, 100), (us(1_200), 2, 100)];
    assert_eq!(arrived, expected);
    assert_eq!((link.stats().trimmed, link.stats().queue_dropped), (2, 1));
}

#[test]
fn a_packet_no_longer_than_a_header_overtakes_untrimmed() {
    let mut link = link(2, Trim { header: 100, queue: 2 });
    (0..2).for_each(|name| link.send(us(0), &packet(name)));
    link.send(us(500), &[2; 60]);
    assert_eq!(
        drain(&mut link),
        [(us(1_000), 0, 1_000), (us(1_060), 2, 60), (us(2_060), 1, 1_000)]
    );
    assert_eq!((link.stats().trimmed, link.stats().queue_dropped), (0, 0));
}

#[test]
fn a_header_in_service_does_not_count_against_the_data_queue() {
    let mut link = link(1, Trim { header: 100, queue: 2 });
    (0..2).for_each(|name| link.send(us(0), &packet(name)));
    link.send(us(1_050), &packet(2));
    assert_eq!(
        drain(&mut link),
        [(us(1_000), 0, 1_000), (us(1_100), 1, 100), (us(2_100), 2, 1_000)]
    );
}

#[test]
fn packets_that_wait_when_trimming_ends_leave_on_time() {
    let mut link = link(2, Trim { header: 100, queue: 8 });
    (0..3).for_each(|name| link.send(us(0), &packet(name)));
    link.reconfigure(LinkConfig { rate: Some(RATE), ..LinkConfig::default() })
        .expect("it is valid");
    let arrived = drain(&mut link);
    assert_eq!(arrived, [(us(1_000), 0, 1_000), (us(1_100), 2, 100), (us(2_100), 1, 1_000)]);
}
