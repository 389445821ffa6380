//! Which symbol takes which path, and when. Knows no sockets and no packets.
//!
//! A path is a number; a [`PathMap`] says how a packet gets onto it. [`PathSet`] keeps the paths to
//! one peer, visits them in an [`Order`] and counts; [`Pacer`] spaces what is sent on them as
//! Algorithm 1 says. Endpoints that pull over one link share a [`Downlink`].
//!
//! # Orders
//!
//! All orders but one are those of the DRB paper (section 3.1.2). In a Fat-tree of four ports, where paths
//! 0 and 1 share the uplink A of the sender's TOR, and 2 and 3 its uplink B:
//!
//! ```text
//!               paths              uplinks
//!   rrb         0 1 2 3 0 1 2 3    A A B B A A B B
//!   drb:2x2     0 2 1 3 0 2 1 3    A B A B A B A B
//!   rb          drawn              drawn
//!   recycled    those that delivered, else drawn
//! ```
//!
//! Digit reversal counts trains in a number system with a digit for each layer of switches. The
//! digit that changes with every train chooses the uplink of the TOR, the next digit that of the
//! switch above. Each link of layer i is thus used exactly once in f1 f2 ... fi trains (Theorem 2),
//! where fj is the number of uplinks at layer j, from any start. It must know how the paths share
//! links, which is a [`Shape`]; where they share none below the spines, as in a leaf-spine, it is
//! round robin.
//!
//! [`Order::Recycled`] is that of REPS (arXiv 2407.21625): a path that delivered a train gets
//! another one; if there is no such path, one is drawn at random.
//!
//! The unit is a packet train: these distances are between trains, and between packets only if
//! `Config::train` is 1.
//!
//! # Trains
//!
//! How many packets a path takes back to back is learned: four at first, twice as many each time that
//! enough packets have arrived in trains of the present length, fewer when packets go missing. See
//! `path/train.rs`.
//!
//! # Rate
//!
//! The rate is the configured one, unless a lower one loses less on every path to every peer: then
//! the link of this host is slower than configured. See `path/limit.rs`.
//!
//! # Health
//!
//! A path whose packets go missing while those sent later on others arrive is *degraded*: most of
//! its trains go to the next path in the order, and a single packet probes it now and then. The
//! first packet that is known to have arrived on it restores it. See [`PathSet`].

mod alias;
mod downlink;
mod limit;
mod map;
mod order;
mod pacer;
mod recycled;
mod sequence;
mod set;
mod shape;
mod train;

pub use alias::is_alias;
pub(crate) use alias::{address_of, alias};
pub use downlink::Downlink;
pub(crate) use downlink::Share;
pub(crate) use limit::RateLimit;
pub use map::{Egresses, Naming, PathMap, Via};
pub use order::{Order, OrderError};
pub use pacer::Pacer;
pub use sequence::Sequence;
pub use set::{Opportunity, PathSet, PathStats};
pub use shape::{MAX_SHAPE_PATHS, Shape, ShapeError};
pub(crate) use train::SHORTEST_TRAIN;
