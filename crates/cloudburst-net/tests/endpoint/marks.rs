//! Every packet carries the DSCP and the ECN bits that it should, and comes from the pool of
//! source ports.

use crate::common::tap::{Packet, Tap};
use crate::common::{builder_on, bytes, with_dscps};
use cloudburst_core::wire::Kind;
use cloudburst_net::{Config, EcnMode, Fabric, PathMap};
use std::collections::{BTreeMap, BTreeSet};

fn through_tap(ip: &str, configure: fn(cloudburst_net::Builder) -> cloudburst_net::Builder) -> Tap {
    let client = configure(builder_on(ip)).build().expect("an endpoint");
    let (server, tap) = Tap::in_front_of(configure(builder_on(ip)), ip);
    for n in 0..8 {
        client.send(tap.addr(), bytes(50_000, n)).wait().expect("it passes");
        server.recv().wait().expect("it came");
    }
    assert!(server.counters().receiver.stops_sent >= 8, "STOPs are among the packets");
    assert!(client.counters().io.batches_sent < client.counters().io.datagrams_sent, "batches");
    tap
}

#[test]
fn all_packets_carry_the_default_dscp() {
    for ip in ["127.0.0.1", "::1"] {
        let seen = through_tap(ip, |builder| builder).seen();
        assert!(seen.up.len() > 8 * 30 && seen.down.len() >= 8);
        for packet in seen.up.iter().chain(&seen.down) {
            assert_eq!(packet.tos, Some(43 << 2), "{packet:?}");
        }
    }
}

#[test]
fn ipv4_packets_of_a_dual_stack_endpoint_carry_the_default_dscp() {
    let client = builder_on("127.0.0.1").build().unwrap();
    let (_server, tap) = Tap::in_front_of(builder_on("::"), "127.0.0.1");
    client.send(tap.addr(), bytes(50_000, 1)).wait().unwrap();
    let seen = tap.seen();
    assert!(!seen.down.is_empty());
    assert!(seen.down.iter().all(|packet| packet.tos == Some(43 << 2)), "{seen:?}");
}

#[test]
fn all_packets_carry_the_dscp_that_was_chosen() {
    for (dscp, byte) in [(0, 0), (63, 0xfc)] {
        let configure: fn(_) -> _ = match dscp {
            0 => |builder: cloudburst_net::Builder| builder.config(with_dscps([0])),
            _ => |builder: cloudburst_net::Builder| builder.config(with_dscps([63])),
        };
        let seen = through_tap("127.0.0.1", configure).seen();
        assert!(seen.up.iter().chain(&seen.down).all(|packet| packet.tos == Some(byte)));
    }
}

#[test]
fn symbols_and_control_packets_carry_the_dscps_of_their_classes() {
    let ecmp = PathMap::ecmp(4);
    for (bound, ip, paths) in [
        ("127.0.0.1", "127.0.0.1", ecmp.clone()),
        ("::1", "::1", ecmp.clone()),
        ("::1", "::1", PathMap::flow_labels(4)),
        ("::", "::1", ecmp.clone()),
        ("::", "127.0.0.1", ecmp),
    ] {
        let build = || builder_on(bound).paths(paths.clone()).config(with_dscps([46, 43]));
        let client = build().build().unwrap();
        let (_server, tap) = Tap::in_front_of(build(), ip);
        client.send(tap.addr(), bytes(50_000, 1)).wait().unwrap();
        let seen = tap.seen();
        let is_symbol = |packet: &&Packet| packet.kind == Some(Kind::Symbol);
        assert!(seen.up.iter().filter(is_symbol).count() > 30 && !seen.down.is_empty());
        assert!(seen.up.iter().any(|packet| packet.kind == Some(Kind::Hello)));
        for packet in seen.up.iter().chain(&seen.down) {
            let dscp = if is_symbol(&packet) { 43 } else { 46 };
            assert_eq!(packet.tos, Some(dscp << 2), "{bound} {ip}: {packet:?}");
        }
        let io = client.counters().io;
        assert!(io.batches_sent < io.datagrams_sent, "symbols go in batches");
    }
}

#[test]
fn each_class_of_symbols_carries_its_dscp() {
    for ip in ["127.0.0.1", "::1"] {
        let mut config = with_dscps([46, 46, 45]);
        config.fabric.classes = "left:20000".parse().unwrap();
        let build = || builder_on(ip).config(config.clone());
        let client = build().build().unwrap();
        let (_server, tap) = Tap::in_front_of(build(), ip);
        client.send(tap.addr(), bytes(5_000, 1)).wait().unwrap();
        let short = tap.seen();
        assert!(short.up.iter().chain(&short.down).all(|packet| packet.tos == Some(46 << 2)));
        client.send(tap.addr(), bytes(50_000, 2)).wait().unwrap();
        let both = tap.seen();
        let is_low = |packet: &&Packet| packet.tos == Some(45 << 2);
        assert!(both.up.iter().filter(is_low).count() > 30, "{ip}");
        assert_eq!(both.down.iter().filter(is_low).count(), 0, "answers go first: {ip}");
    }
}

#[test]
fn with_aeolus_symbols_before_the_first_answer_alone_are_not_ect() {
    const NOT_ECT: Option<u8> = Some(43 << 2);
    const ECT_0: Option<u8> = Some(43 << 2 | 0b10);
    let ecmp = PathMap::ecmp(4);
    let fabric = Fabric { ecn: EcnMode::Aeolus, ..Fabric::default() };
    let config = Config { fabric, ..Config::default() };
    for (bound, ip, paths) in [
        ("127.0.0.1", "127.0.0.1", ecmp.clone()),
        ("::1", "::1", ecmp.clone()),
        ("::1", "::1", PathMap::flow_labels(4)),
        ("::", "::1", ecmp.clone()),
        ("::", "127.0.0.1", ecmp),
    ] {
        let build = || builder_on(bound).paths(paths.clone()).config(config.clone());
        let client = build().build().unwrap();
        let (_server, tap) = Tap::in_front_of(build(), ip);
        // Two blocks go out at first; the others wait for answers.
        client.send(tap.addr(), bytes(1_000_000, 1)).wait().unwrap();
        let seen = tap.seen();
        assert!(!seen.down.is_empty() && seen.down.iter().all(|packet| packet.tos == ECT_0));
        let (symbols, others): (Vec<_>, Vec<&Packet>) =
            seen.up.iter().partition(|packet| packet.kind == Some(Kind::Symbol));
        assert!(!others.is_empty() && others.iter().all(|packet| packet.tos == ECT_0));
        assert_eq!(symbols[0].tos, NOT_ECT, "{bound} {ip}");
        let later = symbols.iter().filter(|packet| packet.tos == ECT_0).count();
        let first = symbols.iter().filter(|packet| packet.tos == NOT_ECT).count();
        assert_eq!(first + later, symbols.len(), "{bound} {ip}");
        // 732 source symbols, of which 244 are in the first two blocks.
        assert!(later >= 488 && first > 0, "{bound} {ip}: {first} and {later}");
        let io = client.counters().io;
        assert!(io.batches_sent < io.datagrams_sent, "marked packets go in batches");
    }
}

#[test]
fn every_port_of_the_pool_is_used() {
    let seen = through_tap("127.0.0.1", |builder| builder.paths(PathMap::ecmp(16))).seen();
    let ports: BTreeSet<u16> = seen.up.iter().map(|packet| packet.from.port()).collect();
    assert_eq!(ports.len(), 16);
}

#[test]
fn a_pool_of_one_is_the_bound_port_alone() {
    let client = builder_on("127.0.0.1").paths(PathMap::ecmp(1)).build().unwrap();
    let (_server, tap) = Tap::in_front_of(builder_on("127.0.0.1"), "127.0.0.1");
    client.send(tap.addr(), bytes(50_000, 1)).wait().unwrap();
    assert!(tap.seen().up.iter().all(|packet| packet.from == client.local_addr()));
    assert_eq!(client.paths(tap.addr()).len(), 1);
}

#[test]
fn every_flow_label_is_used_from_one_port_and_leaves_the_dscp_alone() {
    let seen = through_tap("::1", |builder| builder.paths(PathMap::flow_labels(8))).seen();
    let ports: BTreeSet<u16> = seen.up.iter().map(|packet| packet.from.port()).collect();
    assert_eq!(ports.len(), 1);
    let mut counts = BTreeMap::new();
    for packet in &seen.up {
        assert_eq!(packet.tos, Some(43 << 2), "{packet:?}");
        *counts.entry(packet.flow_label).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 8, "{counts:?}");
    let even = seen.up.len() / 8;
    assert!(counts.values().all(|&count| count > even / 2), "{counts:?}");
    assert!(!counts.contains_key(&Some(0)) && !counts.contains_key(&None), "{counts:?}");
}
