//! The message, its symbols, and which of them are received.

use bytes::Bytes;
use cloudburst_core::rng::SplitMix64;

use super::Decode;

/// The bytes of a symbol.
pub(crate) const SYMBOL_SIZE: usize = 1408;

/// A symbol as received in a packet.
#[derive(Clone)]
pub(crate) struct Symbol {
    pub(crate) id: u32,
    /// Empty for the codes that have none.
    pub(crate) index_set: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// A message of n symbols: always the same random bytes.
pub(crate) fn message(n: usize) -> Bytes {
    let mut rng = SplitMix64::new(n as u64);
    (0..n * SYMBOL_SIZE).map(|_| rng.next_u64() as u8).collect()
}

/// The number of source symbols of a message, n.
pub(crate) fn source_symbols(message: &Bytes) -> usize {
    message.len() / SYMBOL_SIZE
}

/// Returns the symbols that have arrived when the block can be decoded, if `percent` of the first n
/// are lost: at least one of them, unless it is 0 %.
///
/// The lost ones are spread evenly. Repair symbols, of which none is lost, follow until there are
/// enough symbols to decode: n, or more if these do not determine the block. The code `lt` has no
/// source symbols. It loses as many of its first n, and always decodes from coded symbols; the loss
/// only determines which ones.
///
/// # Panics
///
/// If the code does not work: if the block differs from the message, or the first repair symbol from
/// that of [`Encode::encode`](super::Encode::encode).
pub(crate) fn received<D: Decode>(code: &D, message: &Bytes, percent: usize) -> Vec<Symbol> {
    let n = source_symbols(message);
    let first_repair = code.symbol(message, n as u32);
    let encoded = code.encode(message);
    assert_eq!(D::repair(&encoded), first_repair.payload, "first repair of {}", code.name());

    let lost = lost(n, percent);
    let mut symbols: Vec<_> = (0..2 * n)
        .filter(|id| !lost.contains(id))
        .take(n)
        .map(|id| code.symbol(message, id as u32))
        .collect();
    let mut next = (n + lost.len()) as u32;
    loop {
        if let Some(decoded) = code.decode(n, &mut symbols.clone()) {
            assert_eq!(D::block(&decoded), *message, "block of {}", code.name());
            return symbols;
        }
        assert!(symbols.len() < 8 * n, "{} decodes from {} symbols", code.name(), symbols.len());
        symbols.push(code.symbol(message, next));
        next += 1;
    }
}

/// Which of the first n symbols are lost.
fn lost(n: usize, percent: usize) -> Vec<usize> {
    let count = (n * percent).div_ceil(100);
    (0..count).map(|i| i * n / count).collect()
}
