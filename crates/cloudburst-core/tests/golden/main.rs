//! Packets: bytes on the wire that must never change (`docs/vectors`), and strange handshake packets.
//!
//! A failure here means that the wire format has changed: old and new endpoints cannot communicate.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod codes;
#[path = "../codes/common.rs"]
mod common;
mod handshake;
mod handshake_packets;
mod session;
mod vectors;
