//! The codes under measurement, with one adapter per library.
//!
//! | file | role |
//! |---|---|
//! | `workload` | the message, its symbols, and which of them are received |
//! | `cloudburst` | `lt`, `lt-robust`, `lt-systematic`, `rlf256` and `raptorq-here`, of this workspace |
//! | `raptorq` | the crate `raptorq`: RFC 6330 |
//! | `reed_solomon_simd` | the crate `reed-solomon-simd`: Leopard-RS, of a fixed rate |

mod cloudburst;
mod raptorq;
mod reed_solomon_simd;
pub(crate) mod workload;

use bytes::Bytes;

pub(crate) use self::cloudburst::{Cloudburst, Reused};
pub(crate) use self::raptorq::{Raptorq, RaptorqCachedPlan};
pub(crate) use self::reed_solomon_simd::ReedSolomonSimd;
use self::workload::Symbol;

/// A code that makes repair symbols.
pub(crate) trait Encode {
    /// The first repair symbol, and the state that produced it.
    type Encoded;

    /// The name of the code in the benchmarks.
    fn name(&self) -> &'static str;

    /// Makes the first repair symbol from the bare message: this is timed.
    fn encode(&self, message: &Bytes) -> Self::Encoded;

    /// The payload of the repair symbol.
    fn repair(encoded: &Self::Encoded) -> &[u8];
}

/// A code that decodes, too.
pub(crate) trait Decode: Encode {
    /// The block, and the state that produced it.
    type Decoded;

    /// Returns symbol `id`: below n one of the first n, otherwise a repair symbol.
    fn symbol(&self, message: &Bytes, id: u32) -> Symbol;

    /// Decodes a block of n source symbols, with a decoder of its own: this is timed. `None` if
    /// the symbols do not suffice.
    ///
    /// An implementation that needs owned payloads may take them out of `received`.
    fn decode(&self, n: usize, received: &mut Vec<Symbol>) -> Option<Self::Decoded>;

    /// A copy of the block.
    fn block(decoded: &Self::Decoded) -> Vec<u8>;
}
