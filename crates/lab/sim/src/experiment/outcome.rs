//! The outcome of a cell, and its line in `cells.jsonl`.

use super::Cell;
use crate::{Network, Refusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Values by name; infinity is `null` in JSON.
    #[serde(with = "numbers")]
    pub values: BTreeMap<String, f64>,
    /// Curves by name: finite x and y.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
    /// The trace hash, in hexadecimal digits.
    pub trace: String,
    /// The number of events.
    pub events: u64,
}

impl Outcome {
    /// Creates an outcome with the trace hash and the number of events of a finished simulation.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a transport refused a message or a session.
    pub fn of(network: &Network) -> Result<Self, Refusal> {
        // A refused flow is never delivered, and would count as a loss of the network.
        if let Some(refusal) = network.refusal() {
            return Err(refusal.clone());
        }
        let trace = format!("{:016x}", network.hash());
        Ok(Self { trace, events: network.events(), ..Self::default() })
    }

    /// Adds a value.
    pub fn put(&mut self, name: impl Into<String>, value: f64) {
        let name = name.into();
        debug_assert!(!value.is_nan(), "{name} is not a number");
        self.values.insert(name, value);
    }

    /// Adds a curve.
    pub fn put_series(&mut self, name: impl Into<String>, series: Vec<(f64, f64)>) {
        self.series.insert(name.into(), series);
    }
}

/// A finished cell: a line of `cells.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// Its results.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Serializes infinite values as `null`, because JSON has no infinity.
mod numbers {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(
        values: &BTreeMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let finite = |value: f64| value.is_finite().then_some(value);
        let values: BTreeMap<_, _> = values.iter().map(|(name, &v)| (name, finite(v))).collect();
        values.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, f64>, D::Error> {
        let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
        let any = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
        Ok(values.into_iter().map(|(name, value)| (name, any(value))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_round_trips_through_one_line() {
        let mut outcome = Outcome { trace: "00ff".to_owned(), events: 7, ..Outcome::default() };
        // Its shortest decimal form needs all of its digits.
        outcome.put("a", 0.1 + 0.2);
        outcome.put("never", f64::INFINITY);
        outcome.put_series("curve", vec![(1.0, 0.5), (2.0, 1.0 / 3.0)]);
        let cell = Cell::all("e", &["s"], &[0.1], &[0.0], 1).remove(0);
        let record = Record { cell, outcome };
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(
            line,
            "{\"experiment\":\"e\",\"scheme\":\"s\",\"x\":0.1,\"load\":0.0,\"repetition\":0,\
             \"values\":{\"a\":0.30000000000000004,\"never\":null},\
             \"series\":{\"curve\":[[1.0,0.5],[2.0,0.3333333333333333]]},\
             \"trace\":\"00ff\",\"events\":7}"
        );
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }
}
