//! Endpoints over loopback sockets.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod accounts;
mod addressed;
mod arrivals;
mod back_pressure;
mod call_many;
mod calls;
mod cancel;

#[path = "../common/mod.rs"]
mod common;
mod connect;
mod deadlines;
mod dropped;
mod failures;
mod faults;
mod given_sockets;
mod marks;
#[cfg(feature = "metrics")]
mod metrics;
mod panics;
mod paths;
mod qlog;
mod reactor;
mod round_trip;
mod runtimes;
mod selective;
mod serve;
mod settings;
mod shards;
mod shutdown;
mod sockets;
mod streams;
#[cfg(feature = "tower")]
mod tower;
