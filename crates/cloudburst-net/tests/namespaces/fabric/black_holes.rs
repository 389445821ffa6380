//! Spines that drop everything, while no route changes.

use super::rig::*;
use cloudburst_net::PathMap;
use cloudburst_testbed::{Fabric, Failure, Node, Target};
use libtest_mimic::Failed;
use std::net::IpAddr;

const SIZES: [usize; 3] = [1_500, 20_000, LARGE];
/// Messages within which all paths must be used again: a degraded path is probed once in 16 rounds,
/// of which a message of 93,000 bytes makes a quarter with 64 paths.
const HEALING: u64 = 150;

pub(crate) fn explicit_paths_survive_dead_spines() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let (map, to) = explicit(&fabric)?;
    (1..=3).try_for_each(|dead| survive(&fabric, dead, &map, to))
}

pub(crate) fn bounced_packets_survive_dead_spines() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let (map, to) = bounced(&fabric)?;
    (1..=3).try_for_each(|dead| survive(&fabric, dead, &map, to))
}

pub(crate) fn hashed_paths_survive_dead_spines() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let (map, to) = hashed(&fabric)?;
    (1..=3).try_for_each(|dead| survive(&fabric, dead, &map, to))
}

pub(crate) fn endpoints_meet_in_spite_of_dead_spines() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    for dead in 1..=3 {
        fabric.fail(Target::Node(Node::Spine(dead)), Failure::Silent)?;
        for (map, to) in [explicit(&fabric)?, bounced(&fabric)?, hashed(&fabric)?] {
            for len in SIZES {
                pair(&fabric, &map, to)?.deliver(len, 1)?;
            }
        }
    }
    Ok(())
}

fn explicit(fabric: &Fabric) -> Result<(PathMap, IpAddr), Failed> {
    let addresses = fabric.host(TO)?.path_addresses();
    Ok((PathMap::xpath(addresses.iter().copied().map(IpAddr::from)), addresses[0].into()))
}

fn bounced(fabric: &Fabric) -> Result<(PathMap, IpAddr), Failed> {
    let spines = (1..=SPINES).map(|spine| Ok(fabric.addresses(Node::Spine(spine))?.0));
    let spines = spines.collect::<Result<Vec<_>, Failed>>()?;
    Ok((PathMap::bounce(spines), fabric.host(TO)?.v4().into()))
}

/// The maximum number of ports: of 16, none would lead to the one living spine once in a hundred
/// times.
fn hashed(fabric: &Fabric) -> Result<(PathMap, IpAddr), Failed> {
    Ok((PathMap::ecmp(PathMap::MAX), fabric.host(TO)?.v4().into()))
}

fn pair(fabric: &Fabric, map: &PathMap, to: IpAddr) -> Result<Pair, Failed> {
    Pair::new(fabric, builder(fabric.host(FROM)?.v4()).paths(map.clone()), to)
}

/// All messages of endpoints that are talking when `dead` spines fail arrive. Once the spines work
/// again, all paths are used again.
fn survive(fabric: &Fabric, dead: u16, map: &PathMap, to: IpAddr) -> Result<(), Failed> {
    let pair = pair(fabric, map, to)?;
    for seed in 0..10 {
        pair.deliver(LARGE, seed)?;
    }
    for spine in 1..=dead {
        fabric.fail(Target::Node(Node::Spine(spine)), Failure::Silent)?;
    }
    for (seed, len) in (0..30).zip(SIZES.into_iter().cycle()) {
        pair.deliver(len, seed)?;
    }
    let degraded = || pair.paths().iter().filter(|path| path.degraded).count();
    let then = degraded();
    fabric.heal(None)?;
    let healing = (0..HEALING).take_while(|_| degraded() > 0);
    let messages = healing.map(|seed| pair.deliver(LARGE, seed)).collect::<Result<Vec<_>, _>>()?;
    println!("{map}, {dead} dead: {then} paths degraded, none {} messages later", messages.len());
    assert!(then > 0, "dead paths were not noticed");
    assert_eq!(degraded(), 0, "{:?}", pair.paths());
    Ok(())
}
