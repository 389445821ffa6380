//! The results of an experiment, for its report.

use super::{Record, Scale};
use cloudburst_report::statistics::Estimate;

/// The finished cells of an experiment.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// The records in the order of cells.
    pub records: Vec<&'a Record>,
    /// How much was simulated.
    pub scale: Scale,
}

impl<'a> Results<'a> {
    /// All schemes, in the order of their cells.
    pub fn schemes(&self) -> Vec<&'a str> {
        distinct(self.records.iter().map(|record| record.cell.scheme.as_str()))
    }

    /// All values of x, in the order of their cells.
    pub fn xs(&self) -> Vec<f64> {
        distinct(self.records.iter().map(|record| record.cell.x))
    }

    /// All loads, in the order of their cells.
    pub fn loads(&self) -> Vec<f64> {
        distinct(self.records.iter().map(|record| record.cell.load))
    }

    /// The repetitions of a scheme at a point.
    pub fn at(&self, scheme: &str, x: f64, load: f64) -> impl Iterator<Item = &'a Record> {
        let is_here = move |record: &&&Record| {
            let cell = &record.cell;
            cell.scheme == scheme && cell.x == x && cell.load == load
        };
        self.records.iter().filter(is_here).copied()
    }

    /// The value `name` of a scheme at a point in each repetition.
    pub fn values(&self, scheme: &str, x: f64, load: f64, name: &str) -> Vec<f64> {
        let records = self.at(scheme, x, load);
        records.filter_map(|record| record.outcome.values.get(name).copied()).collect()
    }

    /// The mean of a value over repetitions, with Student's t interval. Infinite if the value is infinite in any
    /// repetition.
    pub fn estimate(&self, scheme: &str, x: f64, load: f64, name: &str) -> Option<Estimate> {
        let values = self.values(scheme, x, load, name);
        if values.iter().any(|value| value.is_infinite()) {
            return Some(Estimate::exact(f64::INFINITY));
        }
        Estimate::mean_of(&values)
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for each in all {
        if !once.contains(&each) {
            once.push(each);
        }
    }
    once
}
