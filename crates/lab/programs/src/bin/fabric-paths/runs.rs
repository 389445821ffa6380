//! How many packets in a row take one uplink, by the order of paths.

use crate::maps;
use cloudburst_bench_programs::rig::{FROM, Failure, LARGE, Rig, TO};
use cloudburst_net::{Config, Order, PathMap, Tuning};
use cloudburst_testbed::{Capture, Node, Topology};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const MESSAGES: usize = 40;
/// Two path IDs per spine: eight paths, of which pairs share an uplink.
const PATH_IDS: u16 = 2;

pub(crate) fn run(interrupted: &AtomicBool) -> Result<(), Failure> {
    let rig = Rig::up(&Topology { path_ids: PATH_IDS, ..Topology::default() }, interrupted)?;
    let ids = rig.fabric.host(TO)?.path_addresses();
    let peer = ids[0];
    println!(
        "## Runs: {MESSAGES} messages of {LARGE} bytes over {} path IDs, {PATH_IDS} a spine, one \
         packet a turn\n",
        ids.len()
    );
    let given = format!("xpath:{}", maps::list(ids));
    let map: PathMap =
        given.parse().map_err(|source| Failure::Map { map: given.clone(), source })?;
    println!(
        "| order | delivered | packets at the spines | missing | longest run on an uplink | mean \
         run |\n|---|---|---|---|---|---|"
    );
    for text in ["rb", "rrb", "drb:4x2"] {
        let order: Order = text.parse().expect("a test of the library reads these three");
        let config = Config {
            order,
            capacity: rig.capacity().into(),
            tuning: Tuning { train: 1, ..Tuning::default() },
            ..Config::default()
        };
        let builder = rig.builder(rig.fabric.host(FROM)?.v4().into(), 0).config(config);
        let pair = rig.pair(builder.paths(map.clone()), peer.into())?;
        let spines = (1..=rig.fabric.topology().spines).map(Node::Spine);
        let captures: Result<Vec<_>, Failure> =
            spines.map(|spine| Ok(rig.fabric.namespace(spine)?.capture()?)).collect();
        let captures = captures?;
        let mut spines_taken = BTreeMap::new();
        let mut delivered = 0;
        for _ in 0..MESSAGES {
            delivered += usize::from(pair.send(LARGE)?.is_ok());
            see(&captures, &mut spines_taken)?;
        }
        // Wait for packets that were still in flight when the last message had arrived.
        rig.spines()?;
        see(&captures, &mut spines_taken)?;
        let runs = runs(&spines_taken);
        let last = spines_taken.keys().next_back().map_or(0, |last| last + 1);
        println!(
            "| `{text}` | {delivered} | {} | {} | {} | {:.2} |",
            spines_taken.len(),
            last - spines_taken.len() as u64,
            runs.iter().max().unwrap_or(&0),
            spines_taken.len() as f64 / runs.len().max(1) as f64,
        );
    }
    Ok(())
}

/// Records the spine that each symbol took, by packet number.
fn see(captures: &[Capture], spines_taken: &mut BTreeMap<u64, usize>) -> Result<(), Failure> {
    for (spine, capture) in captures.iter().enumerate() {
        let packets = capture.packets()?;
        spines_taken
            .extend(packets.iter().filter_map(|packet| Some((symbol_number(packet)?, spine))));
    }
    Ok(())
}

/// Returns the packet number of a SYMBOL in an IPv4 packet: section 2.3 of the specification.
fn symbol_number(packet: &[u8]) -> Option<u64> {
    const UDP_HEADER: usize = 8;
    let header = usize::from(packet.first()? & 15) * 4;
    let [kind, _, _, _, _, _, _, _, number @ ..] =
        packet.get(header + UDP_HEADER..)?.first_chunk::<14>()?;
    let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    (*kind == 0x35).then_some(number)
}

/// Returns the lengths of all runs of consecutive numbers that took the same spine.
fn runs(spines_taken: &BTreeMap<u64, usize>) -> Vec<u64> {
    let mut runs = Vec::new();
    let mut last = None;
    for (&number, &spine) in spines_taken {
        match runs.last_mut() {
            Some(run) if last == Some((number.wrapping_sub(1), spine)) => *run += 1,
            _ => runs.push(1),
        }
        last = Some((number, spine));
    }
    runs
}
