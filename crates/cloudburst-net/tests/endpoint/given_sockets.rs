//! Sockets that were bound before the endpoint was built.

use crate::common::{TIMEOUT, builder, endpoint, with_dscps};
use cloudburst_net::{Builder, Endpoint, PathMap};
use socket2::{Domain, SockRef, Socket, Type};
use std::net::{SocketAddr, UdpSocket};
use std::thread;

/// A bound socket, and its address.
fn bound() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let addr = socket.local_addr().expect("it is bound");
    (socket, addr)
}

#[test]
fn packets_queued_in_a_given_socket_are_received() {
    let (socket, addr) = bound();
    let build = || builder().bind(addr).build_on(vec![socket.try_clone().unwrap()]).unwrap();
    let first = build().clone();
    endpoint().send(addr, "to the first").wait().unwrap();
    let received = |endpoint: &Endpoint| endpoint.recv().wait_for(TIMEOUT).unwrap().unwrap();
    assert_eq!(received(&first).bytes, "to the first");
    drop(first);

    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(b"no packet of Cloudburst", addr).unwrap();
    let sending = thread::spawn(move || endpoint().send(addr, "to the second").wait());
    let second = build().clone();
    assert_eq!(second.local_addr(), addr);
    assert_eq!(received(&second).bytes, "to the second");
    sending.join().unwrap().unwrap();
    assert_eq!(second.counters().receiver.malformed, 1, "the stranger's");
}

#[test]
fn a_given_socket_gets_the_options_of_the_endpoint_and_keeps_larger_buffers() {
    let (socket, addr) = bound();
    let options = SockRef::from(&socket);
    for wanted in [50_000, 100_000] {
        let build = builder().bind(addr).config(with_dscps([10])).socket_buffers(wanted);
        options.set_recv_buffer_size(70_000).unwrap();
        let before = options.recv_buffer_size().unwrap();
        drop(build.build_on(vec![socket.try_clone().unwrap()]).unwrap());
        let granted = options.recv_buffer_size().unwrap();
        assert_eq!(granted, before.max(2 * wanted));
        assert_eq!(options.tos_v4().unwrap(), 10 << 2);
        assert!(options.nonblocking().unwrap());
    }
}

#[test]
fn superfluous_and_missing_sockets_are_named() {
    let refusal = |builder: Builder, sockets| builder.build_on(sockets).unwrap_err().to_string();
    let (one, here) = bound();
    let (two, there) = bound();
    let clone = |socket: &UdpSocket| socket.try_clone().unwrap();
    assert_eq!(
        refusal(builder().bind(here), vec![clone(&two)]),
        format!(
            "this endpoint takes messages at {here}, and the sockets that it was given are bound to \
             {there}: give it exactly one socket for each of its addresses"
        )
    );
    let line = refusal(builder().bind(here), vec![clone(&one), clone(&two)]);
    assert!(line.contains(&format!("takes messages at {here}, and")), "{line}");
    let pairs = builder().bind(here).paths(PathMap::ecmp_pairs(1, 2));
    let mut next = here;
    next.set_port(here.port() + 1);
    let line = refusal(pairs, vec![clone(&one)]);
    assert!(line.contains(&format!("at {here}, {next}, and")), "{line}");
    let shared = refusal(builder().bind(here).reuse_port(true), vec![clone(&one)]);
    assert!(shared.contains("`reuse_port` is true"), "{shared}");
    one.connect(there).unwrap();
    let line = refusal(builder().bind(here), vec![one]);
    assert!(line.contains(&format!("bound to {here} cannot be used: it is connected")), "{line}");

    let only_v6 = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
    only_v6.set_only_v6(true).unwrap();
    only_v6.bind(&"[::]:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    let only_v6 = UdpSocket::from(only_v6);
    let line = refusal(builder().bind(only_v6.local_addr().unwrap()), vec![only_v6]);
    assert!(line.contains("only IPv6"), "{line}");
}

#[test]
fn a_socket_can_be_given_for_each_port_that_takes_messages() {
    // The system picks only single ports: try until the next port is free, too.
    let sockets = (0..64).find_map(|_| {
        let (first, mut addr) = bound();
        addr.set_port(addr.port().checked_add(1)?);
        Some((UdpSocket::bind(addr).ok()?, first))
    });
    let (second, first) = sockets.expect("two free ports in a row");
    let addr = first.local_addr().unwrap();
    let paths = PathMap::ecmp_pairs(1, 2);
    let server = builder().bind(addr).paths(paths.clone());
    let server = server.build_on(vec![second, first]).unwrap().clone();
    assert_eq!(server.local_addrs()[1].port(), addr.port() + 1);
    let client = builder().paths(paths).build().unwrap();
    client.send(addr, vec![7; 100_000]).wait().unwrap();
    let message = server.recv().wait_for(TIMEOUT).unwrap().unwrap();
    assert_eq!(message.bytes.len(), 100_000);
    let received = client.paths(addr).iter().filter(|path| path.arrived > 0).count();
    assert_eq!(received, 2);
}
