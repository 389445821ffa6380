//! The state machines, driven in virtual time over emulated links.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod accounts;
mod addresses;
mod aeolus;
mod allocations;
mod blackhole;
mod classes;
mod common;
mod connect;
mod copies;
mod dead_peers;
mod delivery;
mod disorder;
mod eavesdropper;
mod ending;
mod few_ways;
mod forgetful;
mod haunting;
mod health;
mod liars;
mod loss;
mod malformed;
mod many;
mod memory;
mod mixed_trains;
mod on_path;
mod path_maps;
mod piggyback;
mod pool;
mod priority;
mod quotas;
mod receipt;
mod receiver;
mod restart;
mod roles;
mod shards;
mod silence;
mod slow_application;
mod stale;
mod star;
mod stop;
mod tiny_queues;
mod trains;
mod unconfirmed;
