//! Emulated links, and relays made of them.

mod classes;
mod config;
mod faults;
mod relay;
mod timing;
mod trimming;
