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

/// What a transport listens at, for its peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listening {
    /// Ports; requests go to any of them.
    pub(crate) ports: Vec<u16>,
    /// The certificate to trust, in DER; empty without TLS.
    pub(crate) certificate: Vec<u8>,
}

/// A host and what listens there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Its address, by any path.
    pub(crate) address: IpAddr,
    /// Addresses of it that are each reached by a path of their own (XPath), numbered alike at all
    /// hosts; may be empty.
    pub(crate) path_addresses: Vec<IpAddr>,
    /// What listens there.
    pub(crate) listening: Listening,
}

/// A message that this host has sent as a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// The number of the host that asked.
    pub(crate) from: u16,
    /// The request's id.
    pub(crate) id: u32,
    /// Packets sent for it until its sender knew it received.
    pub(crate) packets: u32,
    /// Packets of the message itself.
    pub(crate) source_packets: u32,
}

/// One host's end of a transport: asks others, and responds to them.
///
/// It listens from its creation on, and stops everything when it is dropped, its threads included.
pub(crate) trait Transport: Send + Sync {
    /// Where others reach it.
    fn listening(&self) -> Listening;

    /// Who the others are: the host number of a peer is its place, from 1. This host is among
    /// them. Called once, before any [`call`](Self::call).
    fn connect(&self, peers: &[Peer]) -> Result<(), Failure>;

    /// Sends a request of `ask.request` bytes to host `ask.to`, and waits for a response of
    /// `ask.response` bytes. Called by many threads at once. Connections that are idle are used
    /// again; where all are busy, another one is opened and kept.
    ///
    /// The text of the error says what went wrong.
    fn call(&self, ask: Ask) -> Result<(), String>;

    /// What is known of the responses sent, once those under way have ended, but not after longer
    /// than `within`. Empty for transports that do not say.
    fn take_replies(&self, within: Duration) -> Vec<Reply> {
        let _ = within;
        Vec::new()
    }
}

/// A request to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// This host's number.
    pub(crate) from: u16,
    /// Whom to ask.
    pub(crate) to: u16,
    pub(crate) id: u32,
    /// Bytes of the request, at least [`HEADER`].
    pub(crate) request: usize,
    /// Bytes of the response.
    pub(crate) response: usize,
    /// When to give up.
    pub(crate) within: Duration,
}

/// Bytes at the beginning of each request that say what it asks for.
pub(crate) const HEADER: usize = 16;

/// The longest request and response that are accepted, in bytes.
pub(crate) const LONGEST: usize = 1 << 20;

impl Ask {
    /// The request's bytes: its length, the length of the response, who asks, and its id, all
    /// big-endian; then filling.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0x5a; self.request.max(HEADER)];
        let fields = [self.request as u32, self.response as u32, u32::from(self.from), self.id];
        for (at, field) in fields.into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Bytes of the whole request.
    pub(crate) request: usize,
    pub(crate) response: usize,
    pub(crate) from: u16,
    pub(crate) id: u32,
}

impl Asked {
    /// Reads the beginning of a request; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let field = |at: usize| {
            let field = bytes.get(4 * at..4 * at + 4)?;
            Some(u32::from_be_bytes(field.try_into().ok()?))
        };
        let (request, response) = (field(0)? as usize, field(1)? as usize);
        let from = field(2)?.try_into().ok()?;
        let is_sound = (HEADER..=LONGEST).contains(&request) && response <= LONGEST;
        is_sound.then_some(Self { request, response, from, id: field(3)? })
    }
}
