//! The cost of messages while spines are black holes, and how soon healed paths are used again.

use crate::maps::{self, Map};
use cloudburst_bench_programs::rig::{FROM, Failure, LARGE, Pair, Rig};
use cloudburst_net::PathMap;
use cloudburst_testbed::{Port, Topology};
use core::fmt;
use core::time::Duration;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const SIZES: [usize; 3] = [1_500, 20_000, LARGE];
/// Pairs of endpoints whose handshake meets the failure, with one message each.
const FRESH: usize = 20;
/// Messages of a pair that has a session when it fails, and messages before the failure.
const TALKING: usize = 40;
/// Messages within which all paths must be used again.
const HEALING: usize = 1_000;

pub(crate) fn run(interrupted: &AtomicBool) -> Result<(), Failure> {
    println!("## Black holes: spines that swallow everything, and no route changes\n");
    let rig = Rig::up(&Topology::default(), interrupted)?;
    let kinds = ["ecmp:16", "ecmp:64", "xpath:", "bounce:"];
    let mut maps = maps::all(&rig.fabric, FROM)?;
    maps.retain(|map| kinds.iter().any(|kind| map.text.starts_with(kind)));
    let known: Vec<_> =
        maps.iter().map(|map| Ok((map, map.parse()?))).collect::<Result<_, Failure>>()?;
    println!(
        "\"Fresh\": {FRESH} pairs of endpoints, one message each, handshake included. \"Talking\": \
         {TALKING} messages, one after the other, of a pair that had sent as many when the spines \
         failed. Messages have 10 s.\n\n\
         | path map | dead of 4 | bytes | endpoints | delivered | median, ms | longest, ms | \
         packets a message | needed |\n|---|---|---|---|---|---|---|---|---|"
    );
    let mut healed = Vec::new();
    for (map, paths) in &known {
        for (dead, bytes) in (0..4).flat_map(|dead| SIZES.map(|bytes| (dead, bytes))) {
            let case = Case { rig: &rig, map, paths, dead, bytes };
            let case_is = format!("| {} | {dead} | {bytes} |", map.label());
            println!("{case_is} fresh | {} |", case.fresh()?);
            let (delivered, healing) = case.talking()?;
            println!("{case_is} talking | {delivered} |");
            if bytes == LARGE && dead > 0 {
                healed.push(format!("| {} | {dead} | {healing} |", map.label()));
            }
        }
    }
    println!(
        "\nOnce healed, messages of {LARGE} bytes, one after the other, until no path is degraded; \
         and packets of {TALKING} messages by each spine, before the failure and after that:\n\n\
         | path map | dead of 4 | degraded | none after | before | after |\n|---|---|---|---|---|---|"
    );
    healed.iter().for_each(|row| println!("{row}"));
    Ok(())
}

/// The number of dead spines, and the size of messages in bytes.
struct Case<'a, 'b> {
    rig: &'a Rig<'b>,
    map: &'a Map,
    paths: &'a PathMap,
    dead: u16,
    bytes: usize,
}

impl<'b> Case<'_, 'b> {
    fn pair(&self) -> Result<Pair<'b>, Failure> {
        let builder = self.rig.builder(self.map.from, 0).paths(self.paths.clone());
        self.rig.pair(builder, self.map.to)
    }

    /// Measures endpoints whose handshake starts when spines are already dead.
    fn fresh(&self) -> Result<DeliveryTimes, Failure> {
        self.rig.swallow(self.dead)?;
        let mut delivered = DeliveryTimes::default();
        for _ in 0..FRESH {
            delivered.send(&self.pair()?, self.bytes)?;
        }
        self.rig.fabric.heal(None)?;
        Ok(delivered)
    }

    /// Measures endpoints that have a session when spines die, and then their use of the healed paths.
    fn talking(&self) -> Result<(DeliveryTimes, String), Failure> {
        let pair = self.pair()?;
        let before = spread(self.rig, &pair, self.bytes)?;
        self.rig.swallow(self.dead)?;
        let mut delivered = DeliveryTimes::default();
        for _ in 0..TALKING {
            delivered.send(&pair, self.bytes)?;
        }
        let degraded = degraded(&pair);
        let paths = pair.paths().len();
        self.rig.fabric.heal(None)?;
        let healed = heal(&pair)?;
        let after = spread(self.rig, &pair, self.bytes)?;
        Ok((delivered, format!("{degraded} of {paths} | {healed} | {before} | {after}")))
    }
}

fn degraded(pair: &Pair) -> usize {
    pair.paths().iter().filter(|path| path.degraded).count()
}

/// Sends messages, and returns the number of packets through each spine.
fn spread(rig: &Rig, pair: &Pair, bytes: usize) -> Result<String, Failure> {
    let before = rig.spines()?;
    for _ in 0..TALKING {
        // The next messages show in the table how it ends.
        let _ = pair.send(bytes)?;
    }
    let since = |(after, before): (Port, Port)| after.tiny.sent - before.tiny.sent;
    Ok(maps::list(rig.spines()?.into_iter().zip(before).map(since).collect()).replace(',', ", "))
}

/// Sends messages until no path is degraded.
fn heal(pair: &Pair) -> Result<String, Failure> {
    let start = Instant::now();
    for messages in 0..HEALING {
        if degraded(pair) == 0 {
            let took = start.elapsed().as_secs_f64() * 1e3;
            return Ok(format!("{took:.0} ms, {messages} messages"));
        }
        let _ = pair.send(LARGE)?;
    }
    Ok(format!("not within {HEALING} messages"))
}

/// How messages ended.
#[derive(Default)]
struct DeliveryTimes {
    tried: usize,
    times: Vec<Duration>,
    packets: usize,
    needed: usize,
}

impl DeliveryTimes {
    fn send(&mut self, pair: &Pair, bytes: usize) -> Result<(), Failure> {
        self.tried += 1;
        let start = Instant::now();
        if let Ok(receipt) = pair.send(bytes)? {
            self.times.push(start.elapsed());
            self.packets += receipt.packets;
            self.needed += receipt.source_symbols;
        }
        Ok(())
    }
}

impl fmt::Display for DeliveryTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times = self.times.clone();
        times.sort();
        let millis = |time: Option<&Duration>| match time {
            Some(time) => format!("{:.1}", time.as_secs_f64() * 1e3),
            None => "-".into(),
        };
        let of_delivered = |count: usize| count as f64 / times.len().max(1) as f64;
        write!(
            f,
            "{} of {} | {} | {} | {:.1} | {:.0}",
            times.len(),
            self.tried,
            millis(times.get(times.len() / 2)),
            millis(times.last()),
            of_delivered(self.packets),
            of_delivered(self.needed),
        )
    }
}
