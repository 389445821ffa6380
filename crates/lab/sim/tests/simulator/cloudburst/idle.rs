//! Idle messages between racks, to the picosecond.

use super::*;
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::path::Order;
use cloudburst_core::proto::Layout;
use cloudburst_sim::Flow;
use cloudburst_sim::engine::NS;
use cloudburst_sim::transport::cloudburst::{
    Cloudburst, ETHERNET_FRAMING, Paths, Sessions, Settings,
};

pub(super) const LINK: u64 = 10_000_000_000;
/// IP and UDP headers.
const HEADERS: u64 = 28;
/// The size of a SYMBOL without its index set and payload.
const SYMBOL: u64 = 56;

/// The transmission time of a byte at 10 Gb/s.
pub(super) const BYTE: Time = 800;

pub(super) fn endpoint(settings: Settings, bytes: u64) -> Flow {
    let settings = Settings { sessions: Sessions::Between(vec![(0, 143)]), ..settings };
    let transport = Cloudburst::new(settings, &SHAPE).unwrap();
    let simulation = run(transport, Depth::Unlimited, &[(0, 143, bytes)]);
    simulation.network().flows().as_slice()[0]
}

/// The time from the first bit that leaves a host to the last that arrives at the other. A packet crosses links
/// of 10, 40, 40 and 10 Gb/s, of 2 us each.
pub(super) fn crossing(packet: u64) -> Time {
    8_000 * NS + packet * BYTE + 2 * packet * BYTE / 4 + packet * BYTE
}

/// The number of symbols of a message, and the size of each on the wire, with index sets of `index_set` bytes.
pub(super) fn symbols(bytes: u64, index_set: u64) -> (u64, u64) {
    let layout = Layout::fit(bytes as usize, (1_472 - SYMBOL - index_set) as usize);
    let size = layout.symbol_size() as u64;
    (layout.source_symbols() as u64, HEADERS + SYMBOL + index_set + size)
}

/// The size of a STOP that reports arrivals on `paths` paths: a header of 14 bytes, a report of 33 and 4 for each path,
/// and a tag of 16.
pub(super) fn stop(paths: u64) -> u64 {
    HEADERS + 14 + 33 + 4 * paths + 16
}

/// With RLF-256, n symbols of L bytes complete the message. The last one arrives `(n - 1) L / rate` after the first,
/// which takes `crossing(L)`: they fit in the pacer's bucket of 500 us, so all leave back to back. The STOP leaves at
/// once.
#[test]
fn an_idle_message_completes_with_its_nth_symbol_and_is_acknowledged_by_the_stop() {
    // Four symbols are one train, on the path of the handshake, which is known to be alive.
    for (bytes, paths) in [(0, 1), (5_000, 1), (93_000, 4)] {
        let flow = endpoint(Settings::ours(LINK), bytes);
        let (n, packet) = symbols(bytes, 0);
        let delivered = BEGIN + (n - 1) * packet * BYTE + crossing(packet);
        assert_eq!(flow.delivered, Some(delivered), "{bytes}");
        assert_eq!(flow.acknowledged, Some(delivered + crossing(stop(paths))), "{bytes}");
        assert_eq!((u64::from(flow.needed), u64::from(flow.sent)), (n, n + n / 16));
    }
    // 93,000 bytes: 66 symbols of 1,410 bytes, 1,494 on the wire.
    assert_eq!(symbols(93_000, 0), (66, 1_494));
    let delivered = endpoint(Settings::ours(LINK), 93_000).delivered;
    assert_eq!(delivered, Some(BEGIN + 88_676 * NS));
}

#[test]
fn ethernet_framing_takes_time_on_links_but_no_bytes_of_packets() {
    let settings = Settings { framing: ETHERNET_FRAMING, ..Settings::ours(LINK) };
    let (n, packet) = symbols(93_000, 0);
    let packet = packet + u64::from(ETHERNET_FRAMING);
    let delivered = BEGIN + (n - 1) * packet * BYTE + crossing(packet);
    assert_eq!(endpoint(settings, 93_000).delivered, Some(delivered));
}

/// At r = 0.1, a packet of 1,500 bytes takes 12 us, and a round of four trains of four packets 192 us. The
/// packets of a round leave back to back as soon as the pacer has caught up with the present. It starts 500 us
/// behind, so round j leaves at `192 j - 500` us, or at once if that is negative. Of the 136 symbols, no train
/// takes more than its path's share of those that are left: the last train of round 7 has 3 packets, and the
/// 128th symbol is the first of round 8.
#[test]
fn packets_beyond_the_bucket_depth_leave_at_the_rate() {
    let config = Config { rate: 0.1.into(), capacity: LINK.into(), ..Config::default() };
    let flow = endpoint(Settings::new(config), 128 * 1_416 - 16);
    let round = (192 * 7 + 180 - 500) * US;
    assert_eq!(flow.delivered, Some(BEGIN + round + crossing(1_500)));
}

/// LT needs some symbols beyond n. Their index sets have a bit for each source symbol.
#[test]
fn the_papers_message_takes_a_whole_number_of_its_symbols() {
    let flow = endpoint(Settings::paper(LINK), 93_000);
    let (n, packet) = symbols(93_000, 9);
    assert_eq!((n, packet), (67, 1_482));
    let rest = flow.delivered.unwrap() - BEGIN - crossing(packet);
    assert_eq!(rest % (packet * BYTE), 0);
    let needed = rest / (packet * BYTE) + 1;
    assert!((n..2 * n).contains(&needed), "{needed}");
}

#[test]
fn every_order_and_every_kind_of_path_delivers_an_idle_message_at_the_same_time() {
    let config = Config {
        capacity: LINK.into(),
        tuning: Tuning { train: 1, ..Tuning::default() },
        ..Config::default()
    };
    let (n, packet) = symbols(93_000, 0);
    let delivered = Some(BEGIN + (n - 1) * packet * BYTE + crossing(packet));
    for order in [Order::Random, Order::RoundRobin, "drb:4".parse().unwrap()] {
        let settings = Settings::new(Config { order, ..config.clone() });
        assert_eq!(endpoint(settings, 93_000).delivered, delivered, "{order}");
    }
    let settings = Settings { paths: Paths::Hashed { ports: 16 }, ..Settings::new(config) };
    assert_eq!(endpoint(settings, 93_000).delivered, delivered);
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let refusal = |settings| Cloudburst::new(settings, &SHAPE).unwrap_err().to_string();
    let order = "drb:2x3".parse().unwrap();
    let error = refusal(Settings::new(Config { order, ..Config::default() }));
    assert!(error.contains("which has 4"), "{error}");
    let error = refusal(Settings::new(Config { rate: 2.0.into(), ..Config::default() }));
    assert!(error.contains("`rate` is 2"), "{error}");
}

/// If a host's port holds only one packet, the symbols of a burst wait in the endpoint, where STOP ends them: with
/// the paper's settings, 5,000 bytes then cost the packets of a round trip, without those that an endpoint may
/// send back to back after a pause.
#[test]
fn packets_in_the_send_buffer_are_not_sent_after_a_stop() {
    let unlimited = Settings::paper(LINK);
    let limited = Settings { send_buffer: Some(0), ..unlimited.clone() };
    let unlimited = endpoint(unlimited, 5_000);
    let limited = endpoint(limited, 5_000);
    assert_eq!(limited.delivered, unlimited.delivered);
    assert_eq!(limited.acknowledged, unlimited.acknowledged);
    let (n, packet) = symbols(5_000, 1);
    assert!(u64::from(unlimited.sent) > 8 * n);
    let until_stop = limited.acknowledged.unwrap() - BEGIN;
    assert_eq!(u64::from(limited.sent), until_stop.div_ceil(packet * BYTE));
}
