#![doc = include_str!("../README.md")]

pub use cloudburst_core as core;
pub use cloudburst_net::*;
