//! The simulator's events a second on one core: an event is a packet at a node, or a timer.
//!
//! Each host sends to another at the full rate: a permutation. Figures are events a second of processor time,
//! because machines are shared, and the best of three runs. The exit code is 1 if a target is missed.

use cloudburst_benches::usage::{Usage, peak_memory};
use cloudburst_benches::{Result, run};
use cloudburst_sim::engine::{MS, Time, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::{Depth, DropTail};
use cloudburst_sim::transport::burst::{self, Burst};
use cloudburst_sim::workload::List;
use cloudburst_sim::{NewFlow, Simulation};
use std::process::ExitCode;

struct Case {
    name: &'static str,
    shape: Shape,
    edge: Link,
    core: Link,
    span: Time,
    /// Events a second.
    target: f64,
}

const CASES: [Case; 2] = [
    Case {
        name: "144 hosts, leaf-spine, 10 and 40 Gb/s",
        shape: Shape::leaf_spine(16, 9, 4),
        edge: Link { rate: 10_000_000_000, delay: 2 * US },
        core: Link { rate: 40_000_000_000, delay: 2 * US },
        span: 10 * MS,
        target: 20e6,
    },
    Case {
        name: "3,456 hosts, Fat-tree of 24 ports, 1 Gb/s",
        shape: Shape::fat_tree(24, 1),
        edge: Link { rate: 1_000_000_000, delay: 5 * US },
        core: Link { rate: 1_000_000_000, delay: 5 * US },
        span: 10 * MS,
        target: 8e6,
    },
];

fn main() -> ExitCode {
    run("sim", |arguments| all(arguments.first().map_or("", String::as_str)))
}

/// Runs the cases whose names contain `filter`.
fn all(filter: &str) -> Result<()> {
    let mut missed = false;
    println!("{:<44}{:>12}{:>14}{:>10}{:>12}", "", "events", "M events/s", "target", "memory");
    for case in CASES.iter().filter(|case| case.name.contains(filter)) {
        let mut events = 0;
        let mut best: f64 = 0.0;
        for _ in 0..3 {
            let seconds;
            (events, seconds) = case.run()?;
            best = best.max(events as f64 / seconds);
        }
        let mebibytes = peak_memory()? >> 10;
        let verdict = if best < case.target { "  MISSED" } else { "" };
        missed |= best < case.target;
        println!(
            "{:<44}{events:>12}{:>14.1}{:>10.0}{mebibytes:>8} MiB{verdict}",
            case.name,
            best / 1e6,
            case.target / 1e6
        );
    }
    if missed { Err("a target is missed".into()) } else { Ok(()) }
}

impl Case {
    /// Returns the events of a run and its processor time in seconds.
    fn run(&self) -> Result<(u64, f64)> {
        let queue = |_: Link| DropTail::new(Depth::Bytes(128 << 10)).into();
        let fabric = Clos::new(self.shape, self.edge, self.core, queue, queue)
            .expect("the topology is possible");
        let hosts = self.shape.hosts();
        let flow = |host: usize| NewFlow {
            source: host as u16,
            destination: ((host + hosts / 2 + 1) % hosts) as u16,
            transport: 0,
            bytes: 1 << 40,
            tag: 0,
        };
        let flows = (0..hosts).map(|host| (0, flow(host))).collect();
        let config = burst::Config { link: self.edge.rate, ..burst::Config::default() };
        let transports = vec![Box::new(Burst::new(config)) as _];
        let workload = Box::new(List::new(flows));
        let mut simulation = Simulation::new(fabric, transports, workload, 1);
        let before = Usage::now()?;
        simulation.run(self.span);
        Ok((simulation.network().events(), Usage::since(before)?.cpu.as_secs_f64()))
    }
}
