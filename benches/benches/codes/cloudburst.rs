//! The codes of this workspace.
//!
//! [`Cloudburst`] creates a decoder for each block, as the other libraries do. [`Reused`] uses one
//! that has decoded a block before, as a receiver of many messages does.
//!
//! The allocation of the buffers for a symbol is part of the encoding time, as in the other
//! libraries. A sender would write into the packet.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Decoder, Encoder, Kernel};

use super::workload::{SYMBOL_SIZE, Symbol, source_symbols};
use super::{Decode, Encode};

/// One of the codes, with its name in the benchmarks.
#[derive(Clone, Copy)]
pub(crate) struct Cloudburst {
    pub(crate) name: &'static str,
    pub(crate) code: Code,
}

/// A decoder that waits for one symbol.
pub(crate) struct Waiting {
    decoder: Decoder,
    last: Symbol,
}

impl Waiting {
    /// Receives the symbol: this is timed.
    pub(crate) fn finish(&mut self) {
        receive_all(&mut self.decoder, std::slice::from_ref(&self.last));
    }
}

impl Cloudburst {
    /// Returns a decoder that has received all of these symbols except the last.
    pub(crate) fn all_but_the_last(&self, n: usize, symbols: &[Symbol]) -> Waiting {
        let (last, others) = symbols.split_last().expect("no block decodes from nothing");
        let decoder = self.decode_with(Kernel::fastest(), n, others);
        Waiting { decoder, last: last.clone() }
    }

    fn encoder(&self, message: &Bytes) -> Encoder {
        self.encoder_with(Kernel::fastest(), message)
    }

    /// An encoder that uses this kernel.
    pub(crate) fn encoder_with(&self, kernel: Kernel, message: &Bytes) -> Encoder {
        let shape = shape(source_symbols(message));
        Encoder::with_trailer(kernel, self.code, shape, message.clone(), &[])
            .expect("the message has the block's length")
    }

    /// Decodes these symbols with this kernel.
    pub(crate) fn decode_with(&self, kernel: Kernel, n: usize, received: &[Symbol]) -> Decoder {
        let mut decoder = Decoder::with_kernel(kernel, self.code, shape(n));
        receive_all(&mut decoder, received);
        decoder
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
        let decoder = self.decode_with(Kernel::fastest(), n, received);
        decoder.is_complete().then_some(decoder)
    }

    fn block(decoder: &Decoder) -> Vec<u8> {
        decoder.block().expect("`decode` returns complete decoders only").to_vec()
    }
}

/// The same code, with one decoder that is reset and used again.
pub(crate) struct Reused {
    name: &'static str,
    fresh: Cloudburst,
    decoder: Rc<RefCell<Decoder>>,
}

impl Reused {
    pub(crate) fn new(name: &'static str, fresh: Cloudburst) -> Self {
        let decoder = Decoder::new(fresh.code, shape(1));
        Self { name, fresh, decoder: Rc::new(RefCell::new(decoder)) }
    }
}

impl Encode for Reused {
    type Encoded = <Cloudburst as Encode>::Encoded;

    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(&self, message: &Bytes) -> Self::Encoded {
        self.fresh.encode(message)
    }

    fn repair(encoded: &Self::Encoded) -> &[u8] {
        Cloudburst::repair(encoded)
    }
}

impl Decode for Reused {
    /// The decoder, until the next block.
    type Decoded = Rc<RefCell<Decoder>>;

    fn symbol(&self, message: &Bytes, id: u32) -> Symbol {
        self.fresh.symbol(message, id)
    }

    fn decode(&self, n: usize, received: &mut Vec<Symbol>) -> Option<Self::Decoded> {
        let mut decoder = self.decoder.borrow_mut();
        decoder.reset(self.fresh.code, shape(n));
        receive_all(&mut decoder, received);
        decoder.is_complete().then(|| Rc::clone(&self.decoder))
    }

    fn block(decoded: &Self::Decoded) -> Vec<u8> {
        Cloudburst::block(&decoded.borrow())
    }
}

fn receive_all(decoder: &mut Decoder, received: &[Symbol]) {
    for Symbol { id, index_set, payload } in received {
        decoder.receive(*id, index_set, payload).expect("the symbol is of this block");
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
