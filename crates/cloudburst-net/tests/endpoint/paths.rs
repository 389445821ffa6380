//! Each path map puts packets onto the paths that it names.

use crate::common::{builder, builder_on, bytes, eventually};
use cloudburst_net::{Config, Endpoint, Order, PathMap, SendError};
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// Addresses of this host that need no set-up, like all of 127.0.0.0/8.
fn aliases() -> [IpAddr; 4] {
    [1, 2, 3, 4].map(|last| [127, 0, 0, last].into())
}

#[test]
fn packets_visit_every_address_of_an_xpath_map() {
    let server = builder_on("0.0.0.0").build().unwrap();
    for order in ["rrb", "drb:2x2"] {
        let order: Order = order.parse().unwrap();
        let paths = PathMap::xpath(aliases());
        let client =
            builder().paths(paths).config(Config { order, ..Config::default() }).build().unwrap();
        let peer = SocketAddr::new(aliases()[2], server.local_addr().port());
        let message = bytes(93_000, 1);
        let receipt = client.send(peer, message.clone()).wait().unwrap();
        assert_eq!(server.recv().wait().unwrap().bytes, message);
        for path in client.paths(peer) {
            assert!(aliases().contains(&path.via.remote.ip()));
            // Half of an equal share. A busy host was seen to send 15 of 70 packets by one path.
            let sent = path.sent as usize;
            assert!(8 * sent >= receipt.packets, "{order}: {sent} of {}", receipt.packets);
        }
    }
}

#[test]
fn each_port_of_the_pool_is_paired_with_each_port_of_the_peer() {
    let server = builder().paths(PathMap::ecmp_pairs(1, 4)).build().unwrap();
    let first = server.local_addr().port();
    let ports: Vec<u16> = server.local_addrs().iter().map(|addr| addr.port()).collect();
    assert_eq!(ports[..4], [first, first + 1, first + 2, first + 3]);
    let server = server.clone();
    let client = builder().paths(PathMap::ecmp_pairs(2, 8)).build().unwrap();
    let peer = server.local_addr();
    let message = bytes(93_000, 1);
    client.send(peer, message.clone()).wait().unwrap();
    assert_eq!(server.recv().wait().unwrap().bytes, message);
    let paths = client.paths(peer);
    assert_eq!(paths.len(), 8, "two ports here, and the four there");
    assert!(paths.iter().all(|path| path.sent > 0), "{paths:?}");
}

/// The addresses that packets to `peer` may go to.
fn in_use(client: &Endpoint, peer: SocketAddr) -> Vec<IpAddr> {
    let paths = client.paths(peer).into_iter().filter(|path| !path.removed);
    paths.map(|path| path.via.remote.ip()).collect()
}

#[test]
fn paths_can_be_replaced_while_the_endpoint_runs() {
    let server = builder_on("0.0.0.0").build().unwrap();
    let client = builder().paths(PathMap::xpath(aliases())).build().unwrap();
    let peer = SocketAddr::new(aliases()[0], server.local_addr().port());
    let send = |seed| {
        let message = bytes(50_000, seed);
        client.send(peer, message.clone()).wait().unwrap();
        assert_eq!(server.recv().wait().unwrap().bytes, message);
    };
    send(1);
    client.set_paths(PathMap::xpath(aliases()[..2].iter().copied())).unwrap();
    assert_eq!(in_use(&client, peer), aliases()[..2]);
    let before = client.paths(peer);
    send(2);
    let after = client.paths(peer);
    assert!((0..4).all(|path| (after[path].sent > before[path].sent) == (path < 2)), "{after:?}");
    let another = IpAddr::from([127, 0, 0, 5]);
    client.set_paths(PathMap::xpath(aliases().into_iter().chain([another]))).unwrap();
    send(3);
    assert_eq!(in_use(&client, peer), [&aliases()[..], &[another]].concat());
    assert!(client.paths(peer).iter().all(|path| path.sent > 0));
    let error = client.set_paths(PathMap::ecmp(16)).unwrap_err().to_string();
    assert!(error.contains("needs 16 sockets, and this endpoint was built with 1"), "{error}");
    assert_eq!(in_use(&client, peer).len(), 5, "nothing has changed");
}

#[test]
fn a_path_that_fails_leaves_a_gap_in_a_digit_reversal_for_new_peers_too() {
    let servers = [0, 1].map(|_| builder_on("0.0.0.0").build().unwrap());
    let order: Order = "drb:2x2".parse().unwrap();
    let map = PathMap::xpath(aliases());
    let client =
        builder().paths(map.clone()).config(Config { order, ..Config::default() }).build().unwrap();
    let peers = [0, 1].map(|n| SocketAddr::new(aliases()[0], servers[n].local_addr().port()));
    client.send(peers[0], bytes(50_000, 1)).wait().unwrap();
    client.set_paths(PathMap::xpath(aliases()[..3].iter().copied())).unwrap();
    for peer in peers {
        client.send(peer, bytes(50_000, 2)).wait().unwrap();
        assert_eq!(in_use(&client, peer), aliases()[..3]);
    }
    let five = aliases().into_iter().chain([[127, 0, 0, 5].into()]);
    let error = client.set_paths(PathMap::xpath(five)).unwrap_err().to_string();
    assert!(error.contains("of 4 paths"), "{error}");
    client.set_paths(map).unwrap();
    assert_eq!(in_use(&client, peers[1]), aliases());
}

#[test]
fn a_path_file_is_used_and_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fabric.toml");
    let write = |paths: &str| {
        let draft = dir.path().join("draft");
        let row = |prefix: &str, paths: &str| {
            format!("[[to]]\nprefix = \"{prefix}\"\npaths = \"{paths}\"\n")
        };
        let rows = row("127.0.1.0/24", paths) + &row("127.0.2.0/24", "ecmp:4");
        fs::write(&draft, rows).unwrap();
        fs::rename(draft, &file).unwrap();
    };
    write("xpath:127.0.3.0/24,127.0.4.0/24");
    let server = builder_on("0.0.0.0").build().unwrap();
    let client = builder().paths(PathMap::file(&file).unwrap()).build().unwrap();
    let port = server.local_addr().port();
    let peer = SocketAddr::from(([127, 0, 1, 7], port));
    let ips = |thirds: &[u8]| -> Vec<IpAddr> {
        thirds.iter().map(|&third| [127, 0, third, 7].into()).collect()
    };
    client.send(peer, "by prefix").wait().unwrap();
    assert_eq!(in_use(&client, peer), ips(&[3, 4]));
    client.send(SocketAddr::from(([127, 0, 2, 7], port)), "by another").wait().unwrap();
    assert_eq!(in_use(&client, ([127, 0, 2, 7], port).into()).len(), 4);
    assert!(
        client.send(SocketAddr::from(([127, 0, 9, 7], port)), "to nobody's prefix").wait().is_err()
    );

    write("xpath:127.0.4.0/24,127.0.5.0/24");
    eventually("the new file is used", || in_use(&client, peer) == ips(&[4, 5]));
    client.send(peer, "by new paths").wait().unwrap();
    client.set_paths(PathMap::xpath(ips(&[1, 8]))).unwrap();
    assert_eq!(in_use(&client, peer), ips(&[1, 8]), "the caller has the last word");
}

#[test]
fn a_peer_at_none_of_the_addresses_of_an_xpath_map_is_refused() {
    let client = builder().paths(PathMap::xpath(aliases())).build().unwrap();
    let error = client.send("127.0.0.9:7", "question").wait().unwrap_err();
    assert!(matches!(error, SendError::NoPath { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.9"), "{error}");
}
