//! How many packets in a row take one uplink, by the order of paths.

use super::rig::*;
use cloudburst_core::wire::Kind;
use cloudburst_net::{Config, PathMap, Tuning};
use cloudburst_testbed::{Capture, Fabric, Node, Topology};
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Eight paths, of which pairs share an uplink.
pub(crate) fn digit_reversal_sends_the_fewest_packets_in_a_row_over_an_uplink() -> Result<(), Failed>
{
    let fabric = Fabric::up(&Topology { path_ids: 2, ..small() })?;
    let addresses = fabric.host(TO)?.path_addresses().into_iter().map(IpAddr::from);
    let addresses: Vec<_> = addresses.collect();
    let mut longest = Vec::new();
    for order in ["drb:4x2", "rrb", "rb"] {
        let config = Config {
            capacity: RATE.into(),
            order: order.parse()?,
            tuning: Tuning { train: 1, ..Tuning::default() },
            ..Config::default()
        };
        let sender = builder(fabric.host(FROM)?.v4()).config(config);
        let sender = sender.paths(PathMap::xpath(addresses.clone()));
        let pair = Pair::new(&fabric, sender, addresses[0])?;
        let captures = (1..=4).map(|spine| Ok(fabric.namespace(Node::Spine(spine))?.capture()?));
        let captures = captures.collect::<Result<Vec<_>, Failed>>()?;
        let mut ways = BTreeMap::new();
        for seed in 0..20 {
            pair.deliver(LARGE, seed)?;
            record(&captures, &mut ways)?;
        }
        assert!(ways.len() > 20 * 64, "{} packets", ways.len());
        longest.push(longest_run(&ways));
    }
    println!("longest runs of drb:4x2, rrb, rb: {longest:?}");
    assert!(longest.is_sorted_by(|shorter, longer| shorter < longer), "{longest:?}");
    Ok(())
}

/// Records which spine each symbol crossed, by packet number.
fn record(captures: &[Capture], ways: &mut BTreeMap<u64, usize>) -> Result<(), Failed> {
    for (spine, capture) in captures.iter().enumerate() {
        let packets = capture.packets()?;
        ways.extend(packets.iter().filter_map(|packet| Some((symbol_number(packet)?, spine))));
    }
    Ok(())
}

/// The packet number of a SYMBOL in an IPv4 packet: section 2.3 of the specification.
fn symbol_number(packet: &[u8]) -> Option<u64> {
    let headers = usize::from(packet.first()? & 15) * 4 + 8;
    let prefix = packet.get(headers..)?.first_chunk::<14>()?;
    (Kind::of(prefix) == Ok(Kind::Symbol))
        .then(|| prefix[8..].iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

/// The most consecutive numbers that went one way, except for one run in a hundred: if a busy machine delays
/// answers, a path is left out for a moment.
fn longest_run(ways: &BTreeMap<u64, usize>) -> usize {
    let ways: Vec<_> = ways.iter().collect();
    let runs = ways.chunk_by(|one, next| one.0 + 1 == *next.0 && one.1 == next.1);
    let mut lengths: Vec<_> = runs.map(<[_]>::len).collect();
    lengths.sort_unstable();
    lengths[(lengths.len() - 1) * 99 / 100]
}
