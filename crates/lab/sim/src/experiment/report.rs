//! The report of a run.

use super::store::{self, Run};
use super::{Experiment, Failure, Record, Results};
use crate::experiments::ALL;
use cloudburst_report::claims::Claim;
use cloudburst_report::figures::Figure;
use cloudburst_report::{Report, Section, Table, write_csv};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An experiment's part of the report.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Figures, whose stems are unique in the report.
    pub figures: Vec<Figure>,
    /// Tables below the figures.
    pub tables: Vec<Table>,
    /// Claims, judged by stated rules.
    pub claims: Vec<Claim>,
}

/// Writes `index.html`, `tables.md`, `claims.md`, `figures/` and `values.csv` of the cells in `directory`. Returns the
/// path of the page.
///
/// # Errors
///
/// If the directory has no run, or a file cannot be written.
pub fn report(directory: &Path) -> Result<PathBuf, Failure> {
    let (run, records) = store::read(directory)?;
    let cells = run.cells();
    let missing = cells.iter().filter(|cell| !records.contains_key(&cell.to_string())).count();
    let lacks = match missing {
        0 => Vec::new(),
        _ => vec![format!("{missing} of {} cells have not been run yet.", cells.len())],
    };
    let mut claims = Vec::new();
    let mut sections = Vec::new();
    for experiment in &ALL {
        let results = Results { records: ordered(experiment, &run, &records), scale: run.scale };
        if results.records.is_empty() {
            continue;
        }
        let part = (experiment.report)(&results);
        claims.extend(part.claims);
        sections.push(Section {
            name: experiment.name.to_owned(),
            title: experiment.title.to_owned(),
            description: experiment.description.to_owned(),
            figures: part.figures,
            tables: part.tables,
        });
    }
    let events: u64 = records.values().map(|record| record.outcome.events).sum();
    let facts = [
        ("Version", run.version.clone()),
        ("Command", run.command.clone()),
        ("Seed", run.seed.to_string()),
        ("Scale", run.scale.to_string()),
        ("Cells", records.len().to_string()),
        ("Events", events.to_string()),
    ];
    let report = Report {
        title: "Cloudburst, simulated",
        heading: "Cloudburst, simulated",
        lead: "The papers' experiments, and some of our own, in a packet-level simulator. \
               All times are simulated.",
        date: run.date.clone(),
        empty: "No cell has been run.".to_owned(),
        facts: facts.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        lacks,
        notes: vec![
            "Quantiles are by nearest rank over the messages of a cell. With several repetitions, \
             a value is their mean, with a 95 % Student's t interval."
                .to_owned(),
            "The same version, seed and scale give the same values on every machine.".to_owned(),
        ],
        how: "A claim holds if all of its findings reach their targets. It does not hold here if \
              none reaches even its partial target. Otherwise it holds partly."
            .to_owned(),
        claims,
        sections,
    };
    report.write(directory)?;
    write_csv(&directory.join("values.csv"), records.values().flat_map(rows))?;
    Ok(directory.join("index.html"))
}

/// The records of an experiment in the order of its cells.
fn ordered<'a>(
    experiment: &Experiment,
    run: &Run,
    records: &'a BTreeMap<String, Record>,
) -> Vec<&'a Record> {
    let cells = (experiment.cells)(run.scale);
    cells.iter().filter_map(|cell| records.get(&cell.to_string())).collect()
}

#[derive(Serialize)]
struct Row<'a> {
    experiment: &'a str,
    scheme: &'a str,
    x: f64,
    load: f64,
    repetition: u32,
    name: &'a str,
    value: f64,
}

fn rows(record: &Record) -> impl Iterator<Item = Row<'_>> {
    let cell = &record.cell;
    record.outcome.values.iter().map(|(name, &value)| Row {
        experiment: &cell.experiment,
        scheme: &cell.scheme,
        x: cell.x,
        load: cell.load,
        repetition: cell.repetition,
        name,
        value,
    })
}
