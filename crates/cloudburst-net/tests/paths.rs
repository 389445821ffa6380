//! Each path map puts packets onto the paths that it names.

mod common;

use cloudburst_net::{Order, PathMap, SendError};
use common::{builder, builder_on, bytes};
use std::net::{IpAddr, SocketAddr};

/// Addresses of this host without any set-up: all of 127.0.0.0/8 are.
fn aliases() -> [IpAddr; 4] {
    [1, 2, 3, 4].map(|last| [127, 0, 0, last].into())
}

#[test]
fn packets_visit_every_address_of_an_xpath_map() {
    let server = builder_on("0.0.0.0").build().unwrap().blocking();
    for order in ["rrb", "drb:2x2"] {
        let order: Order = order.parse().unwrap();
        let paths = PathMap::xpath(aliases());
        let client = builder().paths(paths).order(order).build().unwrap().blocking();
        let peer = SocketAddr::new(aliases()[2], server.local_addr().port());
        let message = bytes(93_000, 1);
        let receipt = client.send(peer, message.clone()).unwrap();
        assert_eq!(server.recv().unwrap().bytes, message);
        for path in client.paths(peer) {
            assert!(aliases().contains(&path.via.remote.ip()));
            assert!(path.sent >= 16, "{order}: {} of {} packets", path.sent, receipt.packets);
        }
    }
}

#[test]
fn a_peer_at_none_of_the_addresses_is_refused() {
    let client = builder().paths(PathMap::xpath(aliases())).build().unwrap().blocking();
    let error = client.send("127.0.0.9:7".parse().unwrap(), "question").unwrap_err();
    assert!(matches!(error, SendError::Refused(_)), "{error}");
    assert!(error.to_string().contains("127.0.0.9"), "{error}");
}
