//! The framework of experiments: it defines them, and runs, stores and reports their cells.
//!
//! ```text
//!   Experiment ──▶ cells ──▶ sweep, on many threads ──▶ store: DIR/cells.jsonl
//!                                                          │  a line for each finished cell
//!                                     merge of shards ──▶  ▼
//!                                                       report: DIR/index.html
//! ```
//!
//! A *cell* is one repetition of one scheme at one point. Its result depends only on the seed and the scale of the
//! run, not on threads, shards or earlier cells. All schemes and points of a repetition share a seed, so that they
//! carry the same flows.

mod completion;
mod failure;
mod merge;
mod outcome;
mod report;
mod results;
mod store;
mod sweep;

pub use completion::Completion;
pub use failure::Failure;
pub use merge::merge;
pub use outcome::{Outcome, Record};
pub use report::{Part, report};
pub use results::Results;
pub use store::{Run, Store, Wanted};
pub use sweep::{Todo, sweep};

use crate::engine::Time;
use cloudburst_workload::draw::stream;
use core::fmt;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// An experiment. Each is defined in a file of its own in [`experiments`](crate::experiments).
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name on the command line, and the stem of its figures.
    pub name: &'static str,
    /// Its title in reports.
    pub title: &'static str,
    /// A description, in complete sentences.
    pub description: &'static str,
    /// The approximate CPU time in minutes: short, medium, full.
    pub minutes: [f64; 3],
    /// Lists all cells.
    pub cells: fn(Scale) -> Vec<Cell>,
    /// Runs a cell.
    pub run: fn(&Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>>,
    /// Presents and judges the results. Cells may be missing.
    pub report: fn(&Results<'_>) -> Part,
}

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Fewer points, shorter times and fewer repetitions: about a minute per experiment.
    Short,
    /// The papers' points and repetitions, for a tenth of the simulated time.
    Medium,
    /// The papers' points, times and repetitions.
    Full,
}

impl Scale {
    /// Returns `short` at the short scale, and `full` at the others.
    pub fn of<T>(self, short: T, full: T) -> T {
        match self {
            Self::Short => short,
            Self::Medium | Self::Full => full,
        }
    }

    /// Returns the time to simulate: `short`, a tenth of `full`, or `full`.
    pub fn span(self, short: Time, full: Time) -> Time {
        match self {
            Self::Short => short,
            Self::Medium => full / 10,
            Self::Full => full,
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "short",
            Self::Medium => "medium",
            Self::Full => "full",
        })
    }
}

/// One repetition of one scheme at one point of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment's name.
    pub experiment: String,
    /// The name of the scheme: a transport with its settings.
    pub scheme: String,
    /// The parameter that the experiment varies.
    pub x: f64,
    /// The load in the experiment's unit; 0 if it has none.
    pub load: f64,
    /// The number of the repetition, from 0.
    pub repetition: u32,
}

impl Cell {
    /// Returns a cell for each combination of scheme, x and load, in each of `repetitions`.
    pub fn all(
        experiment: &str,
        schemes: &[&str],
        xs: &[f64],
        loads: &[f64],
        repetitions: u32,
    ) -> Vec<Self> {
        let mut cells = Vec::new();
        for repetition in 0..repetitions {
            for &load in loads {
                for &x in xs {
                    cells.extend(schemes.iter().map(|&scheme| Self {
                        experiment: experiment.to_owned(),
                        scheme: scheme.to_owned(),
                        x,
                        load,
                        repetition,
                    }));
                }
            }
        }
        cells
    }
}

/// The unique name of the cell.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { experiment, scheme, x, load, repetition } = self;
        write!(f, "{experiment}/{scheme}/x={x}/load={load}/{repetition}")
    }
}

/// A cell to run, with its seed.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// How much to simulate.
    pub scale: Scale,
    /// The seed of all random numbers, the same for all cells of a repetition.
    pub seed: u64,
}

impl<'a> Case<'a> {
    /// Creates the case of a cell, with a seed derived from that of its run.
    pub fn new(cell: &'a Cell, scale: Scale, seed: u64) -> Self {
        let seed = stream(seed, &cell.experiment, cell.repetition.into()).next_u64();
        Self { cell, scale, seed }
    }
}
