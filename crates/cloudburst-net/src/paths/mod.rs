//! The paths of an endpoint: path maps, applied to its sockets.
//!
//! | file | role |
//! |---|---|
//! | `resolve` | resolves a path map to the egresses of the endpoint |
//! | `addresses` | the addresses at which peers may reach the endpoint |
//! | `watch` | watches a path map file while the endpoint runs |

mod addresses;
mod resolve;
mod watch;

pub(crate) use addresses::{Addresses, reaches};
pub(crate) use resolve::Usable;
pub(crate) use watch::Watch;
