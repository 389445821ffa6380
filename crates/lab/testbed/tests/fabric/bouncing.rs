//! DRB: the outer header selects the spine to visit.

use crate::packets::*;
use crate::small;
use cloudburst_testbed::{Fabric, Failure, Node, Target, Topology};
use libtest_mimic::Failed;
use socket2::Domain;

pub(crate) fn a_bounced_packet_visits_the_named_spine() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let socket = raw(&from, Domain::IPV4)?;
    let receiver = bound(&to, false, PORT)?;
    let bounce = |spine, number| -> Result<(), Failed> {
        let (spine, _) = fabric.addresses(Node::Spine(spine))?;
        let inner = ipv4(43 << 2, 17, from.v4(), to.v4(), &udp(FIRST, PORT, &[number; 1000]));
        send_raw(&socket, &ipv4(43 << 2, 4, from.v4(), spine, &inner), spine.into())?;
        Ok(())
    };
    // One after the other: the tiny queue holds 8.
    let arrive = |spine| -> Result<(), Failed> {
        for number in 0..20 {
            bounce(spine, number)?;
            assert_eq!(arrivals(&receiver, 1), 1, "packet {number} by way of s{spine}");
        }
        Ok(())
    };
    for spine in 1..=4 {
        arrive(spine)?;
        let to_leaf = fabric.port(Node::Spine(spine), Node::Leaf(2))?.tiny;
        assert_eq!((to_leaf.sent, to_leaf.bytes), (20, 20 * (1000 + 8 + 20 + 14)));
        let to_spine = fabric.port(Node::Leaf(1), Node::Spine(spine))?.tiny;
        assert_eq!((to_spine.sent, to_spine.bytes), (20, 20 * (1000 + 8 + 40 + 14)));
    }
    let mut buffer = [0; 2048];
    let inner = ipv4(0, 17, from.v4(), to.v4(), &udp(FIRST, PORT, b"whose?"));
    let (spine, _) = fabric.addresses(Node::Spine(1))?;
    send_raw(&socket, &ipv4(0, 4, from.v4(), spine, &inner), spine.into())?;
    let (length, peer) = receiver.recv_from(&mut buffer)?;
    assert_eq!((&buffer[..length], peer.ip()), (&b"whose?"[..], from.v4().into()));

    fabric.fail(Target::Node(Node::Spine(3)), Failure::Silent)?;
    (0..5).try_for_each(|number| bounce(3, number))?;
    assert_eq!(survivors(&receiver)?, 0);
    arrive(2)
}

pub(crate) fn hosts_decapsulate_if_configured_to() -> Result<(), Failed> {
    for hosts_decapsulate in [true, false] {
        let fabric = Fabric::up(&Topology { hosts_decapsulate, ..small() })?;
        let from = fabric.host(1)?;
        let to = fabric.host(4)?;
        let socket = raw(&from, Domain::IPV4)?;
        let receiver = bound(&to, false, PORT)?;
        let inner = ipv4(0, 17, from.v4(), to.v4(), &udp(FIRST, PORT, b"by way of spine 2"));
        let path = to.path_address(2)?;
        let before = towards_spines(&fabric, Node::Leaf(1))?;
        for _ in 0..20 {
            send_raw(&socket, &ipv4(0, 4, from.v4(), path, &inner), path.into())?;
        }
        if hosts_decapsulate {
            assert_eq!(arrivals(&receiver, 20), 20);
        } else {
            assert_eq!(survivors(&receiver)?, 0);
        }
        let used = since(&before, &towards_spines(&fabric, Node::Leaf(1))?);
        assert!((20..30).contains(&used[1]) && used[0] < 10, "{used:?}");
    }
    Ok(())
}
