//! Short flows under a load like that of a production trace (DRB paper, 5.2, Figure 7).
//!
//! The trace is not public, and [`TraceLike`] reproduces only the properties that the paper gives, so only the order
//! of schemes is compared. A completion time lasts from the sending of the first packet until the receiver has the
//! whole flow. There is no handshake, and the initial window exceeds 4 KB, so a probe takes half a round trip, whereas
//! those of the paper take several.

use super::fabric::{Fabric, tcp};
use super::show::{self, READINGS, at_most, table};
use crate::engine::{MS, SECOND, Time, US};
use crate::experiment::{
    Case, Cell, Completion, Experiment, Outcome, Part, Record, Results, Scale,
};
use crate::fabric::Shape;
use crate::transport::tcp::Tcp;
use crate::workload::{List, Mix, TraceLike, part};
use crate::{Network, NewFlow, Simulation};
use cloudburst_report::claims::{Claim, Judged};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Panel, Series};
use cloudburst_report::statistics::Estimate;
use cloudburst_workload::draw::{poisson, stream};
use core::error::Error;

const NAME: &str = "drb-probes";
const SCHEMES: [&str; 8] = ["ecmp", "rb", "rrb", "drb", "ecmp-64k", "rb-64k", "rrb-64k", "drb-64k"];
/// The size in bytes of the probes for which the paper gives most numbers.
const PROBE: u64 = 4_000;
/// The sizes of the other probes.
const SIZES: [u64; 6] = [1_000, 2_000, 8_000, 16_000, 32_000, 64_000];

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Short flows under a trace-like load (DRB, Figure 7)",
    description: "Short probe flows go from the first rack to the second. The other servers of these racks load \
                  their links to 92 and 90 % with flows of which 80 % are below 4 KB and 1 % above 50 MB. The \
                  paper's trace is not public, so only the order of schemes is compared. The short form is too \
                  short for the largest flows, and its loads are therefore lower.",
    minutes: [0.2, 10.0, 100.0],
    cells,
    run,
    report,
};

fn cells(_scale: Scale) -> Vec<Cell> {
    Cell::all(NAME, &SCHEMES, &[0.0], &[0.0], 1)
}

/// The start of the measurement, after the warm-up; the end of arrivals; and the end of the simulation.
fn times(scale: Scale) -> [Time; 3] {
    [
        scale.span(100 * MS, SECOND),
        scale.span(300 * MS, 3 * SECOND),
        scale.span(320 * MS, 3 * SECOND + 100 * MS),
    ]
}

/// The mean time between probes of 4 KB, and between others.
const BETWEEN: [Time; 2] = [500 * US, MS];

/// The probes of all sizes except that of [`TraceLike`].
fn others(shape: &Shape, until: Time, seed: u64) -> List {
    let [source, destination] = TraceLike::probed(shape);
    let mut times = stream(seed, "other probes", 0);
    let sizes = SIZES.iter().cycle();
    let flows = poisson(&mut times, BETWEEN[1], until).zip(sizes).map(|(at, &bytes)| {
        (at, NewFlow { source, destination, transport: 0, bytes, tag: TraceLike::PROBE })
    });
    List::new(flows.collect())
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let fabric = Fabric::FatTree;
    let shape = fabric.shape(case.scale, 1);
    let clos = fabric.build(shape, false)?;
    let [from, until, end] = times(case.scale);
    let trace = TraceLike {
        loads: TraceLike::skewed(shape.leaves()),
        rate: 1_000_000_000,
        probe: PROBE,
        between_probes: BETWEEN[0],
        until,
        transport: 0,
    };
    let flows = trace.draw(&shape, case.seed)?;
    let workload = Mix::new(vec![Box::new(flows), Box::new(others(&shape, until, case.seed))]);
    let transport = Tcp::new(tcp(&case.cell.scheme, fabric, case.scale)?);
    let mut simulation =
        Simulation::new(clos, vec![Box::new(transport)], Box::new(workload), case.seed);
    simulation.run(from);
    let before = rack_bytes(simulation.network());
    simulation.run(until);
    let after = rack_bytes(simulation.network());
    simulation.run(end);

    let network = simulation.network();
    let mut outcome = Outcome::of(network)?;
    // In each of these racks, one server sends only probes, or nothing.
    let servers = f64::from(shape.hosts_per_leaf) - 1.0;
    for rack in 0..2 {
        let bits = (after[rack] - before[rack]) as f64 * 8.0;
        let capacity = servers * 1e9 * (until - from) as f64 / SECOND as f64;
        outcome.put(format!("rack{rack}_load"), bits / capacity);
    }
    let mut times = Completion::new();
    let mut probes = Vec::new();
    for flow in network.flows().as_slice().iter().filter(|flow| flow.begun >= from) {
        let is_probe = part(flow.spec.tag) == 1 || flow.spec.tag == TraceLike::PROBE;
        if is_probe {
            let took = flow.delivered.map(|at| at - flow.begun);
            times.record(flow.spec.bytes, took);
            probes.extend(took.filter(|_| flow.spec.bytes == PROBE));
        }
    }
    times.put("", &mut outcome);
    probes.sort_unstable();
    let share = |rank: usize| (rank + 1) as f64 / probes.len() as f64;
    let step = (probes.len() / 200).max(1);
    let dots = probes.iter().enumerate().skip(step - 1).step_by(step);
    let cdf = dots.map(|(rank, &took)| (took as f64 / US as f64, share(rank))).collect();
    outcome.put_series("cdf", cdf);
    Ok(outcome)
}

/// The bytes sent by the servers of each of the first two racks, without the server for probes.
fn rack_bytes(network: &Network) -> [u64; 2] {
    let rack = usize::from(network.fabric().shape().hosts_per_leaf);
    [0, 1].map(|number| {
        let ports = &network.fabric().ports()[number * rack + 1..(number + 1) * rack];
        ports.iter().map(|port| port.stats().bytes).sum()
    })
}

fn report(results: &Results<'_>) -> Part {
    let of = |record: &Record| vec![show::name(&record.cell.scheme)];
    let head = [
        "scheme",
        "mean (us)",
        "p50",
        "p99",
        "maximum",
        "probes",
        "undelivered",
        "load of rack 1",
        "load of rack 2",
    ];
    let values = [
        "mean_us/4000",
        "p50_us/4000",
        "p99_us/4000",
        "max_us/4000",
        "count/4000",
        "undelivered/4000",
        "rack0_load",
        "rack1_load",
    ];
    let cdf = READINGS.map(|(reading, suffix)| {
        let schemes = ["ecmp", "rb", "rrb", "drb"].map(|scheme| format!("{scheme}{suffix}"));
        let records = schemes.iter().flat_map(|scheme| results.at(scheme, 0.0, 0.0)).collect();
        (reading.to_owned(), records)
    });
    Part {
        figures: vec![
            sizes(results).figure(
                format!("{NAME}-sizes"),
                "Mean completion time of probes by size (Figure 7 a).",
            ),
            show::distributions(
                &format!("{NAME}-cdf"),
                "Completion times of probes of 4 KB (Figure 7 b).",
                "completion time (us)",
                "cdf",
                cdf,
            ),
        ],
        tables: vec![table(results, "Probes of 4 KB", &head, of, &values)],
        claims: claims(results),
    }
}

fn sizes(results: &Results<'_>) -> Chart {
    let mut bytes: Vec<u64> = SIZES.into_iter().chain([PROBE]).collect();
    bytes.sort_unstable();
    let kilobytes: Vec<f64> = bytes.iter().map(|&bytes| bytes as f64 / 1e3).collect();
    let panels = READINGS.map(|(reading, suffix)| {
        let series = ["ecmp", "rb", "rrb", "drb"].into_iter().enumerate().map(|(index, scheme)| {
            let dot = |&bytes: &u64| -> Option<(f64, Estimate)> {
                let value = format!("mean_us/{bytes}");
                let took = results.estimate(&format!("{scheme}{suffix}"), 0.0, 0.0, &value)?;
                Some((bytes as f64 / 1e3, took))
            };
            let dots = bytes.iter().filter_map(dot).collect();
            Series { entry: Entry::nth(index, scheme.to_uppercase()), dots }
        });
        Panel {
            title: reading.to_owned(),
            x: "KB".to_owned(),
            across: Across::Values(kilobytes.clone()),
            joined: true,
            series: series.collect(),
        }
    });
    let y = "completion time (us)".to_owned();
    let panels = panels.to_vec();
    Chart { y, up: Axis::Fitting, columns: 2, height: 260.0, panels }
}

fn claims(results: &Results<'_>) -> Vec<Claim> {
    let judged = READINGS.iter().map(|(reading, suffix)| {
        let value = |scheme: &str, name: &str| {
            Some(results.estimate(&format!("{scheme}{suffix}"), 0.0, 0.0, name)?.value)
        };
        let drb = value("drb", "mean_us/4000")?;
        let mut findings = Vec::new();
        for other in ["rb", "rrb"] {
            let ratio = drb / value(other, "mean_us/4000")?;
            findings.push(at_most(
                &format!("mean, DRB / {}", other.to_uppercase()),
                ratio,
                0.95,
                1.0,
            ));
        }
        let worst = value("drb", "max_us/4000")? / value("ecmp", "max_us/4000")?;
        findings.push(at_most("maximum, DRB / ECMP", worst, 0.5, 1.0));
        Judged::new(*reading, findings)
    });
    let claim = Claim::new(
        NAME,
        [
            "Short flows complete fastest with DRB",
            "for 4 KB: 692 us with DRB, 891 us with RB, more with RRB, and up to 20 ms with ECMP",
            "Completion times of 4 KB. Targets: the mean of DRB is at least 5 % below those of RB and RRB, and its \
             maximum is at most half that of ECMP. Partial targets: not above theirs.",
        ],
        judged,
    );
    claim.into_iter().collect()
}
