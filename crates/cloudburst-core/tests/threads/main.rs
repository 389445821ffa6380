//! The threads, over channels instead of sockets.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

#[path = "../proto/common/mod.rs"]
mod common;
mod engine;
mod reported_once;
mod suspended;
mod taking;

use cloudburst_core::proto::Transceiver;
use cloudburst_core::time::Instant;

/// The packets that `endpoint` has to send.
fn packets(endpoint: &mut Transceiver, now: Instant) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut buffer = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        packets.extend(buffer.chunks(transmit.segment_size).map(<[u8]>::to_vec));
        buffer.clear();
    }
    packets
}
