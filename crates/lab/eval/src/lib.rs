//! The paper's evaluation (section V), with real transports over real sockets.
//!
//! ```text
//!   cli --> evaluate --> experiment: schemes and points       workload: requests and their times
//!              |              |                                   |
//!              +--> trial <---+-----------------------------------+
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
//! A *trial* is one measurement of one scheme at one point. Trials of all schemes at a point have
//! the same requests at the same times. Their order is drawn anew for each repetition, so that drift
//! over time affects all schemes alike.
//!
//! Requests are sent when they are due, whether or not earlier ones have completed (an open loop). A
//! message's completion time counts from then, so a transport that falls behind cannot hide it.
//!
//! # What each scheme gets
//!
//! | scheme | queue | settings |
//! |---|---|---|
//! | TCP, replicated TCP | the default queue, shared with the background | an RTO of at least 10 ms, windows that stay open when idle, persistent connections |
//! | `tcp-short` | a queue as deep as the default one, with 8 times its weight | the same |
//! | PIAS | a queue as deep as the default one, with 100 times its weight in place of strict priority | the same |
//! | MPTCP | as `tcp-short` | the same; a subflow for each path |
//! | QUIC | as `tcp-short` | a maximum acknowledgement delay of 1 ms |
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
mod trial;
mod workload;

pub use cli::main;
pub use error::Failure;
pub use record::{About, Message, Run, Trial};
pub use report::report;
