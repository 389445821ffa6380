//! Which packets are served first, and which are dropped first: classes, limits in bytes, selective dropping.

use cloudburst_netem::{Link, LinkConfig, Loss, Mark};
use core::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A link on which 1,250 bytes take 10 ms.
fn link(config: LinkConfig) -> Link {
    Link::new(LinkConfig { rate: Some(1_000_000), ..config }, 1).expect("it is valid")
}

/// Sends a packet of 1,250 bytes.
fn send(link: &mut Link, at: Duration, class: u8, number: u8) {
    link.send_marked(at, Mark { class, ect: false }, &[number; 1_250]);
}

/// Takes all packets out: when each came, and its number.
fn drain(link: &mut Link) -> Vec<(Duration, u8)> {
    let mut arrived = Vec::new();
    while let Some(at) = link.next_at() {
        // Without a packet, one has begun to be sent.
        arrived.extend(link.poll(at).map(|packet| (at, packet[0])));
    }
    arrived
}

#[test]
fn lower_classes_are_served_first_without_preemption() {
    let mut link = link(LinkConfig { classes: 3, delay: ms(100), ..LinkConfig::default() });
    for (at, class, number) in
        [(0, 2, 0), (0, 2, 1), (0, 1, 2), (5, 9, 3), (9, 0, 4), (11, 0, 5), (21, 1, 6)]
    {
        send(&mut link, ms(at), class, number);
    }
    // The first is being sent, 4 and 5 come before it is over, or before that one is; 9 is the last class.
    let order = [(110, 0), (120, 4), (130, 5), (140, 2), (150, 6), (160, 1), (170, 3)];
    assert_eq!(drain(&mut link), order.map(|(at, number)| (ms(at), number)));
    assert_eq!(link.in_flight(), 0);
    send(&mut link, ms(500), 2, 7);
    assert_eq!(drain(&mut link), [(ms(610), 7)]);
}

#[test]
fn a_lossy_link_still_serves_packets_that_wait() {
    let mut link =
        link(LinkConfig { classes: 2, loss: Loss::Independent(0.5), ..LinkConfig::default() });
    (0..100).for_each(|number| send(&mut link, ms(0), number % 2, number));
    let arrived = drain(&mut link);
    let stats = *link.stats();
    assert_eq!(arrived.len() as u64 + stats.lost, 100);
    assert!(stats.lost > 20 && arrived.len() > 20, "{stats:?}");
    let evens = arrived.iter().take_while(|(_, number)| number % 2 == 0).count();
    assert!(arrived[evens..].iter().all(|(_, number)| number % 2 == 1));
}

#[test]
fn the_queue_limit_applies_to_each_class() {
    for config in [
        LinkConfig { queue: 2, ..LinkConfig::default() },
        LinkConfig { queue_bytes: Some(2_500), ..LinkConfig::default() },
    ] {
        let mut link = link(LinkConfig { classes: 2, ..config });
        for number in 0..8 {
            send(&mut link, ms(0), number % 2, number);
        }
        // 0 is being sent and takes a place in its class.
        let order = [(10, 0), (20, 2), (30, 1), (40, 3)].map(|(at, number)| (ms(at), number));
        assert_eq!(drain(&mut link), order);
        assert_eq!(link.stats().queue_dropped, 4);
    }
}

#[test]
fn limits_in_bytes_leave_room_for_small_packets() {
    for classes in [1, 2] {
        let mut link =
            link(LinkConfig { classes, queue_bytes: Some(2_600), ..LinkConfig::default() });
        (0..3).for_each(|number| send(&mut link, ms(0), 0, number));
        assert_eq!(link.stats().queue_dropped, 1);
        link.send(ms(0), &[9; 100]);
        link.send(ms(0), &[9; 100]);
        assert_eq!((link.stats().queue_dropped, link.in_flight()), (2, 3), "{classes} classes");
    }
}

#[test]
fn beyond_the_threshold_only_ecn_capable_packets_pass() {
    for classes in [1, 2] {
        let config =
            LinkConfig { queue: 4, selective: Some(2_500), classes, ..LinkConfig::default() };
        let mut link = link(config);
        let ects = [true, false, false, true, false, true, true];
        for (number, ect) in (0..).zip(ects) {
            link.send_marked(ms(0), Mark { class: 0, ect }, &[number; 1_250]);
        }
        let stats = *link.stats();
        assert_eq!((stats.selectively_dropped, stats.queue_dropped), (2, 1), "{classes} classes");
        // After 10 ms, 3,750 bytes are left, and after 25 ms 1,875.
        for at in [10, 25] {
            link.send_marked(ms(at), Mark { class: 0, ect: false }, &[at as u8; 1_250]);
        }
        let numbers: Vec<u8> = drain(&mut link).into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, [0, 1, 3, 5, 25], "{classes} classes");
        assert_eq!(link.stats().selectively_dropped, 3);
    }
}

#[test]
fn packets_that_wait_depart_before_a_change_of_classes_or_rate() {
    for (classes, rate) in [(1, 1_000_000), (3, 1_000_000), (2, 2_000_000)] {
        let mut link = link(LinkConfig { classes: 2, ..LinkConfig::default() });
        (0..3).for_each(|number| send(&mut link, ms(0), 1, number));
        let changed = LinkConfig { classes, rate: Some(rate), ..LinkConfig::default() };
        link.reconfigure(changed).unwrap();
        assert_eq!(drain(&mut link), [(ms(10), 0), (ms(20), 1), (ms(30), 2)]);
    }
}
