//! A given list of flows.

use super::Workload;
use crate::engine::Time;
use crate::flow::NewFlow;

/// A list of flows with start times.
#[derive(Clone, Debug)]
pub struct List(std::vec::IntoIter<(Time, NewFlow)>);

impl List {
    /// These flows, sorted by start time.
    pub fn new(mut flows: Vec<(Time, NewFlow)>) -> Self {
        flows.sort_by_key(|&(at, _)| at);
        Self(flows.into_iter())
    }
}

impl Workload for List {
    fn next(&mut self) -> Option<(Time, NewFlow)> {
        self.0.next()
    }
}
