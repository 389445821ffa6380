//! A packet-level simulator of data centre fabrics.
//!
//! ```text
//!   workload ──▶ flows ──▶ transport ──▶ network ──▶ transport ──▶ delivered
//!                                          │  ▲
//!                                          ▼  │ ports, links, queues
//!                                         fabric
//! ```
//!
//! | module | role |
//! |---|---|
//! | [`engine`] | time in picoseconds, 64-byte packet records, the calendar queue of events |
//! | [`fabric`] | Clos topologies, ports and routing by arithmetic |
//! | [`queue`] | queue disciplines: a file for each |
//! | [`transport`] | transport protocols: a file or folder for each |
//! | [`scheme`] | transports by name, with their queue disciplines |
//! | [`workload`] | flows: sources, destinations, sizes and start times |
//! | [`measure`] | distributions of packet delays |
//! | [`trace`] | packet traces, as text and pcapng |
//! | [`model`] | slotted-time and closed-form queue models that validate the simulator |
//! | [`experiment`] | the framework of experiments: cells, threads, results, shards, reports |
//! | [`experiments`] | the experiments: a file for each |
//! | [`cli`] | `cbrst-sim` |
//!
//! Packets carry no bytes unless their transport needs them. A packet causes one event per hop, and a second one
//! at ports with a queue other than drop-tail. The same seed gives the same events on every machine: times are
//! whole picoseconds, and logarithms are `libm`'s.

#![forbid(unsafe_code)]

pub mod cli;
pub mod engine;
pub mod experiment;
pub mod experiments;
pub mod fabric;
mod flow;
pub mod measure;
pub mod model;
mod network;
pub mod queue;
pub mod scheme;
mod simulation;
pub mod trace;
pub mod transport;
mod wire;
pub mod workload;

pub use flow::{Flow, Flows, NewFlow};
pub use network::{Network, Refusal};
pub use simulation::Simulation;
