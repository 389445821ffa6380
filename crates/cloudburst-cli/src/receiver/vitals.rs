//! The state of this receiver, for `cbrst-doctor`.

use crate::protocol::Vitals;
use cloudburst_net::Endpoint;
use std::net::SocketAddr;

/// Returns the state of `endpoint`, whose DSCP is `dscp`, and its counts of the packets of `requester`, which sent
/// its request to the address `addressed`.
pub(super) fn of(
    endpoint: &Endpoint,
    dscp: u8,
    requester: SocketAddr,
    addressed: Option<SocketAddr>,
) -> Vitals {
    let io = endpoint.counters().io;
    let buffers = endpoint.granted_buffers();
    let from_requester = endpoint.peer(requester).map(|peer| peer.received).unwrap_or_default();
    Vitals {
        dscp,
        first_foreign_dscp: io.first_foreign_dscp,
        foreign_dscp: io.foreign_dscp,
        symbols: from_requester.symbols_received,
        answers: from_requester.answers_sent,
        datagrams: io.datagrams_received,
        batches: io.batches_received,
        kernel_drops: io.kernel_drops,
        gso_fallbacks: io.gso_fallbacks,
        buffers_wanted: buffers.wanted as u64,
        receive_buffer: buffers.receive as u64,
        send_buffer: buffers.send as u64,
        requester: Some(requester),
        listens: Some(endpoint.local_addr()),
        naming: addressed.map(|addressed| endpoint.naming(addressed)),
    }
}
