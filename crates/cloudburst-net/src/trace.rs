//! What `tracing` is told of each message. Where nobody listens, nothing is formatted or allocated.

use cloudburst_core::proto::Message;
use std::net::SocketAddr;
use tracing::Span;
use tracing::field::Empty;

/// The span of a send, which ends with it. Its id and its outcome are filled in when they are known.
pub(crate) fn send(peer: SocketAddr, bytes: usize) -> Span {
    tracing::debug_span!("send", %peer, bytes, id = Empty, outcome = Empty)
}

/// A message was put into the application's queue.
pub(crate) fn received(message: &Message) {
    let Message { peer, id, bytes, .. } = message;
    tracing::debug!(%peer, id = id.0, bytes = bytes.len(), "message received");
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use cloudburst_core::id::MessageId;

    #[test]
    fn nothing_is_allocated_where_nobody_listens() {
        let peer = SocketAddr::from(([10, 0, 0, 1], 7000));
        let message = Message {
            peer,
            id: MessageId(1),
            role: cloudburst_core::wire::Role::Plain,
            bytes: Bytes::from_static(b"hello"),
        };
        let told = || {
            let span = send(peer, 5);
            span.record("id", 1_u64);
            received(&message);
        };
        // The first time, each place asks whether anybody listens.
        told();
        assert_eq!(allocation_counter::measure(told).count_total, 0);
    }
}
