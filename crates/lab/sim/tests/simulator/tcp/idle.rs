//! Idle flows, to the picosecond.
//!
//! A full packet takes s = 1.2 us at 10 Gb/s and, once it has left its host, p = 4 * 2 + 0.3 + 0.3 + 1.2 =
//! 9.8 us to its destination. An ACK takes a = 0.032 + 0.008 + 0.008 + 0.032 + 4 * 2 = 8.08 us.

use super::{fabric, run};
use crate::common::unlimited;
use cloudburst_core::path::Order;
use cloudburst_sim::engine::{MS, NS, Time, US};
use cloudburst_sim::queue::{Classes, Depth, DropTail, Limits, Strict, Weighted};
use cloudburst_sim::transport::tcp::{self, Config, LoadBalancing, Throttle};

const SERVICE: Time = 1_200 * NS;
const WAY: Time = 9_800 * NS;
const ACK: Time = 8_080 * NS;
const SIXTY: (u16, u16, u64) = (0, 143, 60 * 1_460);

/// The delivery time of 60 packets. The first ACK arrives after s + p + a = 19.08 us, the initial window takes
/// 12 us, and from then on slow start sends two packets for each ACK. ACKs arrive 1.2 us apart, so the host is
/// never idle again: 50 packets follow the first ACK back to back.
const SLOW_START: Time = SERVICE + WAY + ACK + 50 * SERVICE + WAY;

fn completes(config: Config, flow: (u16, u16, u64), delivered: Time) {
    for flow in run(fabric(unlimited), config, &[flow]) {
        assert_eq!(flow.delivered, Some(delivered));
        assert_eq!(flow.acknowledged, Some(delivered + ACK));
        assert_eq!((flow.needed, flow.received), (60, flow.spec.bytes));
    }
}

#[test]
fn an_idle_tcp_flow_takes_the_time_of_slow_start() {
    assert_eq!(SLOW_START, 88_880 * NS);
    completes(Config::default(), SIXTY, SLOW_START);
    // The initial window holds all packets.
    let initial_window = 60;
    completes(Config { initial_window, ..Config::default() }, SIXTY, 60 * SERVICE + WAY);
}

#[test]
fn a_window_limits_what_is_outstanding() {
    // 10 packets per round trip: the last 10 follow the first ACK of the fifth round trip.
    let window = 10 * 1_460;
    let rounds = 5 * (SERVICE + WAY + ACK);
    completes(Config { window, ..Config::default() }, SIXTY, rounds + 10 * SERVICE + WAY);
}

#[test]
fn all_paths_take_the_same_time() {
    for order in [Order::Random, Order::RoundRobin, "drb:2x2".parse().unwrap()] {
        let balancing = LoadBalancing::PerPacket(order);
        for resequencing in [None, Some(10 * MS)] {
            completes(Config { balancing, resequencing, ..Config::default() }, SIXTY, SLOW_START);
        }
    }
    completes(
        Config { balancing: LoadBalancing::Fixed(6), ..Config::default() },
        SIXTY,
        SLOW_START,
    );
}

#[test]
fn dctcp_is_tcp_when_nothing_is_marked() {
    completes(Config::dctcp(), SIXTY, SLOW_START);
    let marks = |_| DropTail::with_ecn(Depth::Packets(1_000), Depth::Packets(65)).into();
    let flow = run(fabric(marks), Config::dctcp(), &[SIXTY])[0];
    assert_eq!(flow.delivered, Some(SLOW_START));
}

#[test]
fn pias_is_dctcp_when_nothing_else_is_sent() {
    let config = Config::pias(vec![10_000, 50_000, 80_000]);
    completes(config.clone(), SIXTY, SLOW_START);
    let limits = [Limits::with_ecn(Depth::Packets(100), Depth::Packets(65)); 4];
    let strict = |link| Strict::new(Classes::new(link, &limits)).into();
    let weighted = |link| Weighted::new(Classes::new(link, &limits), &[4, 3, 2, 1]).into();
    for fabric in [fabric(strict), fabric(weighted)] {
        let flow = run(fabric, config.clone(), &[SIXTY])[0];
        assert_eq!(flow.delivered, Some(SLOW_START));
        assert_eq!(flow.acknowledged, Some(SLOW_START + ACK));
    }
}

#[test]
fn a_short_last_packet_takes_less_time() {
    // One byte and 40 of headers: 41 bytes on all links.
    let flow = run(fabric(unlimited), Config::default(), &[(0, 143, 1)])[0];
    let bytes = 41 * (2 * 800 + 2 * 200);
    assert_eq!(flow.delivered, Some(bytes + 8 * US));
    // 1,461 bytes: the short packet catches up with the first one, which takes longer on each link.
    let flow = run(fabric(unlimited), Config::default(), &[(0, 143, 1_461)])[0];
    assert_eq!(flow.delivered, Some(SERVICE + WAY + 41 * 800));
    assert_eq!((flow.sent, flow.needed), (2, 2));
}

#[test]
fn jumbo_packets_take_longer_on_each_link() {
    // A packet takes 7.2 us at 10 Gb/s and 1.8 us at 40 Gb/s; the initial window is ten packets.
    let config = Config { packet: 9_000, payload: 8_960, ..Config::default() };
    let flow = run(fabric(unlimited), config, &[(0, 143, 10 * 8_960)])[0];
    assert_eq!(flow.delivered, Some(10 * 7_200 * NS + 8 * US + 2 * 1_800 * NS + 7_200 * NS));
}

#[test]
fn copies_share_the_port_of_their_host() {
    // Each copy sends its initial window: 10 + 10 packets. The ACKs of these release 20 + 20. When the second
    // copy has queued its 20, no further ACK of the first copy has arrived, so the last 30 packets of the first
    // copy queue behind all others.
    let config = Config { copies: 2, ..Config::dctcp() };
    let queued = 10 + 10 + 20 + 20 + 30;
    completes(config, SIXTY, queued * SERVICE + WAY);
}

#[test]
fn a_throttled_host_sends_a_packet_an_epoch() {
    let throttle =
        Throttle { hosts: 144, packet: 1_500, rate: 10_000_000_000, delay: 4 * US, factor: 1 };
    // 2 * 144 * 1.2 us + 4 us.
    let epoch = 349_600 * NS;
    assert_eq!(throttle.epoch(), epoch);
    let level = |factor| Config {
        throttle: Some(Throttle { factor, ..throttle }),
        ..tcp::Config::default()
    };
    completes(level(1), SIXTY, 59 * epoch + SERVICE + WAY);
    // Two packets per epoch, back to back.
    completes(level(2), SIXTY, 29 * epoch + 2 * SERVICE + WAY);
    // Not throttled.
    completes(level(144), SIXTY, SLOW_START);
    // Two messages share the host's epochs, so they take as long as one of twice the size.
    let flows = run(fabric(unlimited), level(1), &[SIXTY, (0, 100, 60 * 1_460)]);
    let last = flows.iter().filter_map(|flow| flow.delivered).max();
    assert_eq!(last, Some(119 * epoch + SERVICE + WAY));
}
