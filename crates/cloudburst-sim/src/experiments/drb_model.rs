//! Figures 3 and 4 of the DRB paper: queues of a Fat-tree by random, round-robin and digit-reversal bouncing.
//!
//! All of it is the model of its Appendix B ([`bouncing`]); what is known exactly ([`closed`]) takes the place
//! of the model where there is such a thing, and at some points the simulator carries the same traffic packet by
//! packet ([`fabric`]). Where the paper gives numbers, they are of the first hop of n = 24.

use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use crate::model::bouncing::{self, Hop, Model};
use crate::model::{Moments, closed, fabric};
use cloudburst_report::Table;
use cloudburst_report::claims::{Claim, Finding, Judged, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Figure, Panel, Series};
use cloudburst_report::numbers::figure;
use std::error::Error;

const NAME: &str = "drb-model";
const RB: &str = "RB";
const RRB: &str = "RRB";
const DRB: &str = "DRB";
/// In the order of [`bouncing::orders`].
const SCHEMES: [&str; 3] = [RB, RRB, DRB];
/// Ports of a switch in Figure 3, and the last of Figure 4.
const PORTS: f64 = 24.0;
/// The load of Figure 4.
const LOAD: f64 = 0.95;
/// The load at which random bouncing has no equilibrium.
const FULL_LOAD: f64 = 1.0;
/// Slots from empty over which random bouncing has the paper's mean: chosen to meet it.
const FROM_EMPTY: u64 = 1_150;
/// The load at which it has the paper's mean in equilibrium: chosen to meet it.
const LOWER_LOAD: f64 = 0.941_5;
/// Slots from empty between which a queue without bound doubles.
const GROWS: [u64; 2] = [1_000, 4_000];

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Queues by the order of paths: DRB's model",
    what: "Permutation traffic in a Fat-tree of n-port switches, in slots: each server sends a packet \
           in a slot with a probability that is the load, by random (RB), round-robin (RRB) or \
           digit-reversal (DRB) bouncing. Lengths are those of Appendix B: packets at a port after \
           those of a slot have arrived, the one in service included.",
    minutes: [0.2, 4.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let loads: &[f64] = scale.of(
        &[0.5, 0.8, 0.9, LOAD, FULL_LOAD],
        &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, LOAD, 0.99, FULL_LOAD],
    );
    let fewer_ports: &[f64] =
        scale.of(&[4.0, 8.0, 16.0], &[4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0]);
    let repetitions = scale.of(1, 3);
    let mut cells = Cell::all(NAME, &SCHEMES, fewer_ports, &[LOAD], repetitions);
    cells.extend(Cell::all(NAME, &SCHEMES, &[PORTS], loads, repetitions));
    cells
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let Cell { scheme, x, load, .. } = case.cell;
    let (load, ports) = (*load, *x as u16);
    let place = SCHEMES.iter().position(|other| other == scheme).ok_or("no such order")?;
    let order = bouncing::orders(ports)?[place];
    let has_equilibrium = scheme != RB || load < FULL_LOAD;
    let mut outcome = match slots_of_fabric(case.scale, ports, load) {
        Some([warm_up, slots]) if has_equilibrium => {
            let run = fabric::queues(ports, order, load, warm_up, slots, case.seed)?;
            let mut outcome = Outcome::of(run.simulation.network());
            for (hop, queues) in run.hops.iter().enumerate() {
                outcome.put(format!("simulated_mean/{}", hop + 1), queues.mean);
                outcome.put(format!("simulated_max/{}", hop + 1), queues.max as f64);
            }
            outcome
        }
        _ => Outcome::default(),
    };
    if has_equilibrium {
        for (hop, number) in Hop::ALL.into_iter().zip(1..) {
            let model = Model { order, ports, load, hop };
            let moments = if scheme == RB && hop == Hop::First {
                closed::random_first_hop(ports, load)
            } else {
                // Claims are judged by the first hop, which is also the quickest.
                let much = if hop == Hop::First { 4 } else { 1 };
                let sampling = model.equilibrium(much * case.scale.of(20_000, 50_000), case.seed);
                let lengths = model.run(sampling)?;
                outcome.put(format!("max/{number}"), lengths.max() as f64);
                lengths.moments()
            };
            outcome.put(format!("mean/{number}"), moments.mean);
            outcome.put(format!("variance/{number}"), moments.variance);
        }
    } else {
        for slots in GROWS {
            let moments = closed::random_first_hop_from_empty(ports, load, slots);
            outcome.put(format!("mean_of_slots/{slots}"), moments.mean);
        }
    }
    if scheme == DRB && load == FULL_LOAD {
        let exact = closed::digit_reversal_first_hop_at_full_load(ports);
        outcome.put("exact_mean/1", Moments::of(exact).mean);
    }
    Ok(outcome)
}

/// For how long the simulator is run as well: slots that are dropped, and that count.
fn slots_of_fabric(scale: Scale, ports: u16, load: f64) -> Option<[u64; 2]> {
    match (scale, ports) {
        (_, 8) if load == LOAD => Some([5_000, 20_000]),
        (Scale::Full, 24) if load == LOAD => Some([1_500, 1_500]),
        (Scale::Full, 24) if load == FULL_LOAD => Some([600, 288]),
        _ => None,
    }
}

fn report(results: &Results<'_>) -> Part {
    let (ports, loads) = (sorted(results.xs()), sorted(results.loads()));
    let figures = vec![
        by_hop(
            results,
            "load",
            (
                "drb-model-load",
                "Mean queue length against the load, n = 24 (the paper's Figure 3).",
            ),
            &loads.iter().map(|&load| (load, PORTS, load)).collect::<Vec<_>>(),
        ),
        by_hop(
            results,
            "ports of a switch",
            ("drb-model-ports", "Mean queue length against n, load 0.95 (the paper's Figure 4)."),
            &ports.iter().map(|&ports| (ports, ports, LOAD)).collect::<Vec<_>>(),
        ),
    ];
    let claims = [first_hop(results), full_load(results), bounded(results), simulator(results)];
    Part {
        figures,
        tables: vec![readings(), table(results)],
        claims: claims.into_iter().flatten().collect(),
    }
}

/// A panel for each hop. Points are their place on the axis, ports and load.
fn by_hop(
    results: &Results<'_>,
    x: &str,
    (stem, caption): (&str, &str),
    points: &[(f64, f64, f64)],
) -> Figure {
    let panel = |hop: usize| {
        let dots = |scheme: &str| {
            let dot = |&(at, ports, load): &(f64, f64, f64)| {
                Some((at, results.estimate(scheme, ports, load, &format!("mean/{hop}"))?))
            };
            points.iter().filter_map(dot).collect()
        };
        let series = SCHEMES.iter().enumerate();
        let series =
            series.map(|(k, &scheme)| Series { entry: Entry::nth(k, scheme), dots: dots(scheme) });
        Panel {
            title: format!("Hop {hop}"),
            x: x.to_owned(),
            across: Across::Measured(Axis::Linear),
            joined: true,
            series: series.collect(),
        }
    };
    let chart = Chart {
        y: "packets".to_owned(),
        up: Axis::Logarithmic,
        columns: 3,
        height: 260.0,
        panels: (1..=3).map(panel).collect(),
    };
    chart.figure(stem, caption)
}

fn table(results: &Results<'_>) -> Table {
    let mut rows = Vec::new();
    for load in sorted(results.loads()) {
        for ports in sorted(results.xs()) {
            for scheme in results.schemes() {
                for hop in 1..=5 {
                    let value = |name: &str| {
                        let value = results.estimate(scheme, ports, load, &format!("{name}/{hop}"));
                        value.map_or("—".to_owned(), |value| figure(value.value))
                    };
                    let names = ["mean", "variance", "max", "simulated_mean", "simulated_max"];
                    let values = names.map(value);
                    if values.iter().all(|value| value == "—") {
                        continue;
                    }
                    let mut row = vec![
                        scheme.to_owned(),
                        ports.to_string(),
                        load.to_string(),
                        hop.to_string(),
                    ];
                    row.extend(values);
                    rows.push(row);
                }
            }
        }
    }
    let head =
        ["order", "n", "load", "hop", "mean", "variance", "longest", "simulator: mean", "longest"];
    Table::new("Queue lengths in the model, and packet by packet in the simulator", &head, rows)
        .folded()
}

/// What the paper's numbers of random bouncing may be.
fn readings() -> Table {
    let ports = PORTS as u16;
    let equilibrium = closed::random_first_hop(ports, LOAD);
    // Without the packet in service: q less the arrivals of the slot, of which W is independent.
    let arrivals = LOAD * (1.0 - LOAD / f64::from(ports / 2));
    let waiting =
        Moments { mean: equilibrium.mean - LOAD, variance: equilibrium.variance - arrivals };
    let rows = [
        ("the paper".to_owned(), Moments { mean: 7.9, variance: 58.0 }),
        ("equilibrium, with the packet in service".to_owned(), equilibrium),
        ("equilibrium, without it".to_owned(), waiting),
        (
            format!("over {FROM_EMPTY} slots from empty (chosen for the mean)"),
            closed::random_first_hop_from_empty(ports, LOAD, FROM_EMPTY),
        ),
        (
            format!("equilibrium at load {LOWER_LOAD} (chosen for the mean)"),
            closed::random_first_hop(ports, LOWER_LOAD),
        ),
    ];
    let row = |(name, of): (String, Moments)| vec![name, figure(of.mean), figure(of.variance)];
    let rows = rows.into_iter().map(row).collect();
    let caption =
        "RB at the first hop, load 0.95, n = 24: readings of the paper's numbers, all exact";
    Table::new(caption, &["reading", "mean", "variance"], rows)
}

/// How near `found` is to what was `expected`.
fn near(what: &str, found: f64, expected: f64) -> Finding {
    let off = (found / expected - 1.0).abs();
    let words = format!("{what} {} ({})", figure(found), figure(expected));
    (Reached::of(off <= 0.02, off <= 0.05), words)
}

fn first_hop(results: &Results<'_>) -> Option<Claim> {
    let value = |scheme: &str, name: &str| Some(results.estimate(scheme, PORTS, LOAD, name)?.value);
    let judge = |scheme: &str, mean: f64, variance: f64| {
        let findings = vec![
            near("mean", value(scheme, "mean/1")?, mean),
            near("variance", value(scheme, "variance/1")?, variance),
        ];
        Judged::new(scheme, findings)
    };
    Claim::new(
        NAME,
        [
            "At load 0.95 and n = 24 the first hop's queues have the means and variances of the paper",
            "means 16.0, 7.9 and 2.2, variances 151, 58 and 1.45 (RRB, RB, DRB; 3.1.3)",
            "Mean and variance in equilibrium are the paper's within 2 %; partly: within 5 %. RB's are exact, and no \
         reading of the model gives the paper's without a number chosen for it: see the table.",
        ],
        [judge(RRB, 16.0, 151.0), judge(RB, 7.9, 58.0), judge(DRB, 2.2, 1.45)],
    )
}

fn full_load(results: &Results<'_>) -> Option<Claim> {
    let value = |name: &str| Some(results.estimate(DRB, PORTS, FULL_LOAD, name)?.value);
    let judge = || {
        let longest =
            results.values(DRB, PORTS, FULL_LOAD, "max/1").into_iter().reduce(f64::max)?;
        let findings = vec![
            near("exact mean", value("exact_mean/1")?, 2.5),
            near("mean of the model", value("mean/1")?, 2.5),
            (
                Reached::of((7.0..=9.0).contains(&longest), longest <= 12.0),
                format!("longest {longest} (8)"),
            ),
        ];
        Judged::new(DRB, findings)
    };
    Claim::new(
        NAME,
        [
            "At load 1 and n = 24 the first hop's queues by DRB are of 2.5 packets, and never of many",
            "mean 2.5, maximum 8 (3.1.3)",
            "The means are the paper's within 2 %, and the longest is 7 to 9; partly: within 5 %, and at most 12, \
         which is possible. The longest depends on how many draws of the servers' beginnings are seen.",
        ],
        [judge()],
    )
}

fn bounded(results: &Results<'_>) -> Option<Claim> {
    let judge = |scheme: &str, bound: usize| {
        let max = results.estimate(scheme, PORTS, FULL_LOAD, "max/1")?.value;
        let finding = format!("longest {} of at most {bound}", figure(max));
        Judged::new(scheme, vec![(Reached::of(max <= bound as f64, false), finding)])
    };
    let grows = || {
        let [short, long] = GROWS.map(|slots| {
            Some(results.estimate(RB, PORTS, FULL_LOAD, &format!("mean_of_slots/{slots}"))?.value)
        });
        let ratio = long? / short?;
        let finding = format!("{} times as long over 4,000 slots as over 1,000", figure(ratio));
        Judged::new(RB, vec![(Reached::of((1.8..2.2).contains(&ratio), ratio > 1.2), finding)])
    };
    Claim::new(
        NAME,
        [
            "At load 1 queues are bounded by RRB and DRB, and not by RB",
            "bounded (3.1.3); RRB: n/2 (n/2 - 1) = 132 packets wait at most (3.1.2)",
            "RRB, DRB: the longest is within its bound of n/2 (n/2 - 1) + 1 or n/2. RB: over four times the time \
         the mean doubles, as without bound; partly: it grows.",
        ],
        [
            judge(RRB, closed::longest_of_round_robin(PORTS as u16)),
            grows(),
            judge(DRB, closed::longest_of_digit_reversal(PORTS as u16)),
        ],
    )
}

fn simulator(results: &Results<'_>) -> Option<Claim> {
    let judged = SCHEMES.map(|scheme| {
        let mut findings = Vec::new();
        for (ports, load) in [(8.0, LOAD), (PORTS, LOAD), (PORTS, FULL_LOAD)] {
            let value = |name: &str| Some(results.estimate(scheme, ports, load, name)?.value);
            let model = value("exact_mean/1").or_else(|| value("mean/1"));
            if let (Some(simulated), Some(model)) = (value("simulated_mean/1"), model) {
                findings.push(near(&format!("n = {ports}, load {load}:"), simulated, model));
            }
        }
        Judged::new(scheme, findings)
    });
    Claim::new(
        NAME,
        [
            "The simulator's queues at the first hop are those of the model",
            "arithmetic",
            "The mean, by Little's law from the time that packets wait, is the model's within 2 %; partly: \
         within 5 %. One run of n = 24 has a standard error of 2 % for RRB and of 1 % for RB.",
        ],
        judged,
    )
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}
