//! Hosts on loopback, and peers that misbehave.

use super::*;
use crate::transport::testing::{
    PATIENCE, call_from_many, call_to, expect_responses, failure, lies, peers, wait_until,
};
use core::time::Duration;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

fn settings(me: u16) -> TcpSettings {
    TcpSettings { me, congestion: "cubic".into(), copies: 1, dscp: 10, multipath: false }
}

fn open(settings: TcpSettings) -> Tcp {
    Tcp::open(settings).unwrap()
}

/// Host 1, where host 2 is these listeners.
fn before(settings: TcpSettings, listeners: &[&TcpListener]) -> Tcp {
    let host = open(settings);
    let addresses: Vec<_> = listeners.iter().map(|at| at.local_addr().unwrap()).collect();
    let paths: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
    let mut peers = peers(&[&host, &host]);
    peers[1].address = paths[0];
    peers[1].listening.ports = vec![addresses[0].port()];
    if paths.len() > 1 {
        peers.iter_mut().for_each(|peer| peer.path_addresses.clone_from(&paths));
    }
    host.connect(&peers).unwrap();
    host
}

fn route(host: &Tcp, path: usize) -> &Route {
    &host.routes.get().unwrap()[1][path]
}

/// Two listeners on one port.
fn listen_twice() -> [TcpListener; 2] {
    loop {
        let first = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        if let Ok(second) = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 3), port)) {
            return [first, second];
        }
    }
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = vec![0; call_to(2, 0).request];
    stream.read_exact(&mut request).unwrap();
    request
}

fn respond(stream: &mut TcpStream) {
    stream.write_all(&vec![0; call_to(2, 0).response]).unwrap();
}

#[test]
fn a_call_gets_its_response() {
    expect_responses(&open(settings(1)), &open(settings(2)));
}

#[test]
fn a_call_gets_its_response_by_mptcp() {
    let multipath = |me| TcpSettings { multipath: true, ..settings(me) };
    match multipath(1).socket() {
        Ok(_) => expect_responses(&open(multipath(1)), &open(multipath(2))),
        Err(reason) => println!("skipped: {reason}"),
    }
}

#[test]
fn copies_that_share_a_path_use_separate_connections() {
    let copied = |me| TcpSettings { copies: 4, ..settings(me) };
    let one = open(copied(1));
    let two = open(copied(2));
    expect_responses(&one, &two);
    // The call reads at most one of the copies. The others are read later.
    wait_until("the end of all copies", || route(&one, 0).idle() >= 4);
}

#[test]
fn sockets_have_the_congestion_control_and_the_dscp_of_the_settings() {
    let socket = settings(1).socket().unwrap();
    assert_eq!(socket.tos_v4().unwrap(), 10 << 2);
    assert!(socket.tcp_congestion().unwrap().starts_with(b"cubic"));
}

#[test]
fn concurrent_calls_open_connections_that_later_calls_reuse() {
    const CALLS: u32 = 5;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let host = before(settings(1), &[&listener]);
    let server = thread::spawn(move || {
        let mut streams: Vec<_> = (0..CALLS).map(|_| accept(&listener)).collect();
        for _ in 0..2 {
            // It responds only after all requests, so each needs a connection of its own.
            streams.iter_mut().for_each(|stream| drop(read_request(stream)));
            streams.iter_mut().for_each(respond);
        }
    });
    call_from_many(&host, CALLS, 1);
    assert_eq!(route(&host, 0).idle(), CALLS as usize);
    call_from_many(&host, CALLS, 1);
    assert_eq!(route(&host, 0).idle(), CALLS as usize);
    server.join().unwrap();
}

#[test]
fn many_threads_call_at_once() {
    let one = open(settings(1));
    let two = open(settings(2));
    one.connect(&peers(&[&one, &two])).unwrap();
    call_from_many(&one, 8, 25);
    assert!((1..=8).contains(&route(&one, 0).idle()));
}

#[test]
fn a_call_to_a_dead_peer_fails_with_its_reason() {
    let one = open(settings(1));
    let two = open(settings(2));
    one.connect(&peers(&[&one, &two])).unwrap();
    one.call(call_to(2, 1)).unwrap();
    let at = format!("host 2 at 127.0.0.1:{}", two.server.port());
    drop(two);

    let kept = failure(&one, call_to(2, 2));
    assert!(kept.starts_with(&at) && !kept.contains("refused"), "{kept}");
    let new = failure(&one, call_to(2, 3));
    assert_eq!(new, format!("{at}: not connected: Connection refused (os error 111)"));
}

#[test]
fn a_call_that_gets_no_response_ends_and_closes_its_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let host = before(settings(1), &[&listener]);
    let late = host.call(Call { within: Duration::from_millis(200), ..call_to(2, 1) }).unwrap_err();
    let expected = ": 0 of 20000 bytes of the response received: timed out after 200ms";
    assert!(late.ends_with(expected), "{late}");

    let mut stream = accept(&listener);
    read_request(&mut stream);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_call_with_too_long_a_response_fails() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let host = before(settings(1), &[&listener]);
    let server = thread::spawn(move || {
        let mut stream = accept(&listener);
        read_request(&mut stream);
        stream.write_all(&[0; 2]).unwrap();
    });
    let reason = failure(&host, Call { response: 1, ..call_to(2, 1) });
    assert!(reason.ends_with("the peer sent more than the response"), "{reason}");
    server.join().unwrap();
}

#[test]
fn an_invalid_request_closes_its_connection() {
    let one = open(settings(1));
    let two = open(settings(2));
    for lie in lies() {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, two.server.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&lie).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "{lie:?}");
    }
    expect_responses(&one, &two);
}

#[test]
fn the_first_complete_response_ends_a_call_and_other_copies_continue() {
    let [silent, lively] = listen_twice();
    let host = before(TcpSettings { copies: 2, ..settings(1) }, &[&silent, &lively]);
    let server = thread::spawn(move || {
        let mut stream = accept(&lively);
        let mut requests = Vec::new();
        for _ in 0..2 {
            requests.push(read_request(&mut stream));
            respond(&mut stream);
        }
        requests
    });
    host.call(call_to(2, 1)).unwrap();

    let mut stream = accept(&silent);
    let first = read_request(&mut stream);
    // The response returns on the path of the request.
    assert_eq!(stream.peer_addr().unwrap().ip(), Ipv4Addr::new(127, 0, 0, 2));
    respond(&mut stream);
    wait_until("the end of the late copy", || route(&host, 0).idle() == 1);

    host.call(call_to(2, 2)).unwrap();
    let second = read_request(&mut stream);
    assert_eq!(server.join().unwrap(), [first, second]);
    // Dropping the host does not wait for the second copy, which never gets a response.
    drop(host);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_failed_copy_does_not_fail_the_call() {
    let [refusing, lively] = listen_twice();
    let host = before(TcpSettings { copies: 2, ..settings(1) }, &[&refusing, &lively]);
    drop(refusing);
    let server = thread::spawn(move || {
        let mut stream = accept(&lively);
        read_request(&mut stream);
        respond(&mut stream);
    });
    host.call(call_to(2, 1)).unwrap();
    server.join().unwrap();
    let both = failure(&host, call_to(2, 2));
    assert!(both.contains("127.0.0.2:") && both.contains("127.0.0.3:"), "{both}");
}

#[test]
fn a_copy_that_connects_late_delays_no_call_and_is_used_afterwards() {
    let [full, lively] = listen_twice();
    // Until this connection is accepted, the kernel drops SYNs, as a dead path does.
    SockRef::from(&full).listen(0).unwrap();
    let _first = TcpStream::connect(full.local_addr().unwrap()).unwrap();
    let host = before(TcpSettings { copies: 2, ..settings(1) }, &[&full, &lively]);
    let server = thread::spawn(move || {
        let mut stream = accept(&lively);
        read_request(&mut stream);
        respond(&mut stream);
    });
    host.call(call_to(2, 1)).unwrap();
    server.join().unwrap();

    drop(accept(&full));
    let mut stream = accept(&full);
    read_request(&mut stream);
    respond(&mut stream);
    wait_until("the end of the late copy", || route(&host, 0).idle() == 1);
}

fn with_paths(host: &Tcp, paths: u8) -> Vec<Peer> {
    let mut peers = peers(&[host, host]);
    let addresses = (1..=paths).map(|path| Ipv4Addr::new(127, 0, 1, path).into());
    let addresses: Vec<IpAddr> = addresses.collect();
    peers.iter_mut().for_each(|peer| peer.path_addresses.clone_from(&addresses));
    peers
}

#[test]
fn copies_take_different_paths_and_each_path_in_turn() {
    let host = open(TcpSettings { copies: 2, ..settings(1) });
    host.connect(&with_paths(&host, 4)).unwrap();
    let mut taken = [0; 4];
    for id in 0..400 {
        let paths: Vec<_> = (host.choose(&call_to(2, id)).unwrap().into_iter())
            .map(|chosen| (0..4).find(|&path| core::ptr::eq(&**chosen, route(&host, path))))
            .map(Option::unwrap)
            .collect();
        assert!(paths.len() == 2 && paths[0] != paths[1], "{paths:?}");
        paths.iter().for_each(|&path| taken[path] += 1);
    }
    assert!(taken.iter().all(|taken| (150..250).contains(taken)), "{taken:?}");
}

#[test]
fn more_copies_than_paths_are_refused() {
    let host = open(TcpSettings { copies: 4, ..settings(1) });
    let reason = host.connect(&with_paths(&host, 3)).unwrap_err().to_string();
    let expected = "4 copies need as many paths, or more, and the same number on both hosts: \
                    host 1 has 3 path addresses, and host 1 has 3";
    assert_eq!(reason, format!("TCP: {expected}"));
}

#[test]
fn invalid_settings_are_refused() {
    let refusal = |settings| Tcp::open(settings).err().unwrap().to_string();
    let unknown = refusal(TcpSettings { congestion: "nonesuch".into(), ..settings(1) });
    assert!(unknown.contains("`nonesuch`") && unknown.contains("cubic"), "{unknown}");
    assert!(refusal(TcpSettings { dscp: 64, ..settings(1) }).contains("DSCP 64"));
    assert!(refusal(TcpSettings { copies: 0, ..settings(1) }).contains("0 copies"));
}

#[test]
fn dropping_the_transport_closes_its_connections_and_its_port() {
    let host = open(settings(1));
    let at = (Ipv4Addr::LOCALHOST, host.server.port());
    let mut idle = TcpStream::connect(at).unwrap();
    let mut midway = TcpStream::connect(at).unwrap();
    midway.write_all(&call_to(1, 1).encode()[..100]).unwrap();
    drop(host);
    assert!(matches!(idle.read(&mut [0]), Ok(0) | Err(_)));
    assert!(matches!(midway.read(&mut [0]), Ok(0) | Err(_)));
    let nobody = TcpStream::connect(at).unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::ConnectionRefused);
}
