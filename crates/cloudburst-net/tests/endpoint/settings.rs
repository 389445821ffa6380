//! Wrong settings of an endpoint are reported when it is built.

use crate::common::{KEY, builder, builder_on, endpoint, log::Log, with_dscps};
use cloudburst_net::{
    BuildError, Builder, Calls, Capacity, Closed, Code, Config, ConfigError, Endpoint, Fabric,
    Incoming, Message, Order, PathMap, PathMapError, PeerSink, PresharedKey, Receipt, Request,
    RequestParts, Security, SendError, Sending, Shape,
};
use std::io;

#[test]
fn security_must_be_chosen_by_name() {
    let error = Endpoint::builder().build().unwrap_err();
    assert!(matches!(error, BuildError::NoSecurity));
    let line = error.to_string();
    assert!(line.contains("pre_shared") && line.contains("trusted_network"), "{line}");
}

#[test]
fn a_setting_out_of_range_is_refused_with_its_value() {
    let refusal = |builder: cloudburst_net::Builder| builder.build().unwrap_err().to_string();
    for wrong in [vec![64], vec![43, 200], vec![], vec![43; 9]] {
        assert_eq!(
            refusal(builder().config(with_dscps(wrong.clone()))),
            format!("setting `fabric.dscps` is {wrong:?}: it must be 1 to 8 values from 0 to 63")
        );
    }
    builder().config(with_dscps([43; 8])).build().unwrap();
    let rate = Config { rate: 1.5.into(), ..Config::default() };
    assert!(refusal(builder().config(rate)).contains("`rate` is 1.5"));
    let capacity = Config { capacity: 7.into(), ..Config::default() };
    assert!(refusal(builder().config(capacity)).contains("`capacity` is 7"));
    assert!(refusal(builder().paths(PathMap::ecmp(65))).contains("`ecmp:65`"));
    let order = |text: &str| Config { order: text.parse().unwrap(), ..Config::default() };
    assert!(
        refusal(builder().config(order("drb:2x3")))
            .contains("of 6 paths: it must fit the path map, which has 4")
    );
    let twice = PathMap::xpath([[127, 0, 0, 1].into(); 2]);
    assert!(refusal(builder().paths(twice)).contains("names 127.0.0.1 twice"));
    let other = PathMap::xpath([std::net::Ipv6Addr::LOCALHOST.into()]);
    assert!(refusal(builder().paths(other)).contains("leads to ::1"));
    let flowlabel = builder().paths(PathMap::flow_labels(4));
    assert!(refusal(flowlabel).contains("`flowlabel:4` needs IPv6"));
    let bounce = PathMap::bounce([[127, 0, 0, 2].into()]);
    let anywhere = builder_on("0.0.0.0").paths(bounce);
    assert!(
        refusal(anywhere).contains("`bounce:127.0.0.2` writes IPv4 headers, which need a source")
    );
    let pairs = builder().paths(PathMap::ecmp_pairs(2, 2)).config(order("drb:2x2"));
    assert!(refusal(pairs).contains("`ecmp:2x2` has a number of paths that depends on the peer"));
    for nobody in ["0.0.0.0:7000", "[ff02::1]:7000", "255.255.255.255:7000", "192.0.2.1:0"] {
        let known_as = ["192.0.2.1:7000", nobody].map(|address| address.parse().unwrap());
        let line = refusal(builder().known_as(known_as));
        assert!(line.contains(&format!("known as {nobody}, because peers cannot")), "{line}");
    }
    let shard = builder().bind(([127, 0, 0, 1], 7000).into()).reuse_port(true);
    let line = refusal(shard.known_as(["192.0.2.1:7000".parse().unwrap()]));
    assert!(line.contains("`known_as` is 192.0.2.1:7000"), "{line}");
    let config = Config { mtu: 7, ..Config::default() };
    assert!(refusal(builder().config(config)).contains("`mtu` is 7"));
}

#[test]
fn an_address_that_cannot_be_bound_is_named() {
    let holder = endpoint();
    let taken = holder.local_addr();
    let error = builder().bind(taken).build().unwrap_err();
    assert!(matches!(error, BuildError::Bind { addr, .. } if addr == taken), "{error}");
    assert_eq!(
        error.to_string(),
        format!("cannot bind a UDP socket to {taken}: Address already in use (os error 98)")
    );
}

#[test]
fn an_occupied_port_of_a_port_range_is_named() {
    let pairs = || PathMap::ecmp_pairs(1, 3);
    let bound = builder().paths(pairs()).build().unwrap().local_addr();
    let taken = std::net::SocketAddr::new(bound.ip(), bound.port() + 2);
    let _holder = std::net::UdpSocket::bind(taken).unwrap();
    let error = builder().bind(bound).paths(pairs()).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot bind a UDP socket to {taken}: Address already in use (os error 98)")
    );
    let last = "127.0.0.1:65534".parse().unwrap();
    let error = builder().bind(last).paths(pairs()).build().unwrap_err();
    assert!(format!("{error:?}").contains("the path map needs 3 consecutive ports"), "{error:?}");
}

#[test]
fn small_buffers_are_reported_and_warned_about() {
    let log = Log::default();
    // More than any system grants: it counts in 32 bits and doubles.
    let wanted = i32::MAX as usize;
    let endpoint = tracing::subscriber::with_default(log.clone(), || {
        builder().paths(PathMap::ecmp(1)).socket_buffers(wanted).build().unwrap()
    });
    let granted = endpoint.granted_buffers();
    assert_eq!(granted.wanted, wanted);
    assert!(granted.receive < wanted && granted.send < wanted);
    for sysctl in ["net.core.rmem_max", "net.core.wmem_max"] {
        assert_eq!(log.warnings(sysctl), 1, "{log:?}");
    }
    assert!(log.warnings(&format!("granted={}", granted.receive)) > 0, "{log:?}");

    let small = builder().socket_buffers(64 << 10).build().unwrap().granted_buffers();
    assert_eq!((small.receive, small.send), (64 << 10, 64 << 10));
}

#[test]
fn an_endpoint_without_a_key_warns_about_it() {
    let open_on = |addr: &str| {
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            Endpoint::builder()
                .bind(addr.parse().unwrap())
                .paths(PathMap::ecmp(1))
                .security(Security::trusted_network())
                .config(Config { capacity: 1_000_000_000.into(), ..Config::default() })
                .build()
                .unwrap()
        });
        log.warnings("trusted_network")
    };
    assert_eq!((open_on("0.0.0.0:0"), open_on("127.0.0.1:0"), open_on("[::1]:0")), (1, 0, 0));
}

#[test]
fn trimming_and_outer_headers_are_refused_together() {
    let paths = PathMap::xpath_ipip([[10, 3, 0, 1].into()]);
    let security = Security::pre_shared([7; 32]);
    let builder = Endpoint::builder().bind(([127, 0, 0, 1], 0).into()).paths(paths);
    let fabric = Fabric { trim_dscp: Some(48), ..Fabric::default() };
    let builder = builder.security(security).config(Config { fabric, ..Config::default() });
    let error = builder.build().unwrap_err().to_string();
    assert!(error.contains("`paths`") && error.contains("`fabric.trim_dscp`"), "{error}");
}

#[test]
fn public_types_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    shared::<(Endpoint, Builder, Endpoint, Config, Security, PathMap)>();
    shared::<(Sending, Calls, Request, RequestParts, Message, Receipt)>();
    shared::<(Sending, Calls, Request)>();
    shared::<(BuildError, SendError, PathMapError, Closed, ConfigError)>();
    shared::<(Incoming<Message>, Incoming<Request>, PeerSink)>();
    shared::<(Incoming<Message>, Incoming<Request>)>();
    #[cfg(feature = "tower")]
    shared::<cloudburst_net::Client>();
}

#[test]
fn a_refused_setting_converts_to_an_io_error_of_invalid_input() {
    fn check<T, E: Into<io::Error>>(result: Result<T, E>) {
        let error = result.err().expect("it is wrong").into();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        assert!(error.get_ref().is_some());
    }
    check("ecmp:65".parse::<PathMap>());
    check("no code".parse::<Code>());
    check("no key".parse::<PresharedKey>());
    check("7".parse::<Capacity>());
    check("no order".parse::<Order>());
    check(Shape::fat_tree(7));
}

#[test]
fn a_key_converts_to_security() {
    let builder = Endpoint::builder().bind(([127, 0, 0, 1], 0).into());
    let one = builder.clone().security(PresharedKey::from(KEY));
    let other = builder;
    let one = one.build().unwrap();
    let other = other.security(Security::pre_shared(KEY)).build().unwrap();
    one.send(other.local_addr(), "hello").wait().unwrap();
}

#[test]
fn debug_output_is_short_and_without_payloads() {
    let client = endpoint();
    let server = endpoint();
    let address = server.local_addr();
    assert_eq!(format!("{:?}", server), format!("Endpoint {{ local_addr: {address}, .. }}"));
    let long = vec![0; 10_000];
    let shown = [
        format!("{:?}", client.send(address, long.clone())),
        format!("{:?}", client.call(address, long.clone())),
        format!("{:?}", client.call_many([(address, long.clone())])),
    ];
    let mut calls = client.call_many([(address, long.clone())]).begin();
    let request = server.recv_request().wait().unwrap();
    let shown_request = [format!("{:?}", request.parts()), format!("{request:?}")];
    request.reply(long.clone()).wait().unwrap();
    let response = format!("{:?}", client.block_on(calls.next()).unwrap());
    client.send(address, long).wait().unwrap();
    let message = format!("{:?}", server.recv().wait().unwrap());
    let received = [shown_request, [response, message]].concat();
    for shown in shown.iter().chain(&received) {
        assert!(shown.len() < 300, "{shown}");
    }
    assert!(received.iter().all(|shown| shown.contains("len: 10000")), "{received:?}");
}
