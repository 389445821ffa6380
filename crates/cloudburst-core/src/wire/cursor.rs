//! A bounds-checked cursor over bytes: reading past the end is an error, never a panic.

use super::error::WireError;

/// Reads big-endian fields off the front of a byte slice.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    taken: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, taken: 0 }
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            let needed = self.taken + count;
            let got = self.taken + self.rest.len();
            return Err(WireError::TooShort { needed, got });
        };
        self.rest = rest;
        self.taken += count;
        Ok(head)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(u8::from_be_bytes)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a number of 24 bits.
    #[inline]
    pub(super) fn u24(&mut self) -> Result<u32, WireError> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_be_bytes([0, a, b, c]))
    }

    /// Reads a number of 48 bits.
    #[inline]
    pub(super) fn u48(&mut self) -> Result<u64, WireError> {
        let [a, b, c, d, e, f] = self.array()?;
        Ok(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns the number of bytes taken so far.
    pub(super) const fn position(&self) -> usize {
        self.taken
    }

    /// Returns the number of bytes left.
    pub(super) const fn remaining(&self) -> usize {
        self.rest.len()
    }
}
