//! Workloads: the sources, destinations, sizes and start times of flows.
//!
//! | file | workload | source |
//! |---|---|---|
//! | [`Requests`] | Poisson requests, each answered by a response | INFOCOM 2022, V |
//! | [`Background`] | long flows, back to back | INFOCOM 2022, V |
//! | [`permutation`], [`incast`] | permutation traffic, and incast | CoNEXT 2013, 5.1; INFOCOM 2022, V-C |
//! | [`Arrivals`] | Poisson flow arrivals with sizes from a distribution, at a given load | pFabric, SIGCOMM 2013 |
//! | [`TraceLike`] | heavy-tailed flows from busy and idle racks | CoNEXT 2013, 5.2 |
//! | [`List`], [`Mix`] | given flows; several workloads at once | |
//!
//! Everything random is drawn from a seed, with a separate stream for each host, and before the simulation starts
//! where possible. So the same flows start at the same times whatever the transport.

mod arrivals;
mod background;
mod bulk;
mod draw;
mod list;
mod mix;
mod requests;
mod sizes;
mod trace_like;

pub use arrivals::{Arrivals, mean_between};
pub use background::Background;
pub use bulk::{derangement, incast, permutation};
pub(crate) use draw::fraction;
pub use draw::{chance, exponential, poisson, stream};
pub use list::List;
pub(crate) use mix::own_tag;
pub use mix::{Mix, part};
pub use requests::{Completed, Peers, RESPONSES, Request, RequestConfig, Requests};
pub use sizes::Sizes;
pub use trace_like::TraceLike;

use crate::engine::Time;
use crate::flow::{Flow, NewFlow};

/// A source of flows.
pub trait Workload {
    /// The next scheduled flow, not before the previous one. `None`: there are no more.
    fn next(&mut self) -> Option<(Time, NewFlow)>;

    /// Called when a flow has been delivered. Returns a flow to start now, such as the response to a request.
    fn on_delivered(&mut self, _now: Time, _flow: &Flow) -> Option<NewFlow> {
        None
    }
}

/// An invalid workload: an error of the caller.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("workload: {field}: got {value}, expected {expected}")]
pub struct WorkloadError {
    /// The invalid field.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// The values that it may have.
    pub expected: &'static str,
}

pub(crate) fn refuse<T>(
    field: &'static str,
    value: f64,
    expected: &'static str,
) -> Result<T, WorkloadError> {
    Err(WorkloadError { field, value, expected })
}
