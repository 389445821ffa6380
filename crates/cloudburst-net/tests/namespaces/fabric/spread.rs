//! How packets spread over the spines, and which queue they use.

use super::rig::*;
use crate::common::eventually;
use cloudburst_net::PathMap;
use cloudburst_testbed::{Fabric, Node, Topology};
use libtest_mimic::Failed;
use std::net::{IpAddr, UdpSocket};

pub(crate) fn explicit_paths_share_the_spines_evenly() -> Result<(), Failed> {
    let fabric = Fabric::up(&Topology { hosts_decapsulate: true, ..small() })?;
    let from = fabric.host(FROM)?;
    let to = fabric.host(TO)?;
    let ids = to.path_addresses();
    let v4: Vec<IpAddr> = ids.iter().copied().map(IpAddr::from).collect();
    let v6: Vec<IpAddr> = to.path_addresses_v6().into_iter().map(IpAddr::from).collect();
    let spines = (1..=SPINES).map(|spine| Ok(fabric.addresses(Node::Spine(spine))?.0));
    let spines = spines.collect::<Result<Vec<_>, Failed>>()?;
    let explicit: [(IpAddr, PathMap, IpAddr); 4] = [
        (from.v4().into(), PathMap::xpath(v4.clone()), v4[2]),
        (from.v6().into(), PathMap::xpath(v6.clone()), v6[2]),
        (from.v4().into(), PathMap::xpath_ipip(ids), to.v4().into()),
        (from.v4().into(), PathMap::bounce(spines), to.v4().into()),
    ];
    for (bind, map, to) in explicit {
        let pair = Pair::new(&fabric, builder(bind).paths(map.clone()), to)?;
        let before = by_spine(&fabric)?;
        for seed in 0..20 {
            pair.deliver(LARGE, seed)?;
        }
        let used = since(&before, &by_spine(&fabric)?);
        println!("{map}: {used:?}");
        let even = used.iter().sum::<u64>() as f64 / used.len() as f64;
        assert!(even > 20.0 * 64.0 / 4.0);
        assert!(used.iter().all(|&packets| (packets as f64 / even - 1.0).abs() < 0.2), "{used:?}");
        assert_eq!(pair.sender.counters().io.send_errors.total(), 0);
    }
    Ok(())
}

pub(crate) fn hashed_paths_use_every_spine() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(FROM)?;
    let to = fabric.host(TO)?;
    let v4: [IpAddr; 2] = [from.v4().into(), to.v4().into()];
    let v6: [IpAddr; 2] = [from.v6().into(), to.v6().into()];
    let hashed = [
        (PathMap::ecmp(16), v4),
        (PathMap::ecmp(16), v6),
        (PathMap::ecmp_pairs(4, 4), v4),
        (PathMap::flow_labels(16), v6),
    ];
    for (map, ends) in hashed {
        // The ports or labels of one pool leave out a spine once in 25 times; four pools never do.
        let mut left_out = 0;
        while !uses_every_spine(&fabric, &map, ends)? {
            left_out += 1;
            assert!(left_out < 4, "{map} to {}", ends[1]);
        }
    }
    Ok(())
}

fn uses_every_spine(
    fabric: &Fabric,
    map: &PathMap,
    [bind, to]: [IpAddr; 2],
) -> Result<bool, Failed> {
    let sender = builder(bind).paths(map.clone());
    let pair = Pair::with_paths_back(fabric, sender, to, map.clone())?;
    let before = by_spine(fabric)?;
    pair.deliver(LARGE, 1)?;
    let used = since(&before, &by_spine(fabric)?);
    println!("{map} to {to}: {used:?}");
    Ok(used.iter().all(|&packets| packets > 0))
}

pub(crate) fn the_dscps_queue_has_all_and_nothing_else() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(FROM)?;
    let to = fabric.host(TO)?;
    let map = PathMap::ecmp(16);
    let pair = Pair::new(&fabric, builder(from.v4()).paths(map), to.v4().into())?;
    let stranger = from.run(|| UdpSocket::bind((from.v4(), 0)))??;
    for seed in 0..10 {
        pair.deliver([1, 1_500, 20_000, LARGE][seed as usize % 4], seed)?;
        stranger.send_to(b"without a DSCP", (to.v4(), 9))?;
    }
    let ends = [(FROM, from.leaf(), &pair.sender), (TO, to.leaf(), &pair.receiver)];
    for (host, leaf, endpoint) in ends {
        let port = || fabric.port(Node::Host(host), leaf).map_err(|error| error.to_string());
        eventually("the DSCP's queue of a host has what its endpoint sent", || {
            port().is_ok_and(|port| port.tiny.sent == endpoint.counters().io.datagrams_sent)
        });
        let port = port()?;
        println!(
            "h{host}: {} packets with the DSCP, {} without",
            port.tiny.sent, port.default.sent
        );
        assert_eq!((port.tiny.dropped, port.default.dropped), (0, 0));
    }
    // Their sum is the sender's, so no packet used the queue of others on the way.
    let sent = pair.sender.counters().io.datagrams_sent;
    eventually("the DSCP's queues of the spines have what the endpoint sent", || {
        by_spine(&fabric).is_ok_and(|spines| spines.iter().sum::<u64>() == sent)
    });
    assert!(fabric.port(Node::Host(FROM), from.leaf())?.default.sent >= 10);
    Ok(())
}
