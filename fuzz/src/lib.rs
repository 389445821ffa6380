//! The bodies of the fuzz targets. Each takes bytes, and panics if a promise is broken.
//!
//! ```text
//!   scripts/fuzz ─► fuzz_targets/*.rs (libFuzzer) ─┐
//!                                                  ├─► wire | decoder | pair ─► cloudburst-core
//!   cargo test   ─► tests/*.rs (corpus/, seeds)   ─┘
//! ```
//!
//! | target | input | promises |
//! |---|---|---|
//! | [`wire()`] | one packet | packets that parse are written back unchanged; only sealed packets open, once |
//! | [`decoder()`] | a code, a block, a list of symbols and lies | only the rank decides, and the block is the one that the symbols describe |
//! | [`pair()`] | configurations of two to four hosts and a schedule | at most one delivery, true outcomes, deadlines, quotas, progress after faults |
//!
//! Nothing here needs libFuzzer, which only the binaries use, behind the feature `libfuzzer`.

mod decoder;
mod input;
mod pair;
mod wire;

pub use decoder::{Gauge, decoder, decoder_measured};
pub use pair::pair;
pub use wire::wire;
