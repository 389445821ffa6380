//! The crate `reed-solomon-simd`: Leopard-RS, of a fixed rate.
//!
//! The number of recovery symbols is part of the code, so it must be fixed in advance: n, so that a
//! block survives the loss of all its source symbols. The encoder makes all of them at once; the
//! first alone is not cheaper.
//!
//! The library builds tables on first use, which is before the timing here.

use std::ops::Range;

use bytes::Bytes;
use reed_solomon_simd::{Error, ReedSolomonDecoder, ReedSolomonEncoder};

use super::workload::{SYMBOL_SIZE, Symbol, source_symbols};
use super::{Decode, Encode};

/// n source symbols and n recovery symbols.
pub(crate) struct ReedSolomonSimd;

impl Encode for ReedSolomonSimd {
    type Encoded = (ReedSolomonEncoder, Vec<u8>);

    fn name(&self) -> &'static str {
        "reed-solomon-simd"
    }

    fn encode(&self, message: &Bytes) -> Self::Encoded {
        recovery(message, 0).expect("shape and message fit each other")
    }

    fn repair((_, repair): &Self::Encoded) -> &[u8] {
        repair
    }
}

impl Decode for ReedSolomonSimd {
    type Decoded = (ReedSolomonDecoder, Vec<u8>);

    fn symbol(&self, message: &Bytes, id: u32) -> Symbol {
        let index = id as usize;
        let payload = match index.checked_sub(source_symbols(message)) {
            None => message[at(index)].to_vec(),
            Some(index) => recovery(message, index).expect("shape and message fit each other").1,
        };
        Symbol { id, index_set: Vec::new(), payload }
    }

    fn decode(&self, n: usize, received: &mut Vec<Symbol>) -> Option<Self::Decoded> {
        match restore(n, received) {
            Ok(decoded) => Some(decoded),
            Err(Error::NotEnoughShards { .. }) => None,
            Err(error) => panic!("a symbol that is not of this block: {error}"),
        }
    }

    fn block((_, block): &Self::Decoded) -> Vec<u8> {
        block.clone()
    }
}

/// Encodes, and returns the recovery symbol with this index, which is below n.
fn recovery(message: &Bytes, index: usize) -> Result<(ReedSolomonEncoder, Vec<u8>), Error> {
    let n = source_symbols(message);
    let mut encoder = ReedSolomonEncoder::new(n, n, SYMBOL_SIZE)?;
    for symbol in message.chunks_exact(SYMBOL_SIZE) {
        encoder.add_original_shard(symbol)?;
    }
    let payload = encoder.encode()?.recovery(index).expect("there are n").to_vec();
    Ok((encoder, payload))
}

/// Decodes, and assembles the block from the symbols received and those restored by the decoder.
fn restore(n: usize, received: &[Symbol]) -> Result<(ReedSolomonDecoder, Vec<u8>), Error> {
    let mut decoder = ReedSolomonDecoder::new(n, n, SYMBOL_SIZE)?;
    let mut block = vec![0; n * SYMBOL_SIZE];
    for symbol in received {
        let id = symbol.id as usize;
        match id.checked_sub(n) {
            None => {
                decoder.add_original_shard(id, &symbol.payload)?;
                block[at(id)].copy_from_slice(&symbol.payload);
            }
            Some(index) => decoder.add_recovery_shard(index, &symbol.payload)?,
        }
    }
    for (index, payload) in decoder.decode()?.restored_original_iter() {
        block[at(index)].copy_from_slice(payload);
    }
    Ok((decoder, block))
}

/// Where source symbol `index` is in the block.
fn at(index: usize) -> Range<usize> {
    index * SYMBOL_SIZE..(index + 1) * SYMBOL_SIZE
}
