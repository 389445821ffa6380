//! Answers: few at a time, so that nobody can make a receiver hoard them.

use crate::courier::{Courier, News};
use crate::protocol::{Body, Frame, Reason, TransferId, VERSION};
use bytes::Bytes;
use cloudburst_net::{Endpoint, SendOptions};
use core::time::Duration;
use std::net::SocketAddr;

/// Answers under way, in all and to one peer: more than all transfers together can want at once.
/// They are small. A peer that causes more gets fewer.
const MAX_REPLIES: usize = 1024;
const MAX_REPLIES_TO_PEER: usize = 256;

/// An answer under way.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) peer: SocketAddr,
    /// The path of a file whose sender should hear that it is stored.
    pub(super) stored: Option<String>,
}

/// The way out, and in.
pub(super) struct Outbox {
    courier: Courier<Reply>,
    /// How long an answer may take.
    deadline: Duration,
}

impl Outbox {
    pub(super) fn new(endpoint: Endpoint, deadline: Duration) -> Self {
        Self { courier: Courier::new(endpoint), deadline }
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        self.courier.endpoint()
    }

    /// The next thing that happened. See [`Courier::poll`].
    pub(super) fn poll(&mut self, takes_messages: bool) -> Option<News<Reply>> {
        if takes_messages { self.courier.poll() } else { self.courier.poll_sends() }
    }

    /// Says something. A peer that cannot be answered hears nothing, and gives up.
    pub(super) fn reply(&mut self, peer: SocketAddr, transfer: TransferId, body: Body) {
        self.send(Reply { peer, stored: None }, Frame { transfer, body }.encode());
    }

    /// Refuses a frame of version `got`, in that version.
    pub(super) fn refuse_version(&mut self, peer: SocketAddr, transfer: TransferId, got: u8) {
        let body = Body::Failed(Reason::Version(VERSION.into()));
        self.send(Reply { peer, stored: None }, Frame { transfer, body }.encode_as(got));
    }

    /// Says that the file is stored at `path`.
    pub(super) fn confirm(&mut self, peer: SocketAddr, transfer: TransferId, path: String) {
        let frame = Frame { transfer, body: Body::Done }.encode();
        self.send(Reply { peer, stored: Some(path) }, frame);
    }

    /// Lets the answers under way out, within a time.
    pub(super) fn close(self, within: Duration) {
        self.courier.close(within);
    }

    fn send(&mut self, reply: Reply, frame: Bytes) {
        let peer = reply.peer;
        let to_peer = self.courier.under_way().filter(|reply| reply.peer == peer).count();
        if to_peer >= MAX_REPLIES_TO_PEER || self.courier.under_way().count() >= MAX_REPLIES {
            return;
        }
        let options = SendOptions { deadline: Some(self.deadline), ..SendOptions::default() };
        let _ = self.courier.send(reply, peer, frame, options);
    }
}
