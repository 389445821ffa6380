//! Sockets without an address of their own answer from the address that the packet was sent to.

use crate::common::TIMEOUT;
use cloudburst_core::burst::PacketIo;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Class, Contents, Ecn, Marking, Transmit};
use cloudburst_net::io::{UdpConfig, UdpIo};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

fn open(ip: &str) -> UdpIo {
    let config = UdpConfig {
        bind: SocketAddr::new(ip.parse().unwrap(), 0),
        reuse_port: false,
        sockets: 2,
        ports: 1,
        flow_labels: 0,
        encapsulates: false,
        dscps: vec![43],
        trim_dscp: None,
        socket_buffers: 1 << 20,
    };
    UdpIo::open(&config, Vec::new()).unwrap()
}

fn peer(ip: &str) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

/// Where the next packet comes from, and the local address that it arrives at.
fn arrival(io: &UdpIo) -> Via {
    let start = Instant::now();
    let mut came = None;
    while came.is_none() {
        assert!(start.elapsed() < TIMEOUT);
        io.take(io.wait(Duration::from_secs(1)), true, &mut |datagrams| came = Some(datagrams.via));
    }
    came.unwrap()
}

/// Has `io` send four datagrams as one batch, and then one. Returns the addresses that they come from.
fn sources(io: &UdpIo, via: Via, peer: &UdpSocket, ecn: Ecn) -> Vec<SocketAddr> {
    for len in [100, 20] {
        let transmit = Transmit {
            contents: Contents::Answers,
            via,
            segment_size: 30,
            len,
            marking: Marking { class: Class::DATA, ecn },
        };
        io.transmit(&transmit, &[7; 100]).unwrap();
    }
    let mut sources: Vec<_> = (0..5).map(|_| peer.recv_from(&mut [0; 100]).unwrap().1).collect();
    sources.dedup();
    sources
}

#[test]
fn answers_leave_from_the_address_that_the_peer_sent_to() {
    for (bind, host, ip) in [
        ("0.0.0.0", "127.0.0.1", "127.0.0.2"),
        ("0.0.0.0", "127.0.0.1", "127.0.0.1"),
        ("::", "127.0.0.1", "127.0.0.2"),
        ("::", "::1", "::1"),
    ] {
        let io = open(bind);
        let peer = peer(host);
        for egress in [0, 1] {
            let local: IpAddr = ip.parse().unwrap();
            let port = io.local_addrs()[usize::from(egress)].port();
            peer.send_to(b"hello", (local, port)).unwrap();
            let via = arrival(&io);
            let expected = Via { egress, local: Some(local), remote: peer.local_addr().unwrap() };
            assert_eq!(via, expected);
            for ecn in [Ecn::NotEct, Ecn::Ect0] {
                assert_eq!(sources(&io, via, &peer, ecn), [(local, port).into()], "{bind} {ip}");
            }
        }
        let counters = io.counters();
        assert_eq!((counters.send_errors.total(), counters.truncated), (0, 0));
        assert_eq!(counters.batches_sent, 8, "a batch is one call");
    }
}

#[test]
fn sockets_bound_to_one_address_do_not_report_destinations() {
    for ip in ["127.0.0.2", "::1"] {
        let io = open(ip);
        let peer = peer(if ip == "::1" { ip } else { "127.0.0.1" });
        peer.send_to(b"hello", io.local_addr()).unwrap();
        let via = arrival(&io);
        assert_eq!(via.local, None);
        assert_eq!(sources(&io, via, &peer, Ecn::NotEct), [io.local_addr()]);
    }
}

#[test]
fn an_address_that_the_host_has_lost_does_not_stop_packets() {
    // TEST-NET-3 and a documentation prefix: no host has them. The last are of another family.
    for (bind, host, gone) in [
        ("0.0.0.0", "127.0.0.1", "203.0.113.7"),
        ("::", "127.0.0.1", "203.0.113.7"),
        ("::", "::1", "2001:db8::7"),
        ("::", "::1", "127.0.0.1"),
        ("::", "127.0.0.1", "::1"),
    ] {
        let io = open(bind);
        let peer = peer(host);
        let remote = peer.local_addr().unwrap();
        let via = Via { egress: 0, local: gone.parse().ok(), remote };
        let expected = SocketAddr::new(remote.ip(), io.local_addr().port());
        assert_eq!(sources(&io, via, &peer, Ecn::NotEct), [expected], "{bind} {gone}");
        assert_eq!(io.counters().send_errors.total(), 0);
    }
}

#[test]
fn answers_do_not_leave_from_multicast_or_broadcast_addresses() {
    let loopback = [127, 0, 0, 1].into();
    let group = [239, 1, 2, 3].into();
    let broadcast = [127, 255, 255, 255].into();
    // Linux delivers packets to a group that any socket has joined to all IPv4 sockets that are bound to
    // their port.
    let joined = UdpSocket::bind("0.0.0.0:0").unwrap();
    joined.join_multicast_v4(&group, &loopback).unwrap();
    for (bind, to) in [("0.0.0.0", group), ("0.0.0.0", broadcast), ("::", broadcast)] {
        let io = open(bind);
        let peer = peer("127.0.0.1");
        socket2::SockRef::from(&peer).set_multicast_if_v4(&loopback).unwrap();
        peer.set_broadcast(true).unwrap();
        let port = io.local_addr().port();
        peer.send_to(b"hello", (to, port)).unwrap();
        let via = arrival(&io);
        assert!(via.local.is_none_or(|ip| !ip.is_multicast()), "{via:?}");
        let from = SocketAddr::from((loopback, port));
        assert_eq!(sources(&io, via, &peer, Ecn::NotEct), [from], "{bind} {to}");
        assert_eq!(io.counters().send_errors.total(), 0);
    }
}

#[test]
fn packets_that_answer_nothing_leave_from_the_address_that_the_system_picks() {
    for (bind, host, picked) in [
        ("0.0.0.0", "127.0.0.2", "127.0.0.1"),
        ("::", "127.0.0.2", "127.0.0.1"),
        ("::", "::1", "::1"),
    ] {
        let io = open(bind);
        let peer = peer(host);
        let via = Via { egress: 0, local: None, remote: peer.local_addr().unwrap() };
        let from = SocketAddr::new(picked.parse().unwrap(), io.local_addr().port());
        assert_eq!(sources(&io, via, &peer, Ecn::NotEct), [from], "{bind} {host}");
    }
}
