//! Failures of nodes and links, their kinds, and recovery.

use crate::packets::*;
use crate::small;
use cloudburst_testbed::{Fabric, Failure, Node, Target};
use libtest_mimic::Failed;
use nix::sys::socket::{setsockopt, sockopt};
use std::net::IpAddr;
use std::time::Instant;

/// Sends 40 packets through each spine, and expects this number of them at host 4: all or none.
fn expect_by_spine(fabric: &Fabric, v6: bool, expected: [usize; 4]) -> Result<(), Failed> {
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let sender = bound(&from, v6, 0)?;
    let receiver = bound(&to, v6, PORT)?;
    for (spine, expected) in (1..).zip(expected) {
        let alias: IpAddr =
            if v6 { to.path_address_v6(spine)?.into() } else { to.path_address(spine)?.into() };
        for _ in 0..40 {
            // A switch without a route replies with an error, which the next call returns.
            let _ = sender.send_to(b"one of forty", (alias, PORT));
        }
        let arrived =
            if expected == 0 { survivors(&receiver)? } else { arrivals(&receiver, expected) };
        assert_eq!(arrived, expected, "by way of s{spine}, IPv6: {v6}");
    }
    Ok(())
}

pub(crate) fn a_silent_spine_loses_its_share() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    fabric.fail(Target::Node(Node::Spine(2)), Failure::Silent)?;
    fabric.fail("l2-s3".parse::<Target>()?, Failure::Silent)?;
    expect_by_spine(&fabric, false, [40, 0, 0, 40])?;
    expect_by_spine(&fabric, true, [40, 0, 0, 40])?;
    let swallowed = |port: cloudburst_testbed::Port| (80..90).contains(&port.failed);
    assert!(swallowed(fabric.port(Node::Spine(2), Node::Leaf(1))?));
    assert!(swallowed(fabric.port(Node::Leaf(2), Node::Spine(3))?));
    assert_eq!(fabric.faults()?.failed.len(), 2);

    // ECMP continues to use dead paths.
    let before = towards_spines(&fabric, Node::Leaf(1))?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    let receiver = bound(&to, false, PORT)?;
    from_ports(&from, 16, to.v4().into())?;
    let arrived = survivors(&receiver)? as u64;
    let used = since(&before, &towards_spines(&fabric, Node::Leaf(1))?);
    assert!(used.iter().all(|&packets| packets > 0), "{used:?}");
    assert!(arrived < 16 && arrived <= used[0] + used[3], "{arrived} arrived of {used:?}");
    drop(receiver);

    fabric.heal(Some(Target::Node(Node::Spine(2))))?;
    expect_by_spine(&fabric, false, [40, 40, 0, 40])?;
    fabric.heal(None)?;
    expect_by_spine(&fabric, false, [40; 4])?;
    expect_by_spine(&fabric, true, [40; 4])
}

pub(crate) fn a_link_that_is_down_is_avoided() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let from = fabric.host(1)?;
    let to = fabric.host(4)?;
    for what in ["l1-s3", "s1"] {
        fabric.fail(what.parse()?, Failure::Down)?;
    }
    for to_address in [IpAddr::from(to.v4()), to.v6().into()] {
        let receiver = bound(&to, to_address.is_ipv6(), PORT)?;
        from_ports(&from, 16, to_address)?;
        assert_eq!(arrivals(&receiver, 16), 16, "{to_address}: by way of the others");
    }
    expect_by_spine(&fabric, false, [0, 40, 0, 40])?;
    fabric.heal(Some("l1-s3".parse()?))?;
    expect_by_spine(&fabric, true, [0, 40, 40, 40])?;
    fabric.heal(None)?;
    expect_by_spine(&fabric, false, [40; 4])?;
    expect_by_spine(&fabric, true, [40; 4])?;
    for (leaf, from, to) in [(1, &from, &to), (2, &to, &from)] {
        for to_address in [IpAddr::from(to.v4()), to.v6().into()] {
            let before = towards_spines(&fabric, Node::Leaf(leaf))?;
            // The kernel hashes with a seed of each boot: with 16 ports, one path in a hundred is unused.
            from_ports(from, 64, to_address)?;
            let used = since(&before, &towards_spines(&fabric, Node::Leaf(leaf))?);
            assert!(used.iter().all(|&packets| packets > 0), "l{leaf} to {to_address}: {used:?}");
        }
    }
    Ok(())
}

pub(crate) fn a_lossy_link_loses_at_its_rate() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    fabric.loss("h1-l1".parse()?, 25.0)?;
    let from = fabric.host(1)?;
    let to = fabric.host(2)?;
    let sender = bound(&from, false, 0)?;
    let receiver = bound(&to, false, PORT)?;
    setsockopt(&receiver, sockopt::RcvBufForce, &(8 << 20))?;
    let lost = || fabric.port(Node::Leaf(1), Node::Host(1)).map(|port| port.lost);
    let mut arrived = 0;
    let begun = Instant::now();
    // The queue of a port holds 256.
    for sent in (200..=1000).step_by(200) {
        for _ in 0..200 {
            sender.send_to(b"one of a thousand", (to.v4(), PORT))?;
        }
        while arrived as u64 + lost()? < sent {
            assert!(begun.elapsed() < PATIENCE, "{arrived} of {sent} arrived");
            arrived += survivors(&receiver)?;
        }
    }
    let lost = lost()?;
    // Nine standard deviations on either side.
    assert!((627..873).contains(&arrived), "{arrived} of 1000");
    assert!((1000 - arrived as u64..1010 - arrived as u64).contains(&lost), "{lost}, {arrived}");
    fabric.loss("h1-l1".parse()?, 0.0)?;
    from_ports(&from, 16, to.v4().into())?;
    assert_eq!(arrivals(&receiver, 16), 16);
    let refused = fabric.loss("h1-l1".parse()?, 101.0).map_err(|error| error.to_string());
    assert_eq!(refused.err().ok_or("accepted")?, "loss 101: expected a percentage, 0 to 100");
    Ok(())
}
