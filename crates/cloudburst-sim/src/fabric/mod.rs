//! Switches, links and ports, and routing.

mod clos;
mod port;

pub use clos::{Clos, Link, Shape, TopologyError};
pub use port::{Port, PortStats};
