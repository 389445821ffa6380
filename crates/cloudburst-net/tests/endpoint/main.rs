//! Endpoints over loopback sockets.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod back_pressure;
mod call_many;
mod calls;
mod cancel;
mod closed_ports;
#[path = "../common/mod.rs"]
mod common;
mod connect;
mod deadlines;
mod dropped_futures;
mod failures;
mod faults;
mod filters;
mod given_sockets;
mod keys;
mod marks;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
mod panics;
mod paths;
mod qlog;
mod reactor;
mod received_marks;
mod round_trip;
mod runtimes;
mod selective;
mod serve;
mod settings;
mod shards;
mod shutdown;
mod sockets;
mod source_addresses;
mod statistics;
mod streams;
#[cfg(feature = "tower")]
mod tower;
