//! Reachability between hosts, and the spines on the way.

use crate::packets::*;
use crate::small;
use cloudburst_testbed::{Fabric, Node, Topology};
use libtest_mimic::Failed;
use socket2::Domain;
use std::net::IpAddr;

pub(crate) fn every_host_reaches_every_other() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let largest = [7; 1500 - 20 - 8];
    for v6 in [false, true] {
        let address = |host: u16| -> Result<IpAddr, Failed> {
            let host = fabric.host(host)?;
            Ok(if v6 { host.v6().into() } else { host.v4().into() })
        };
        let sockets: Vec<_> = (1..=4)
            .map(|host| Ok(bound(&fabric.host(host)?, v6, PORT)?))
            .collect::<Result<_, Failed>>()?;
        let payload = if v6 { &largest[20..] } else { &largest[..] };
        for from in 1..=4 {
            for to in (1..=4).filter(|to| *to != from) {
                sockets[from as usize - 1].send_to(payload, (address(to)?, PORT))?;
                let mut buffer = [0; 2048];
                let (length, peer) = sockets[to as usize - 1].recv_from(&mut buffer)?;
                assert_eq!((length, peer.ip()), (payload.len(), address(from)?));
            }
        }
    }
    Ok(())
}

pub(crate) fn sixteen_ports_use_every_spine() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    for to_address in [IpAddr::from(to.v4()), to.v6().into()] {
        let receiver = bound(&to, to_address.is_ipv6(), PORT)?;
        let before = towards_spines(&fabric, Node::Leaf(1))?;
        from_ports(&from, 16, to_address)?;
        assert_eq!(arrivals(&receiver, 16), 16);
        let used = since(&before, &towards_spines(&fabric, Node::Leaf(1))?);
        println!("{to_address}: {used:?}");
        assert!(used.iter().all(|&packets| packets > 0), "{to_address}: {used:?}");
        assert!(used.iter().sum::<u64>() >= 16);
    }
    Ok(())
}

pub(crate) fn sixteen_flow_labels_use_every_spine() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let socket = raw(&from, Domain::IPV6)?;
    let before = towards_spines(&fabric, Node::Leaf(1))?;
    for label in 1..=16 {
        let packet = ipv6(label << 8, from.v6(), to.v6(), &udp(FIRST, PORT, b"labelled"));
        send_raw(&socket, &packet, to.v6().into())?;
    }
    let used = since(&before, &towards_spines(&fabric, Node::Leaf(1))?);
    println!("{used:?}");
    assert!(used.iter().all(|&packets| packets > 0), "{used:?}");
    Ok(())
}

pub(crate) fn an_alias_takes_its_spine_only() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    for (from, to) in [(1, 4), (3, 2)] {
        let from = fabric.host(from)?;
        let to = fabric.host(to)?;
        for v6 in [false, true] {
            let receiver = bound(&to, v6, PORT)?;
            for spine in 1..=4 {
                let alias: IpAddr = match v6 {
                    false => to.path_address(spine)?.into(),
                    true => to.path_address_v6(spine)?.into(),
                };
                let before = towards_spines(&fabric, from.leaf())?;
                from_ports(&from, 50, alias)?;
                assert_eq!(arrivals(&receiver, 50), 50, "{alias}");
                let used = since(&before, &towards_spines(&fabric, from.leaf())?);
                for (index, packets) in (1..).zip(used) {
                    // Some of the kernel's own packets may pass: multicast listener reports.
                    let expected = if index == spine { 50..60 } else { 0..10 };
                    assert!(expected.contains(&packets), "{alias}: {packets} by way of s{index}");
                }
            }
        }
    }
    let neighbour = fabric.host(2)?;
    let receiver = bound(&neighbour, false, PORT)?;
    from_ports(&fabric.host(1)?, 4, neighbour.path_address(3)?.into())?;
    assert_eq!(arrivals(&receiver, 4), 4, "on the same leaf an alias is an address like others");
    Ok(())
}

pub(crate) fn path_ids_share_their_spine() -> Result<(), Failed> {
    let fabric = Fabric::up(&Topology { path_ids: 2, ..small() })?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let v4 = to.path_addresses();
    let v6 = to.path_addresses_v6();
    assert_eq!((v4[0], v4[2]), (to.path_address(1)?, to.path_address(2)?));
    let v4 = v4.into_iter().map(IpAddr::from);
    let v6 = v6.into_iter().map(IpAddr::from);
    for aliases in [v4.collect::<Vec<_>>(), v6.collect()] {
        let receiver = bound(&to, aliases[0].is_ipv6(), PORT)?;
        for (alias, spine) in aliases.into_iter().zip([1, 1, 2, 2, 3, 3, 4, 4]) {
            let before = towards_spines(&fabric, from.leaf())?;
            from_ports(&from, 20, alias)?;
            assert_eq!(arrivals(&receiver, 20), 20, "{alias}");
            let used = since(&before, &towards_spines(&fabric, from.leaf())?);
            assert!((20..30).contains(&used[spine - 1]), "{alias}, spine {spine}: {used:?}");
        }
    }
    Ok(())
}
