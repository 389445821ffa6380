//! The paths of an endpoint: path maps, applied to its sockets.
//!
//! | file | role |
//! |---|---|
//! | `current` | the path map in use, which can be replaced |
//! | `resolve` | resolves a path map to the egresses of the endpoint |
//! | `addresses` | the addresses at which peers may reach the endpoint |
//! | `watch` | watches a path map file while the endpoint runs |

mod addresses;
mod current;
mod resolve;
mod watch;

pub(crate) use addresses::Addresses;
pub(crate) use current::Paths;
pub(crate) use resolve::Resolver;
