//! The paper's evaluation (section V), with real transports over real sockets.
//!
//! ```text
//!   cli --> evaluate --> experiment: schemes and points       workload: who asks whom, and when
//!              |              |                                   |
//!              +--> turn <----+-----------------------------------+
//!              |      |  Listen, Connect, Run, Stop
//!              |      v
//!              |    site: agents as threads in namespaces, or on the hosts of a cluster
//!              |      |
//!              |      v
//!              |    agent: transport (TCP, MPTCP, QUIC, Cloudburst) and background, on each host
//!              v
//!            record: run.json --> report: tables, figures, claims, a page
//! ```
//!
//! A *trial* is one scheme at one point, once. Trials of all schemes at a point have the same
//! requests at the same times, and follow each other in an order drawn anew for each repetition, so
//! that what drifts with time touches all alike.
//!
//! Requests come when they are due, whatever has become of those before them (an open loop), and a
//! message's time counts from then: a transport that falls behind cannot hide it.
//!
//! # What each scheme gets
//!
//! | scheme | queue on the way | settings |
//! |---|---|---|
//! | TCP, replicated TCP | the default queue, with the background | retransmission timeouts of 10 ms and more, windows that stay open when idle, connections kept |
//! | `tcp-short` | a queue as deep as the default one, with 8 times its weight | the same |
//! | PIAS | a queue as deep as the default one, which comes first (weight 100 to 1) | the same |
//! | MPTCP | as `tcp-short` | the same; a subflow for each path |
//! | QUIC | as `tcp-short` | acknowledgements after 1 ms at most |
//! | Cloudburst A, B | as `tcp-short` | the library's defaults |
//! | Cloudburst C, D | the tiny queue, with 8 times the weight of the default one | the library's defaults |

mod agent;
mod background;
mod cli;
mod error;
mod evaluate;
mod experiment;
mod processors;
mod record;
mod report;
mod scheme;
mod site;
mod transport;
mod turn;
mod workload;

pub use cli::main;
pub use error::Failure;
pub use record::{About, Message, Run, Trial};
pub use report::report;
