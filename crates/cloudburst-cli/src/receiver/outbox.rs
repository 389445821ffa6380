//! Answers of the receiver. Their number is bounded, so that no peer can exhaust its memory.

use super::commit::Key;
use crate::courier::{Courier, Event};
use crate::protocol::{Body, Frame, Reason, TransferId, VERSION};
use bytes::Bytes;
use cloudburst_net::{Endpoint, SendOptions};
use core::time::Duration;
use crossbeam_channel::Receiver;
use std::net::SocketAddr;

/// The most answers in flight, in total and to one peer: more than all transfers together need at once.
/// Answers are small. Those beyond the limit are dropped.
const MAX_REPLIES: usize = 1024;
const MAX_REPLIES_TO_PEER: usize = 256;

/// An answer in flight.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) peer: SocketAddr,
    /// The path of the file, if the answer confirms that it is stored.
    pub(super) stored: Option<String>,
}

/// The endpoint of a receiver, with its answers in flight.
pub(super) struct Outbox {
    courier: Courier<Reply>,
    /// The deadline of an answer.
    deadline: Duration,
}

impl Outbox {
    pub(super) fn new(endpoint: Endpoint, deadline: Duration) -> Self {
        Self { courier: Courier::new(endpoint), deadline }
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        self.courier.endpoint()
    }

    /// The channel that wakes the loop: see [`Courier::woken`].
    pub(super) const fn woken(&self) -> &Receiver<()> {
        self.courier.woken()
    }

    /// Returns the next event: see [`Courier::poll`].
    pub(super) fn poll(&mut self, takes_messages: bool) -> Option<Event<Reply>> {
        if takes_messages { self.courier.poll() } else { self.courier.poll_sends() }
    }

    /// Sends an answer. A peer that cannot be reached gives up by itself.
    pub(super) fn reply(&mut self, key: Key, body: Body) {
        let Key { peer, transfer } = key;
        self.send(Reply { peer, stored: None }, Frame { transfer, body }.encode());
    }

    /// Refuses a frame of version `got`, in that version.
    pub(super) fn refuse_version(&mut self, peer: SocketAddr, transfer: TransferId, got: u8) {
        let body = Body::Failed(Reason::Version(VERSION.into()));
        self.send(Reply { peer, stored: None }, Frame { transfer, body }.encode_as(got));
    }

    /// Confirms that the file is stored at `path`.
    pub(super) fn confirm(&mut self, key: Key, path: String) {
        let Key { peer, transfer } = key;
        let frame = Frame { transfer, body: Body::Done }.encode();
        self.send(Reply { peer, stored: Some(path) }, frame);
    }

    /// Closes the endpoint. Answers in flight have the time `within` to arrive.
    pub(super) fn close(self, within: Duration) {
        self.courier.close(within);
    }

    fn send(&mut self, reply: Reply, frame: Bytes) {
        let peer = reply.peer;
        let to_peer = self.courier.under_way().filter(|reply| reply.peer == peer).count();
        if to_peer >= MAX_REPLIES_TO_PEER || self.courier.under_way().count() >= MAX_REPLIES {
            return;
        }
        let options = SendOptions::default().deadline(self.deadline);
        let _ = self.courier.send(reply, peer, frame, options);
    }
}
