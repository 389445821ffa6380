//! The DSCP and ECN that packets arrive with are counted, and a foreign DSCP is reported once.

use crate::common::{TIMEOUT, builder, builder_on, bytes, log::Log, tap::Tap, with_dscps};
use cloudburst_core::burst::PacketIo;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Class, Contents, Ecn, Marking, Transmit};
use cloudburst_core::wire::Kind;
use cloudburst_core::wire::packet::VERSION;
use cloudburst_net::io::{UdpConfig, UdpIo};
use cloudburst_net::{Config, EcnCounts, EcnMode, Fabric, IoCounters};
use nix::sys::socket::{setsockopt, sockopt};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The address that sockets are bound to, and the one at which others reach them.
const WAYS: [(&str, &str); 5] = [
    ("127.0.0.1", "127.0.0.1"),
    ("0.0.0.0", "127.0.0.1"),
    ("::1", "::1"),
    ("::", "127.0.0.1"),
    ("::", "::1"),
];
/// The first byte of a SYMBOL.
const SYMBOL: u8 = VERSION << 4 | Kind::Symbol as u8;

fn open(ip: &str, dscp: u8) -> UdpIo {
    open_with(ip, dscp, 1 << 20)
}

fn open_with(ip: &str, dscp: u8, socket_buffers: usize) -> UdpIo {
    open_as(ip, &[dscp], socket_buffers)
}

fn open_as(ip: &str, dscps: &[u8], socket_buffers: usize) -> UdpIo {
    let bind = SocketAddr::new(ip.parse().expect("an address"), 0);
    let config = UdpConfig {
        bind,
        reuse_port: false,
        sockets: 1,
        ports: 1,
        flow_labels: 0,
        encapsulates: false,
        dscps: dscps.to_vec(),
        trim_dscp: None,
        socket_buffers,
    };
    UdpIo::open(&config, Vec::new()).expect("loopback sockets")
}

const fn marking(ecn: Ecn) -> Marking {
    Marking { class: Class::DATA, ecn }
}

/// The address of `io` at `ip`.
fn at(io: &UdpIo, ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().expect("an address"), io.local_addr().port())
}

fn receive(io: &UdpIo, count: u64) -> IoCounters {
    let start = Instant::now();
    while io.counters().datagrams_received < count {
        assert!(start.elapsed() < TIMEOUT, "{:?}", io.counters());
        io.take(io.wait(Duration::from_secs(1)), true, &mut |_| {});
    }
    io.counters()
}

/// Sends a datagram with any byte for DSCP and ECN.
fn send_marked(to: SocketAddr, byte: i32, contents: &[u8]) {
    let any = if to.is_ipv4() { "127.0.0.1" } else { "::1" };
    let socket = UdpSocket::bind((any, 0)).expect("a socket");
    let set = match to {
        SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4Tos, &byte),
        SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6TClass, &byte),
    };
    set.expect("the kernel marks packets");
    socket.send_to(contents, to).expect("loopback takes it");
}

#[test]
fn datagrams_are_counted_by_ecn_over_either_ip() {
    for (bound, ip) in WAYS {
        let io = open(bound, 43);
        for (ecn, times) in [(0b00, 1), (0b01, 2), (0b10, 3), (0b11, 4)] {
            for _ in 0..times {
                send_marked(at(&io, ip), 43 << 2 | ecn, &[SYMBOL]);
            }
        }
        let counters = receive(&io, 10);
        let EcnCounts { not_ect, ect1, ect0, ce, .. } = counters.ecn;
        assert_eq!((not_ect, ect1, ect0, ce), (1, 2, 3, 4), "{bound} {ip}");
        assert_eq!((counters.foreign_dscp, counters.first_foreign_dscp), (0, None));
        assert_eq!(counters.truncated, 0);
    }
}

#[test]
fn a_batch_has_the_mark_of_its_packets_in_one_call() {
    for (bound, ip) in WAYS {
        let from = open(bound, 43);
        let to = open(bound, 43);
        let contents = bytes(40 * 1_452, 1);
        let via = Via { egress: 0, local: None, remote: at(&to, ip) };
        for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect0] {
            from.transmit(
                &Transmit {
                    contents: Contents::Answers,
                    via,
                    segment_size: 1_452,
                    len: contents.len(),
                    marking: marking(ecn),
                },
                &contents,
            )
            .expect("loopback takes it");
        }
        let counters = receive(&to, 120);
        let EcnCounts { not_ect, ect1, ect0, ce, .. } = counters.ecn;
        assert_eq!((not_ect, ect1, ect0, ce), (40, 0, 80, 0), "{bound} {ip}");
        assert!(counters.batches_received < 120, "GRO");
        assert_eq!(from.counters().batches_sent, 3, "{bound} {ip}");
    }
}

#[test]
fn all_control_messages_of_a_batch_fit_at_once() {
    for (bound, ip) in WAYS {
        let from = open(bound, 43);
        let to = open_with(bound, 43, 4 << 10);
        let via = Via { egress: 0, local: None, remote: at(&to, ip) };
        let send = |size, len| {
            let contents = Contents::Answers;
            let marking = marking(Ecn::Ect0);
            let transmit = Transmit { contents, via, segment_size: size, len, marking };
            from.transmit(&transmit, &bytes(len, 1)).expect("loopback takes it");
        };
        (0..50).for_each(|_| send(1_000, 1_000));
        to.take(to.wait(Duration::ZERO), true, &mut |_| {});
        let before = to.counters();
        // Drops, segments, a mark, and a destination.
        send(20, 200);
        let counters = receive(&to, before.datagrams_received + 10);
        assert!(
            counters.kernel_drops > 0 && counters.batches_received == before.batches_received + 1
        );
        assert_eq!((counters.truncated, counters.ecn.ect0), (0, counters.datagrams_received));
    }
}

#[test]
fn a_foreign_dscp_is_reported_once_with_both_values_and_its_source() {
    for (ip, other) in [("127.0.0.1", 0), ("::1", 10)] {
        let log = Log::default();
        let io = open(ip, 43);
        let from = open(ip, other);
        let via = Via { egress: 0, local: None, remote: io.local_addr() };
        let counters = tracing::subscriber::with_default(log.clone(), || {
            // Junk with yet another DSCP is not reported.
            send_marked(io.local_addr(), 20 << 2, b"junk");
            for _ in 0..2 {
                let packets = [SYMBOL; 30];
                let contents = Contents::Answers;
                let marking = marking(Ecn::NotEct);
                let transmit = Transmit { contents, via, segment_size: 10, len: 30, marking };
                from.transmit(&transmit, &packets).expect("loopback takes it");
            }
            send_marked(io.local_addr(), 30 << 2, &[SYMBOL]);
            receive(&io, 8)
        });
        assert_eq!(counters.foreign_dscp, 7);
        assert_eq!(counters.first_foreign_dscp, Some(other));
        assert_eq!(log.warnings("DSCP"), 1, "{log:?}");
        let values = format!("expected=43 got={other} from={} ", from.local_addr());
        assert_eq!(log.warnings(&values), 1, "{log:?}");
        assert_eq!(log.warnings("`Fabric::dscps`"), 1, "{log:?}");
    }
}

#[test]
fn endpoints_with_different_dscps_communicate_and_both_count_it() {
    let client = builder().config(with_dscps([10])).build().unwrap();
    let server = builder().config(with_dscps([20])).build().unwrap();
    client.send(server.local_addr(), bytes(50_000, 1)).wait().unwrap();
    let sent = client.counters().io;
    let received = server.counters().io;
    assert_eq!((sent.first_foreign_dscp, received.first_foreign_dscp), (Some(20), Some(10)));
    assert!(received.foreign_dscp >= 37, "that many symbols it took: {received:?}");
}

#[test]
fn endpoints_with_the_same_dscps_count_no_foreign_packets() {
    for ip in ["127.0.0.1", "::1"] {
        let build = || builder_on(ip).config(with_dscps([46, 43, 10])).build().unwrap();
        let client = build();
        let server = build();
        client.send(server.local_addr(), bytes(50_000, 1)).wait().unwrap();
        for io in [client.counters().io, server.counters().io] {
            assert_eq!((io.foreign_dscp, io.first_foreign_dscp), (0, None), "{ip}");
        }
    }
}

#[test]
fn the_warning_about_a_foreign_dscp_lists_all_own_dscps() {
    let log = Log::default();
    let io = open_as("127.0.0.1", &[46, 43], 1 << 20);
    let counters = tracing::subscriber::with_default(log.clone(), || {
        for dscp in [43, 46, 10] {
            send_marked(io.local_addr(), dscp << 2, &[SYMBOL]);
        }
        receive(&io, 3)
    });
    assert_eq!((counters.foreign_dscp, counters.first_foreign_dscp), (1, Some(10)));
    assert_eq!(log.warnings("expected=46,43 got=10"), 1, "{log:?}");
}

#[test]
fn congestion_marks_are_counted_and_reported_to_senders() {
    let config = Config {
        fabric: Fabric { ecn: EcnMode::Aeolus, ..Fabric::default() },
        ..Config::default()
    };
    let build = || builder().config(config.clone());
    let client = build().build().unwrap();
    let (server, tap) = Tap::marking(build(), "127.0.0.1", 43 << 2 | 0b11);
    for n in 0..4 {
        client.send(tap.addr(), bytes(50_000, n)).wait().unwrap();
    }
    let sent = client.counters();
    let received = server.counters();
    for io in [sent.io, received.io] {
        assert!(io.ecn.ce >= 4, "{io:?}");
        assert_eq!((io.ecn.not_ect, io.ecn.ect0, io.ecn.ect1), (0, 0, 0), "{io:?}");
        assert_eq!(io.foreign_dscp, 0);
    }
    assert_eq!(sent.sender.delivered, 4);
    let paths = client.paths(tap.addr());
    let (marked, arrived): (u64, u64) =
        paths.iter().fold((0, 0), |sum, path| (sum.0 + path.marked, sum.1 + path.arrived));
    assert!(arrived > 0 && marked == arrived, "{marked} of {arrived}");
}
