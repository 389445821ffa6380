//! The crate `raptorq`: RFC 6330.
//!
//! An encoder follows a plan that depends only on n, and making the plan takes longer than following
//! it. `raptorq` makes one for every message, as `raptorq::Encoder` does. `raptorq-cached-plan` uses a
//! precomputed one, as a sender of many messages would: with `SourceBlockEncoder::new`, the library
//! itself caches the plans of a process.
//!
//! The decoder takes its packets by value, so it gets the received payloads themselves, all at once.

use bytes::Bytes;
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder, SourceBlockEncodingPlan,
};

use super::workload::{SYMBOL_SIZE, Symbol, source_symbols};
use super::{Decode, Encode};

/// The number of the only source block.
const BLOCK: u8 = 0;

/// RaptorQ from the bare message.
pub(crate) struct Raptorq;

/// RaptorQ with an encoding plan for blocks of n source symbols.
pub(crate) struct RaptorqCachedPlan {
    plan: SourceBlockEncodingPlan,
}

impl RaptorqCachedPlan {
    pub(crate) fn new(n: usize) -> Self {
        Self { plan: SourceBlockEncodingPlan::generate(n as u16) }
    }
}

impl Encode for RaptorqCachedPlan {
    type Encoded = (SourceBlockEncoder, Vec<EncodingPacket>);

    fn name(&self) -> &'static str {
        "raptorq-cached-plan"
    }

    fn encode(&self, message: &Bytes) -> Self::Encoded {
        let config = config(message.len());
        let encoder = SourceBlockEncoder::with_encoding_plan(BLOCK, &config, message, &self.plan);
        let repair = encoder.repair_packets(0, 1);
        (encoder, repair)
    }

    fn repair((_, repair): &Self::Encoded) -> &[u8] {
        repair[0].data()
    }
}

impl Encode for Raptorq {
    type Encoded = (RaptorqCachedPlan, <RaptorqCachedPlan as Encode>::Encoded);

    fn name(&self) -> &'static str {
        "raptorq"
    }

    fn encode(&self, message: &Bytes) -> Self::Encoded {
        let planned = RaptorqCachedPlan::new(source_symbols(message));
        let encoded = planned.encode(message);
        (planned, encoded)
    }

    fn repair((_, encoded): &Self::Encoded) -> &[u8] {
        RaptorqCachedPlan::repair(encoded)
    }
}

impl Decode for Raptorq {
    type Decoded = (SourceBlockDecoder, Vec<u8>);

    fn symbol(&self, message: &Bytes, id: u32) -> Symbol {
        let n = source_symbols(message) as u32;
        let encoder = SourceBlockEncoder::new(BLOCK, &config(message.len()), message);
        let packet = match id.checked_sub(n) {
            None => encoder.source_packets().swap_remove(id as usize),
            Some(repair) => encoder.repair_packets(repair, 1).swap_remove(0),
        };
        let (payload_id, payload) = packet.split();
        assert_eq!(payload_id.encoding_symbol_id(), id);
        Symbol { id, index_set: Vec::new(), payload }
    }

    fn decode(&self, n: usize, received: &mut Vec<Symbol>) -> Option<Self::Decoded> {
        let len = n * SYMBOL_SIZE;
        let mut decoder = SourceBlockDecoder::new(BLOCK, &config(len), len as u64);
        let packets = received
            .drain(..)
            .map(|symbol| EncodingPacket::new(PayloadId::new(BLOCK, symbol.id), symbol.payload));
        let block = decoder.decode(packets)?;
        Some((decoder, block))
    }

    fn block((_, block): &Self::Decoded) -> Vec<u8> {
        block.clone()
    }
}

/// One source block, not divided further.
fn config(message_len: usize) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(message_len as u64, SYMBOL_SIZE as u16, 1, 1, 8)
}
