//! How packets spread over the spines, and the queues that they use.

use crate::maps::{self, Map};
use cloudburst_bench_programs::rig::{FROM, Failure, LARGE, Rig, TO};
use cloudburst_net::PathMap;
use cloudburst_testbed::{Port, Topology};
use std::sync::atomic::AtomicBool;

const MESSAGES: usize = 40;

pub(crate) fn run(interrupted: &AtomicBool) -> Result<(), Failure> {
    println!("## Spread: {MESSAGES} messages of {LARGE} bytes by each path map\n");
    let maps = maps::all(&Rig::up(&Topology::default(), interrupted)?.fabric, FROM)?;
    println!(
        "| path map | delivered | packets by s1, s2, s3, s4 | fewest and most, of an even share \
         | in the DSCP's queue there | DSCP's queue of h1, of h5 | datagrams the endpoints sent \
         | in the other queue of h1, of h5 |\n|---|---|---|---|---|---|---|---|"
    );
    for map in maps {
        row(&map, map.parse()?, interrupted)?;
    }
    Ok(())
}

fn row(map: &Map, paths: PathMap, interrupted: &AtomicBool) -> Result<(), Failure> {
    let topology = Topology { hosts_decapsulate: map.wrapped, ..Topology::default() };
    let rig = Rig::up(&topology, interrupted)?;
    let pair = rig.pair(rig.builder(map.from, 0).paths(paths), map.to)?;
    let hosts = || Ok::<_, Failure>([rig.host_port(FROM)?, rig.host_port(TO)?]);
    let hosts_before = hosts()?;
    let spines_before = rig.spines()?;
    let mut delivered = 0;
    for _ in 0..MESSAGES {
        delivered += usize::from(pair.send(LARGE)?.is_ok());
    }
    let hosts = since(&hosts_before, &hosts()?);
    let spines = since(&spines_before, &rig.spines()?);
    let ends = [&pair.sender, &pair.receiver.endpoint];
    let counted = ends.map(|end| end.counters().io.datagrams_sent);

    let tiny: Vec<u64> = spines.iter().map(|(tiny, _)| *tiny).collect();
    let all: u64 = tiny.iter().sum();
    let others: u64 = spines.iter().map(|(_, others)| others).sum();
    let even = all as f64 / tiny.len() as f64;
    let of_even = |packets: Option<&u64>| *packets.unwrap_or(&0) as f64 / even;
    println!(
        "| {} | {delivered} | {} | {:.2}, {:.2} | {:.2} % | {}, {} | {}, {} | {}, {} |",
        map.label(),
        maps::list(tiny.clone()).replace(',', ", "),
        of_even(tiny.iter().min()),
        of_even(tiny.iter().max()),
        100.0 * all as f64 / (all + others) as f64,
        hosts[0].0,
        hosts[1].0,
        counted[0],
        counted[1],
        hosts[0].1,
        hosts[1].1,
    );
    Ok(())
}

/// Returns the packets that each port has sent since, with the DSCP and without.
fn since(before: &[Port], after: &[Port]) -> Vec<(u64, u64)> {
    let sent = |(after, before): (&Port, &Port)| {
        (after.tiny.sent - before.tiny.sent, after.default.sent - before.default.sent)
    };
    after.iter().zip(before).map(sent).collect()
}
