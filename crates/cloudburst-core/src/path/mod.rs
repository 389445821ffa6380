//! Chooses the path of each packet, without sockets or packets.
//!
//! A path is a number; a [`PathResolver`] defines how a packet reaches it. [`PathSet`] keeps the paths to
//! one peer, visits them in an [`Order`] and keeps their counts. When packets may be sent is decided in
//! [`rate`](crate::rate).
//!
//! # Orders
//!
//! All orders but one are those of the DRB paper (section 3.1.2). In a Fat-tree of 4-port switches, where
//! paths 0 and 1 share uplink A of the sender's TOR, and 2 and 3 its uplink B:
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
//! switch above. From any start, each link of layer i is thus used exactly once in f1 f2 ... fi
//! trains (Theorem 2), where fj is the number of uplinks at layer j. A [`Shape`] describes how the
//! paths share links; where they share none below the spines, as in a leaf-spine, digit reversal is
//! round robin.
//!
//! [`Order::Recycled`] is the order of REPS (arXiv 2407.21625): a path that delivered a train gets
//! another one; if there is no such path, one is drawn at random.
//!
//! The unit is a packet train: these distances are between trains, and between packets only if
//! `Tuning::train` is 1.
//!
//! # Trains
//!
//! The number of packets that a path carries back to back is learned: four at first, doubled each time
//! enough packets have arrived in trains of the current length, reduced when packets go missing. See
//! `path/train.rs`.
//!
//! # Health
//!
//! A path whose packets go missing while packets sent later on other paths arrive is *degraded*: most
//! of its trains go to the next path in the order, and single packets probe it from time to time. The
//! first packet that is known to have arrived on it restores it. See [`PathSet`].

mod map;
mod order;
mod recycled;
mod sequence;
mod set;
mod shape;
mod train;

pub use map::{Egresses, PathResolver, Via};
pub use order::{Order, OrderError};
pub use sequence::Sequence;
pub(crate) use set::{MAX_LEVELS, PathReport};
pub use set::{Opportunity, PathSet, PathStats};
pub use shape::{MAX_SHAPE_PATHS, Shape, ShapeError};
pub(crate) use train::{MAX_TRAIN, SHORTEST_TRAIN};
