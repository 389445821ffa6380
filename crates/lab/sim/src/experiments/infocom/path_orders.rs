//! Orders of paths in fabrics where some spines are slow, lose packets or are dead.

use super::design_choices::testbed_traffic;
use super::setup::Setup;
use super::show;
use super::site::TESTBED;
use super::traffic;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use crate::fabric::{Clos, Link};
use cloudburst_netem::Loss;
use std::error::Error;

const NAME: &str = "path-orders";
const LOAD: f64 = 2_000.0;
const SCHEMES: [&str; 6] = [
    "d-ours",
    "d-ours-rb",
    "d-ours-recycled",
    "d-ours-hashed",
    "d-ours-recycled-hashed",
    "d-ours-known",
];

/// The faults of the four spines, by the x of cells. The last spine always works.
const SPINES: [(&str, Change); 5] = [
    ("all equal", |_, _| Ok(())),
    ("one at 100 Mb/s", |fabric, _| {
        let link = Link { rate: 100_000_000, ..TESTBED.core };
        ports(fabric, 0).into_iter().try_for_each(|port| Ok(fabric.set_link(port, link)?))
    }),
    ("one loses 5 %", |fabric, seed| {
        let mut ports = ports(fabric, 0).into_iter().zip(seed..);
        ports.try_for_each(|(port, seed)| {
            Ok(fabric.set_loss(port, Loss::Independent(0.05), seed)?)
        })
    }),
    ("one dead", |fabric, _| kill(fabric, 1)),
    ("three dead", |fabric, _| kill(fabric, 3)),
];

type Change = fn(&mut Clos, u64) -> Changed;
type Changed = Result<(), Box<dyn Error + Send + Sync>>;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Orders of paths where spines differ",
    description: "Requests on the paper's testbed without background traffic. Paths are used in round robin (which \
           equals digit reversal in a leaf-spine fabric), at random, or again if packets on them arrived (REPS). \
           They are explicit, chosen by ECMP from 16 source ports, or only the one over the last spine, as if \
           hosts knew that it works.",
    minutes: [0.5, 4.0, 30.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let points: Vec<f64> = (0..SPINES.len()).map(|point| point as f64).collect();
    Cell::all(NAME, &SCHEMES, &points, &[LOAD], scale.of(1, 5))
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let scheme = Setup::named(&case.cell.scheme)?;
    let traffic = traffic::Traffic { background: 0..0, ..testbed_traffic(LOAD, case.scale) };
    let (_, change) = SPINES[case.cell.x as usize];
    let mut changed = Ok(());
    let outcome = traffic::run(&TESTBED, scheme, &traffic, case.seed, |fabric| {
        changed = change(fabric, case.seed);
    });
    changed.and(outcome)
}

/// The ports to and from a spine.
fn ports(fabric: &Clos, spine: usize) -> Vec<usize> {
    let leaves = 0..fabric.shape().leaves();
    leaves.flat_map(|leaf| [fabric.up_port(leaf, spine), fabric.down_port(spine, leaf)]).collect()
}

fn kill(fabric: &mut Clos, dead: usize) -> Changed {
    for spine in 0..dead {
        ports(fabric, spine).into_iter().for_each(|port| fabric.set_up(port, false));
    }
    Ok(())
}

fn report(results: &Results<'_>) -> Part {
    let point = |((what, _), x): (&(&str, _), u8)| ((*what).to_owned(), f64::from(x), LOAD);
    let points: Vec<_> = SPINES.iter().zip(0..).map(point).collect();
    let mut part = Part::default();
    part.tables.push(show::table(results, "p99 (us)", "p99_us", &points));
    part.tables.push(show::table(results, "Mean (us)", "mean_us", &points).folded());
    part.tables
        .push(show::table(results, "Packets sent per packet needed", "sent", &points).folded());
    part.tables.push(show::table(results, "Undelivered messages", "undelivered", &points).folded());
    part
}
