//! The codes of this workspace.
//!
//! The buffers that a symbol is written to are allocated in the time of encoding, since the other
//! libraries do so. A sender would write into the packet.

use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Decoder, Encoder};

use super::workload::{SYMBOL_SIZE, Symbol, source_symbols};
use super::{Decode, Encode};

/// One of the codes, by the name that the benchmarks give it.
pub(crate) struct Cloudburst {
    pub(crate) name: &'static str,
    pub(crate) code: Code,
}

impl Cloudburst {
    fn encoder(&self, message: &Bytes) -> Encoder {
        let shape = shape(source_symbols(message));
        Encoder::new(self.code, shape, message.clone()).expect("the message has the block's length")
    }
}

impl Encode for Cloudburst {
    type Encoded = (Encoder, Symbol);

    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(&self, message: &Bytes) -> Self::Encoded {
        let encoder = self.encoder(message);
        let repair = write_symbol(&encoder, source_symbols(message) as u32);
        (encoder, repair)
    }

    fn repair((_, repair): &Self::Encoded) -> &[u8] {
        &repair.payload
    }
}

impl Decode for Cloudburst {
    type Decoded = Decoder;

    fn symbol(&self, message: &Bytes, id: u32) -> Symbol {
        write_symbol(&self.encoder(message), id)
    }

    fn decode(&self, n: usize, received: &mut Vec<Symbol>) -> Option<Decoder> {
        let mut decoder = Decoder::new(self.code, shape(n));
        for Symbol { id, index_set, payload } in received {
            decoder.receive(*id, index_set, payload).expect("the symbol is of this block");
        }
        decoder.is_complete().then_some(decoder)
    }

    fn block(decoder: &Decoder) -> &[u8] {
        decoder.block().expect("`decode` returns complete decoders only")
    }
}

fn shape(n: usize) -> BlockShape {
    BlockShape::new(n, SYMBOL_SIZE).expect("n is at most 64 here")
}

fn write_symbol(encoder: &Encoder, id: u32) -> Symbol {
    let index_set_len = encoder.code().index_set_len(encoder.shape().source_symbols());
    let mut symbol =
        Symbol { id, index_set: vec![0; index_set_len], payload: vec![0; SYMBOL_SIZE] };
    encoder.encode(id, &mut symbol.index_set, &mut symbol.payload);
    symbol
}
