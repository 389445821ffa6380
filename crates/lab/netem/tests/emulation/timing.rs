//! When packets arrive, and in which order: delay, jitter, holding back, rate, queue.

use cloudburst_netem::{Link, LinkConfig};
use core::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn link(config: LinkConfig, seed: u64) -> Link {
    Link::new(config, seed).expect("the tests use valid configurations")
}

/// Takes all packets out, each at its time: `(arrival, first two bytes as a number)`.
fn drain(link: &mut Link) -> Vec<(Duration, u16)> {
    let mut arrived = Vec::new();
    while let Some(at) = link.next_at() {
        let packet = link.poll(at).expect("a packet is there at the time of `next_at`");
        arrived.push((at, u16::from_be_bytes([packet[0], packet[1]])));
    }
    arrived
}

fn in_order(arrived: &[(Duration, u16)]) -> bool {
    arrived.is_sorted_by_key(|&(at, _)| at) && arrived.is_sorted_by_key(|&(_, number)| number)
}

#[test]
fn a_packet_arrives_after_its_delay_and_not_before() {
    let mut link = link(LinkConfig { delay: ms(20), ..LinkConfig::default() }, 1);
    assert_eq!((link.next_at(), link.poll(ms(0))), (None, None));
    link.send(ms(5), b"hi");
    assert_eq!(link.next_at(), Some(ms(25)));
    assert_eq!(link.poll(ms(25) - Duration::from_nanos(1)), None);
    assert_eq!(link.in_flight(), 1);
    assert_eq!(link.poll(ms(25)).as_deref(), Some(b"hi".as_slice()));
    assert_eq!((link.next_at(), link.in_flight()), (None, 0));
}

#[test]
fn packets_sent_at_once_arrive_in_order_of_sending() {
    let mut link = link(LinkConfig { delay: ms(20), ..LinkConfig::default() }, 2);
    (0..1_000_u16).for_each(|k| link.send(ms(0), &k.to_be_bytes()));
    let arrived = drain(&mut link);
    assert_eq!(arrived.len(), 1_000);
    assert!(in_order(&arrived) && arrived.iter().all(|&(at, _)| at == ms(20)));
}

#[test]
fn jitter_spreads_arrivals_without_reordering() {
    let config = LinkConfig { delay: ms(20), jitter: ms(10), ..LinkConfig::default() };

    // Far apart, each packet's extra delay is its own.
    let mut far = link(config.clone(), 3);
    (0..10_000).for_each(|k: u16| far.send(ms(100) * u32::from(k), &k.to_be_bytes()));
    let arrived = drain(&mut far);
    let extra: Vec<Duration> =
        arrived.iter().map(|&(at, k)| at - ms(20) - ms(100) * u32::from(k)).collect();
    let mean = extra.iter().sum::<Duration>() / 10_000;
    assert!(extra.iter().all(|&extra| extra <= ms(10)));
    assert!((Duration::from_micros(4_800)..=Duration::from_micros(5_200)).contains(&mean));

    // Close together, none overtakes.
    let mut close = link(config, 3);
    (0..10_000).for_each(|k: u16| close.send(ms(u64::from(k)), &k.to_be_bytes()));
    let arrived = drain(&mut close);
    assert!(in_order(&arrived));
    assert!(arrived.iter().all(|&(at, k)| at - ms(u64::from(k)) <= ms(30)));
}

#[test]
fn reordered_packets_are_overtaken() {
    let config = LinkConfig { reorder: 0.1, reorder_by: ms(3), ..LinkConfig::default() };
    let mut link = link(config, 4);
    (0..10_000).for_each(|k: u16| link.send(ms(u64::from(k)), &k.to_be_bytes()));
    let arrived = drain(&mut link);
    let late = arrived.iter().filter(|&&(at, k)| at == ms(u64::from(k) + 3)).count();
    let on_time = arrived.iter().filter(|&&(at, k)| at == ms(u64::from(k))).count();
    assert_eq!(late + on_time, 10_000);
    assert_eq!(late as u64, link.stats().reordered);
    assert!((850..=1_150).contains(&late), "{late}");
    assert!(!in_order(&arrived));
}

#[test]
fn the_rate_spaces_packets_by_their_length() {
    // 1,250 bytes at 1 Mb/s take 10 ms.
    let config = LinkConfig { rate: Some(1_000_000), delay: ms(1), ..LinkConfig::default() };
    let mut link = link(config, 5);
    (0..3_u16).for_each(|k| link.send(ms(0), &k.to_be_bytes().repeat(625)));
    link.send(ms(0), &3_u16.to_be_bytes().repeat(250));
    link.send(ms(100), &4_u16.to_be_bytes().repeat(625));
    let expected = [(ms(11), 0), (ms(21), 1), (ms(31), 2), (ms(35), 3), (ms(111), 4)];
    assert_eq!(drain(&mut link), expected);
}

#[test]
fn the_queue_drops_its_tail_and_drains_with_time() {
    let config = LinkConfig { rate: Some(1_000_000), queue: 3, ..LinkConfig::default() };
    let mut link = link(config, 6);
    let mut send = |at, k: u16| link.send(at, &k.to_be_bytes().repeat(625));
    (0..5).for_each(|k| send(ms(0), k));
    // At 10 ms the first has departed: one place is free, for one packet.
    send(ms(10) - Duration::from_nanos(1), 5);
    send(ms(10), 6);
    send(ms(10), 7);
    assert_eq!(link.stats().queue_dropped, 4);
    let expected = [(ms(10), 0), (ms(20), 1), (ms(30), 2), (ms(40), 6)];
    assert_eq!(drain(&mut link), expected);
}

#[test]
fn the_queue_counts_packets_that_have_not_departed() {
    let config =
        LinkConfig { rate: Some(1_000_000), queue: 1, delay: ms(500), ..LinkConfig::default() };
    let mut link = link(config, 7);
    (0..20_u16).for_each(|k| link.send(ms(10) * u32::from(k), &k.to_be_bytes().repeat(625)));
    assert_eq!((link.stats().queue_dropped, link.in_flight()), (0, 20));
}

#[test]
fn a_shorter_route_overtakes_and_other_changes_keep_the_order() {
    let long = LinkConfig { delay: ms(100), jitter: ms(50), ..LinkConfig::default() };
    let mut link = link(long.clone(), 8);
    for k in 0..1_000_u16 {
        let mtu = Some(1_000 + usize::from(k));
        link.reconfigure(LinkConfig { mtu, ..long.clone() }).unwrap();
        link.send(ms(0), &k.to_be_bytes());
    }
    assert!(in_order(&drain(&mut link)));

    link.send(ms(1_000), &[0, 1]);
    link.reconfigure(LinkConfig { delay: ms(1), ..LinkConfig::default() }).unwrap();
    link.send(ms(1_000), &[0, 2]);
    assert_eq!(link.next_at(), Some(ms(1_001)));
    assert_eq!(drain(&mut link).iter().map(|&(_, k)| k).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_new_rate_applies_behind_what_is_queued() {
    let at_rate = |rate| LinkConfig { rate, ..LinkConfig::default() };
    let mut link = link(at_rate(Some(1_000_000)), 9);
    link.send(ms(0), &0_u16.to_be_bytes().repeat(625));
    link.reconfigure(at_rate(Some(10_000_000))).unwrap();
    link.send(ms(0), &1_u16.to_be_bytes().repeat(625));
    assert_eq!(drain(&mut link), [(ms(10), 0), (ms(11), 1)]);
}

#[test]
fn extreme_times_saturate() {
    let mut link = link(
        LinkConfig {
            delay: Duration::MAX,
            jitter: Duration::MAX,
            reorder: 0.5,
            reorder_by: Duration::MAX,
            rate: Some(1),
            ..LinkConfig::default()
        },
        10,
    );
    (0..10).for_each(|_| link.send(Duration::MAX, &[0; 1_000]));
    assert_eq!(link.next_at(), Some(Duration::MAX));
    assert!(link.poll(ms(1)).is_none() && link.poll(Duration::MAX).is_some());
}
