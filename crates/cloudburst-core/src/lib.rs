//! Cloudburst without sockets: a transport for short messages whose tail latency matters.
//!
//! A message is cut into blocks of at most 128 source symbols and fountain-coded; its symbols
//! are sprayed over many paths and sent in bursts until the receiver answers STOP (*Cutting Tail
//! Latency in Commodity Datacenters with Cloudburst*, INFOCOM 2022). This crate holds every part
//! that needs neither a socket nor a clock:
//!
//! ```text
//!   code/               path/               rate/               wire/
//!   bytes <-> symbols   where a packet      when a packet       values <-> bytes
//!                       goes                may be sent         of packets
//!         \                  \                   /                  /
//!          proto/: Transceiver and its state machines, without I/O
//!                                    |
//!          burst/: who drives them over a PacketIo
//! ```
//!
//! `code`, `path`, `rate` and `wire` do not import each other. They share [`id`], [`naming`],
//! [`time`], [`rng`] and [`latency`], which import nothing but each other; [`config`] and [`error`]
//! stand between them and [`proto`], which documents how its state machines are driven. [`burst`]
//! drives them over any [`burst::PacketIo`], on the threads that wait, or on up to two of its own.
//! Sockets are in the crate `cloudburst-net`.

pub mod burst;
pub mod code;
pub mod config;
pub mod error;
pub mod id;
pub mod latency;
pub mod naming;
pub mod path;
pub mod proto;
pub mod rate;
pub mod rng;
pub mod time;
pub mod wire;
