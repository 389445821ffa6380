//! Switches, links and ports, and routing.

mod clos;
mod names;
mod port;
mod shape;

pub use clos::Clos;
pub use port::{Port, PortStats};
pub use shape::{Link, Shape, TopologyError};
