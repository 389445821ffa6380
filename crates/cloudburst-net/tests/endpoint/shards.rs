//! Several endpoints on one port: each peer reaches one of them, which gets everything that the
//! peer sends.

use crate::common::{KEY, builder, builder_on, bytes};
use cloudburst_net::{BuildError, Endpoint, PathMap, Security};
use socket2::{Domain, Socket, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

const SHARDS: usize = 4;

/// A free port, until this is dropped, for sockets that share it.
fn hold(ip: &str) -> (Socket, SocketAddr) {
    let addr = SocketAddr::new(ip.parse().expect("an IP address"), 0);
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, None).expect("a socket");
    socket.set_reuse_port(true).expect("Linux has it");
    socket.bind(&addr.into()).expect("a free port");
    let addr = socket.local_addr().expect("it is bound").as_socket().expect("an IP address");
    (socket, addr)
}

/// Endpoints that share a port of `ip`, and its address.
fn shards(ip: &str, paths: &PathMap) -> (Vec<Endpoint>, SocketAddr) {
    let (_holder, addr) = hold(ip);
    let builder = builder().bind(addr).reuse_port(true).paths(paths.clone());
    let shard = |_| builder.clone().build().expect("the port is shared");
    ((0..SHARDS).map(shard).collect(), addr)
}

/// The messages that arrived at each shard, by the number that they begin with.
fn taken(shards: &[Endpoint]) -> Vec<Vec<Vec<u8>>> {
    let take = |shard: &Endpoint| {
        std::iter::from_fn(|| shard.try_recv().expect("it is open"))
            .map(|message| message.bytes.to_vec())
            .collect()
    };
    shards.iter().map(take).collect()
}

/// Has 32 clients send small and large messages, each of which must arrive once, and all of a
/// client at one shard.
fn spread(ip: &str) {
    let (shards, addr) = shards(ip, &PathMap::default());
    assert!(shards.iter().all(|shard| shard.local_addr() == addr));
    let message = |client: u8, number: u8| {
        let mut bytes = bytes([1_500, 93_000][usize::from(number % 2)], u64::from(number));
        bytes[..2].copy_from_slice(&[client, number]);
        bytes
    };
    thread::scope(|scope| {
        for clients in (0..32).collect::<Vec<u8>>().chunks(8) {
            let clients = clients.to_vec();
            scope.spawn(move || {
                for number in clients {
                    let client = builder_on(ip).paths(PathMap::default()).build().unwrap();
                    for message in (0..6).map(|n| message(number, n)) {
                        client.send(addr, message).wait().unwrap();
                    }
                    let peers: Vec<SocketAddr> = client.peers().iter().map(|p| p.peer).collect();
                    assert_eq!(peers, [addr]);
                }
            });
        }
    });
    let unknown = shards.iter().map(|shard| shard.counters().receiver.unknown_session);
    assert_eq!(unknown.sum::<u64>(), 0, "nobody gets symbols that are for another");
    let mut homes = BTreeMap::new();
    let mut came = BTreeSet::new();
    for (shard, messages) in taken(&shards).into_iter().enumerate() {
        for bytes in messages {
            let client = bytes[0];
            let number = bytes[1];
            assert_eq!(bytes, message(client, number));
            assert!(came.insert((client, number)), "once");
            assert_eq!(*homes.entry(client).or_insert(shard), shard, "all to one");
        }
    }
    assert_eq!(came.len(), 32 * 6);
    let homes: Vec<usize> = homes.into_values().collect();
    let clients_of = |shard| homes.iter().filter(|&&home| home == shard).count();
    let mut clients: Vec<usize> = (0..SHARDS).map(clients_of).collect();
    clients.sort_unstable();
    println!("{ip}: clients of each shard: {clients:?}");
    assert!(clients[SHARDS - 1] < 32, "more than one shard is used");
}

#[test]
fn each_message_arrives_once_and_those_of_a_client_at_one_shard() {
    spread("127.0.0.1");
}

#[test]
fn each_message_over_ipv6_arrives_once_and_those_of_a_client_at_one_shard() {
    spread("::1");
}

#[test]
fn a_shard_is_called_and_calls_back() {
    let (shards, addr) = shards("127.0.0.1", &PathMap::default());
    let answering = shards.iter().enumerate().map(|(name, shard)| {
        let shard = shard.clone();
        thread::spawn(move || {
            while let Ok(request) = shard.recv_request().wait() {
                // The caller is asked in turn, and its answer is the response.
                let answer = shard.call(request.peer(), format!("I am {name}")).wait().unwrap();
                request.reply(answer).wait().unwrap();
            }
        })
    });
    let answering: Vec<_> = answering.collect();
    let mut met = BTreeSet::new();
    let mut clients = Vec::new();
    for _ in 0..16 {
        let client = builder().build().unwrap();
        let service = client.clone();
        let serving = thread::spawn(move || {
            service.blocking_serve(1, |request| {
                [request.bytes, request.peer.to_string().into()].concat()
            });
        });
        let names: BTreeSet<_> =
            (0..4).map(|_| client.call(addr, "who are you?").wait().unwrap()).collect();
        assert_eq!(names.len(), 1, "always the same one: {names:?}");
        let name = String::from_utf8(names.first().unwrap().to_vec()).unwrap();
        assert!(name.ends_with(&addr.to_string()), "it is known by its address: {name}");
        met.insert(name);
        clients.push((client, serving));
    }
    assert!(met.len() > 1, "{met:?}");
    for (endpoint, thread) in shards.iter().cloned().zip(answering).chain(clients) {
        endpoint.blocking_shutdown(crate::common::TIMEOUT);
        thread.join().unwrap();
    }
}

#[test]
fn the_clients_of_a_closed_shard_move_to_others() {
    let (mut shards, addr) = shards("127.0.0.1", &PathMap::default());
    let clients: Vec<_> = (0..16).map(|_| builder().build().unwrap()).collect();
    for (number, client) in (0..).zip(&clients) {
        client.send(addr, vec![number]).wait().unwrap();
    }
    let homes = taken(&shards);
    let closed = (0..SHARDS).max_by_key(|&shard| homes[shard].len()).unwrap();
    shards.remove(closed).blocking_shutdown(Duration::ZERO);
    for (number, client) in (0..).zip(&clients) {
        // The shard that closed has ended its sessions, so its clients meet another. What a client
        // sent before it has read ENDED was certainly not delivered, and goes there, too.
        client.send(addr, vec![number]).wait().unwrap();
    }
    let mut came: Vec<Vec<u8>> = taken(&shards).concat();
    came.sort();
    assert_eq!(came, (0..16).map(|number| vec![number]).collect::<Vec<_>>());
}

/// Sends over `paths` to shards on `ip`, known as `to`, and returns where symbols go.
fn symbols_go(ip: &str, to: &str, ours: PathMap, theirs: &PathMap) -> Vec<SocketAddr> {
    let (shards, addr) = shards(ip, theirs);
    let from = if ip.contains(':') { "::" } else { "0.0.0.0" };
    let client = builder_on(from).paths(ours).build().unwrap();
    let to = SocketAddr::new(to.parse().unwrap(), addr.port());
    for seed in 0..3 {
        client.send(to, bytes(93_000, seed)).wait().unwrap();
    }
    let taken = taken(&shards);
    let taker = (0..SHARDS).find(|&shard| taken[shard].len() == 3).expect("one has all");
    let own = shards[taker].local_addrs();
    let paths = client.paths(to).into_iter().filter(|path| !path.removed);
    let used: Vec<SocketAddr> = paths.filter(|path| path.sent > 0).map(|p| p.via.remote).collect();
    let is_own = |used: &SocketAddr| own.iter().any(|own| own.port() == used.port());
    assert!(used.iter().all(is_own), "{used:?} {own:?}");
    assert!(own.iter().all(|own| own.port() != addr.port()), "{own:?}");
    used
}

#[test]
fn paths_to_a_shard_keep_their_addresses_and_use_its_ports() {
    let aliases = [1, 2, 3].map(|last| IpAddr::from([127, 0, 0, last]));
    let used = symbols_go("0.0.0.0", "127.0.0.2", PathMap::xpath(aliases), &PathMap::ecmp(2));
    assert_eq!(used.iter().map(SocketAddr::ip).collect::<Vec<_>>(), aliases);

    let pairs = PathMap::ecmp_pairs(2, 3);
    let used = symbols_go("127.0.0.1", "127.0.0.1", pairs.clone(), &pairs);
    let ports: BTreeSet<u16> = used.iter().map(SocketAddr::port).collect();
    assert_eq!((used.len(), ports.len()), (6, 3));
    assert_eq!(ports.last().unwrap() - ports.first().unwrap(), 2, "in a row");

    let labels = PathMap::flow_labels(4);
    assert_eq!(symbols_go("::1", "::1", labels.clone(), &labels).len(), 4);
    // Over IPv4, from sockets for both.
    assert_eq!(symbols_go("::", "127.0.0.1", PathMap::ecmp(2), &PathMap::ecmp(2)).len(), 2);
}

#[test]
fn a_port_is_shared_only_with_reuse_port() {
    let (shards, addr) = shards("127.0.0.1", &PathMap::ecmp(1));
    let error = builder().bind(addr).build().unwrap_err();
    assert!(matches!(error, BuildError::Bind { addr: refused, .. } if refused == addr), "{error}");
    drop(shards);
    let holder = builder().build().unwrap();
    let taken = holder.local_addr();
    let error = builder().bind(taken).reuse_port(true).build().unwrap_err();
    assert!(matches!(error, BuildError::Bind { addr, .. } if addr == taken), "{error}");
}

#[test]
fn a_port_that_the_system_picks_cannot_be_shared() {
    for ip in ["127.0.0.1", "::1"] {
        let error = builder_on(ip).reuse_port(true).build().unwrap_err();
        assert!(matches!(&error, BuildError::Config(config) if config.field == "bind"), "{error}");
        let zero = SocketAddr::new(ip.parse().unwrap(), 0);
        assert!(error.to_string().starts_with(&format!("setting `bind` is {zero}: ")), "{error}");
    }
}

#[test]
fn a_handshake_under_the_key_of_another_shard_is_answered_there() {
    let (_holder, addr) = hold("127.0.0.1");
    let shard = |key| builder().bind(addr).reuse_port(true).security(Security::pre_shared(key));
    let other = shard([8; 32]).build().unwrap();
    let ours = shard(KEY).build().unwrap();
    let client = builder().paths(PathMap::ecmp(32)).build().unwrap();
    client.send(addr, "hello").wait().unwrap();
    assert_eq!(ours.recv().wait().unwrap().bytes, "hello");
    assert_eq!(other.counters().receiver.sessions_confirmed, 0);
}

#[test]
fn a_successor_serves_at_once_and_callers_get_the_answers_of_the_endpoint_that_closes() {
    let (holder, addr) = hold("127.0.0.1");
    let start = || builder().bind(addr).reuse_port(true).build().unwrap();
    let old = start();
    drop(holder);
    let clients: Vec<_> = (0..20).map(|_| builder().build().unwrap()).collect();
    let call = |client: &Endpoint, what: &'static str| {
        let client = client.clone();
        thread::spawn(move || client.call(addr, what).wait())
    };
    let slow: Vec<_> = clients.iter().map(|client| call(client, "slow")).collect();
    let taken: Vec<_> = clients.iter().map(|_| old.recv_request().wait().unwrap()).collect();
    // The new process is bound first.
    let new = start();
    let serving = new.clone();
    let server = thread::spawn(move || serving.blocking_serve(4, |_| "new"));
    let closing = old.clone();
    let shutdown = thread::spawn(move || closing.blocking_shutdown(crate::common::TIMEOUT));
    crate::common::eventually("it is closing", || old.try_recv_request().is_err());
    for _ in 0..3 {
        let start = std::time::Instant::now();
        for client in &clients {
            assert_eq!(client.call(addr, "quick").wait().unwrap(), "new");
        }
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
    assert!(!shutdown.is_finished(), "its application has not replied");
    for request in taken {
        request.reply("old").wait().unwrap();
    }
    for call in slow {
        assert_eq!(call.join().unwrap().unwrap(), "old");
    }
    assert!(shutdown.join().unwrap());
    new.blocking_shutdown(crate::common::TIMEOUT);
    server.join().unwrap();
}
