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
//! Draws, distributions of sizes and the requests themselves are those of `cloudburst_workload`, which the evaluation
//! on real networks uses as well. Everything random is drawn from a seed, with a separate stream for each host, and
//! before the simulation starts where possible. So the same flows start at the same times whatever the transport.

mod arrivals;
mod background;
mod bulk;
mod list;
mod mix;
mod requests;
mod trace_like;

pub use arrivals::{Arrivals, mean_between};
pub use background::Background;
pub use bulk::{derangement, incast, permutation};
pub use list::List;
pub(crate) use mix::own_tag;
pub use mix::{Mix, part};
pub use requests::{Completed, RequestConfig, Requests};
pub use trace_like::TraceLike;

pub use cloudburst_workload::{Peers, Request, Sizes, WorkloadError};

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
