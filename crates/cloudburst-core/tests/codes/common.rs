//! Helpers for the tests of the codes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "every test file uses a part of it")]

use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Encoder};

/// Every code, with every degree distribution, and with special degrees. RaptorQ follows them if it
/// is built in.
pub(crate) const CODES: &str = "lt:d=1 lt:d=2 lt:d=4 lt:d=5 lt:d=9 lt:d=128 lt:d=255 lt:uniform=1 \
                         lt:uniform=9 lt:ideal lt:robust lt:dense lt-systematic:d=5 \
                         lt-systematic:uniform=20 lt-systematic:robust lt-systematic:dense rlf256";

pub(crate) fn codes() -> impl Iterator<Item = Code> {
    let names = CODES.split_whitespace().chain(cfg!(feature = "raptorq").then_some("raptorq"));
    names.map(|name| name.parse().unwrap())
}

/// Byte i is 31 i + 7.
pub(crate) fn message(len: usize) -> Bytes {
    (0..len).map(|i| (i * 31 + 7) as u8).collect()
}

/// An index set in its wire format, and a payload.
pub(crate) type Symbol = (Vec<u8>, Vec<u8>);

pub(crate) fn symbol(encoder: &Encoder, id: u32) -> Symbol {
    let shape = encoder.shape();
    let mut index_set = vec![0xaa; encoder.code().index_set_len(shape.source_symbols())];
    let mut payload = vec![0xaa; shape.symbol_size()];
    encoder.encode(id, &mut index_set, &mut payload);
    (index_set, payload)
}

pub(crate) fn shape(source_symbols: usize, symbol_size: usize) -> BlockShape {
    BlockShape::new(source_symbols, symbol_size).unwrap()
}
