//! The transports that are compared, behind one interface.

mod cloudburst;
mod quic;
mod tcp;
#[cfg(test)]
mod testing;

pub(crate) use cloudburst::Cloudburst;
pub(crate) use quic::Quic;
pub(crate) use tcp::{Tcp, TcpSettings};

use crate::Failure;
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Where a transport listens for its peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listening {
    /// The ports. Requests go to any of them.
    pub(crate) ports: Vec<u16>,
    /// The certificate to trust, in DER; empty without TLS.
    pub(crate) certificate: Vec<u8>,
}

/// A host, and where its transport listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Its address, which any path leads to.
    pub(crate) address: IpAddr,
    /// Its addresses for XPath, each reached by a path of its own, in the same order of paths on all
    /// hosts. May be empty.
    pub(crate) path_addresses: Vec<IpAddr>,
    /// Where its transport listens.
    pub(crate) listening: Listening,
}

/// A message that this host has sent as a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// The number of the host that sent the request.
    pub(crate) from: u16,
    /// The request's ID.
    pub(crate) id: u32,
    /// The number of packets sent for it until its sender knew that it had arrived.
    pub(crate) packets: u32,
    /// The number of packets of the message itself.
    pub(crate) source_packets: u32,
}

/// One host's end of a transport, which sends requests and responds to those of others.
///
/// It listens from its creation on. Dropping it stops everything, including its threads.
pub(crate) trait Transport: Send + Sync {
    /// Where others reach it.
    fn listening(&self) -> Listening;

    /// Sets the peers, this host among them. The number of a host is its position, from 1. Called
    /// once, before any [`call`](Self::call).
    fn connect(&self, peers: &[Peer]) -> Result<(), Failure>;

    /// Sends a request of `call.request` bytes to host `call.to`, and waits for a response of
    /// `call.response` bytes. Many threads may call it at once. Idle connections are reused. If all are
    /// busy, another one is opened and kept.
    ///
    /// The error is a text for the report.
    fn call(&self, call: Call) -> Result<(), String>;

    /// Takes the records of the responses sent, once those under way have ended or `within` has passed.
    /// Empty for transports that do not count packets.
    fn take_replies(&self, within: Duration) -> Vec<Reply> {
        let _ = within;
        Vec::new()
    }
}

/// A request to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// This host's number.
    pub(crate) from: u16,
    /// The number of the host to send it to.
    pub(crate) to: u16,
    pub(crate) id: u32,
    /// The bytes of the request, at least [`HEADER`].
    pub(crate) request: usize,
    /// The bytes of the response.
    pub(crate) response: usize,
    /// How long to wait for the response.
    pub(crate) within: Duration,
}

/// The bytes of the header of a request.
pub(crate) const HEADER: usize = 16;

/// The longest request and response that are accepted, in bytes.
pub(crate) const LONGEST: usize = 1 << 20;

impl Call {
    /// The request's bytes: its length, the length of the response, the number of this host and the
    /// ID, each in 4 bytes, big-endian; then padding.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0x5a; self.request.max(HEADER)];
        let fields = [self.request as u32, self.response as u32, u32::from(self.from), self.id];
        for (at, field) in fields.into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    /// The bytes of the whole request.
    pub(crate) request: usize,
    pub(crate) response: usize,
    pub(crate) from: u16,
    pub(crate) id: u32,
}

impl RequestHeader {
    /// Decodes the beginning of a request. `None` if it is invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let field = |at: usize| {
            let field = bytes.get(4 * at..4 * at + 4)?;
            Some(u32::from_be_bytes(field.try_into().ok()?))
        };
        let request = field(0)? as usize;
        let response = field(1)? as usize;
        let from = field(2)?.try_into().ok()?;
        let is_sound = (HEADER..=LONGEST).contains(&request) && response <= LONGEST;
        is_sound.then_some(Self { request, response, from, id: field(3)? })
    }
}
