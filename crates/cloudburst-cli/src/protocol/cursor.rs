//! A bounds-checked reader, so that no frame can make its decoder panic.

use super::FrameError;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

#[derive(Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// Bytes in the whole frame, for errors.
    total: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, total: bytes.len() }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let short = FrameError::TooShort { got: self.total };
        let (taken, rest) = self.rest.split_first_chunk().ok_or(short)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, FrameError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads an address; `None` if its port is 0.
    pub(super) fn address(&mut self) -> Result<Option<SocketAddr>, FrameError> {
        let ip = IpAddr::from(self.array::<16>()?).to_canonical();
        let port = self.u16()?;
        Ok((port != 0).then_some(SocketAddr::new(ip, port)))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes all bytes that are left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// Checks that nothing is left.
    pub(super) const fn end(&self) -> Result<(), FrameError> {
        match self.rest.len() {
            0 => Ok(()),
            extra => Err(FrameError::TooLong { got: self.total, expected: self.total - extra }),
        }
    }
}

/// Writes an address for [`Cursor::address`].
pub(super) fn put_address(address: Option<SocketAddr>, out: &mut Vec<u8>) {
    let (ip, port) = match address.map(|address| (address.ip(), address.port())) {
        Some((IpAddr::V4(ip), port)) => (ip.to_ipv6_mapped(), port),
        Some((IpAddr::V6(ip), port)) => (ip, port),
        None => (Ipv6Addr::UNSPECIFIED, 0),
    };
    out.extend_from_slice(&ip.octets());
    out.extend_from_slice(&port.to_be_bytes());
}
