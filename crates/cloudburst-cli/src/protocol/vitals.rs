//! The state that a receiver reports to `cbrst-doctor`.

use super::error::{FrameError, within};
use super::fields::{get_address, put_address};
use bytes::{Buf, Bytes};
use cloudburst_net::Naming;
use std::net::SocketAddr;

const NO_DSCP: u8 = u8::MAX;
const MAX_DSCP: u64 = 63;
const NAMINGS: [Option<Naming>; 4] =
    [None, Some(Naming::Own), Some(Naming::Translated), Some(Naming::Foreign)];

/// A receiver's state and counters since its start. `symbols` and `answers` count only packets from and to the
/// requester, while the receiver remembers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// The DSCP that it marks its packets with.
    pub dscp: u8,
    /// The first other DSCP of a received packet, from any sender.
    pub first_foreign_dscp: Option<u8>,
    /// Packets received with another DSCP, from any sender.
    pub foreign_dscp: u64,
    /// SYMBOL packets received from the requester.
    pub symbols: u64,
    /// Answers sent to the requester.
    pub answers: u64,
    /// Datagrams received.
    pub datagrams: u64,
    /// Buffers in which the datagrams came: fewer than `datagrams` if the system coalesces them.
    pub batches: u64,
    /// Datagrams that its system dropped because a receive buffer was full.
    pub kernel_drops: u64,
    /// Its sockets whose device cannot segment batches into datagrams.
    pub gso_fallbacks: u64,
    /// Bytes that it requested for each socket buffer.
    pub buffers_wanted: u64,
    /// Bytes of its receive buffer.
    pub receive_buffer: u64,
    /// Bytes of its send buffer.
    pub send_buffer: u64,
    /// The address of the requester as the receiver sees it. If it differs from the requester's own
    /// address, a device on the way translates it.
    pub requester: Option<SocketAddr>,
    /// The address that the receiver listens on; an unspecified one stands for all addresses of its host.
    pub listens: Option<SocketAddr>,
    /// What the address that the requester sent to is to the receiver.
    pub naming: Option<Naming>,
}

impl Vitals {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.dscp, self.first_foreign_dscp.unwrap_or(NO_DSCP)]);
        for number in [
            self.foreign_dscp,
            self.symbols,
            self.answers,
            self.datagrams,
            self.batches,
            self.kernel_drops,
            self.gso_fallbacks,
            self.buffers_wanted,
            self.receive_buffer,
            self.send_buffer,
        ] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        put_address(self.requester, out);
        put_address(self.listens, out);
        let naming = NAMINGS.iter().position(|naming| *naming == self.naming);
        out.push(naming.unwrap_or_default() as u8);
    }

    pub(super) fn decode(rest: &mut Bytes) -> Result<Self, FrameError> {
        let dscp = rest.try_get_u8()?;
        let first = rest.try_get_u8()?;
        within("dscp", dscp.into(), 0, MAX_DSCP)?;
        if first != NO_DSCP {
            within("first foreign dscp", first.into(), 0, MAX_DSCP)?;
        }
        let vitals = Self {
            dscp,
            first_foreign_dscp: (first != NO_DSCP).then_some(first),
            foreign_dscp: rest.try_get_u64()?,
            symbols: rest.try_get_u64()?,
            answers: rest.try_get_u64()?,
            datagrams: rest.try_get_u64()?,
            batches: rest.try_get_u64()?,
            kernel_drops: rest.try_get_u64()?,
            gso_fallbacks: rest.try_get_u64()?,
            buffers_wanted: rest.try_get_u64()?,
            receive_buffer: rest.try_get_u64()?,
            send_buffer: rest.try_get_u64()?,
            requester: get_address(rest)?,
            listens: get_address(rest)?,
            naming: None,
        };
        let naming = rest.try_get_u8()?;
        let known = NAMINGS.get(usize::from(naming)).copied();
        let naming = known.ok_or(FrameError::Undefined { field: "naming", got: naming.into() })?;
        Ok(Self { naming, ..vitals })
    }
}
