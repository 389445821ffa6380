//! Fountain codes: a block of bytes becomes an endless stream of symbols, and almost any n of
//! them become the block again (INFOCOM 2022, III-A).
//!
//! ```text
//!              Encoder                                    Decoder
//!  bytes ──► n source symbols ──►    ESI    ──► ... ──► rank n? ──► solve ──► bytes
//!             (block)              (lt, linear)          (lt_decoder, linear_decoder)
//! ```
//!
//! | file | role |
//! |---|---|
//! | `block` | the shape of a block, and its bytes cut into source symbols |
//! | `name` | [`Code`]: the codes, on the wire and in text |
//! | `encoder`, `decoder` | the two public types; they dispatch by code and count work |
//! | `degree`, `soliton` | the distributions of the degree of LT symbols |
//! | `overhead` | the symbols that they need beyond n, as measured |
//! | `index_set` | a set of source symbols, and its bytes |
//! | `lt`, `lt_decoder`, `lt_solve` | XOR codes: encode; follow the rank; peel and eliminate |
//! | `linear`, `linear_decoder`, `linear_solve` | codes over GF(2^8): encode; absorb; invert |
//! | `rlf256`, `raptorq` | the coefficients of RLF-256; those of RaptorQ, from a library |
//! | `echelon` | the rank of arbitrary rows of coefficients |
//! | `gf256`, `kernel` | the field; the inner loops over whole payloads, by instruction set |
//! | `slab`, `workspace` | n symbols in contiguous memory; the scratch memory for solving |
//! | `draw` | the random generator of an ESI |
//!
//! Nothing here deals with packets or time, and nothing depends on the platform: equal
//! (code, shape, data, id) give equal bytes everywhere. That mapping is part of the wire contract
//! (`docs/spec.md`) and is pinned by `docs/vectors/codes.txt`.
//!
//! ```
//! use bytes::Bytes;
//! use cloudburst_core::code::{BlockShape, Code, Decoder, Encoder, Reception};
//!
//! let shape = BlockShape::new(4, 3)?;
//! let encoder = Encoder::new(Code::Rlf256, shape, Bytes::from_static(b"hello world"))?;
//! let mut decoder = Decoder::new(Code::Rlf256, shape);
//! let mut payload = [0; 3];
//! for id in [0, 2, 5, 200] {
//!     encoder.encode(id, &mut [], &mut payload);
//!     decoder.receive(id, &[], &payload)?;
//! }
//! assert_eq!(decoder.block(), Some(&b"hello world\0"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod decoder;
mod degree;
mod draw;
mod echelon;
mod encoder;
mod gf256;
mod index_set;
mod kernel;
mod linear;
mod linear_decoder;
mod linear_solve;
mod lt;
mod lt_decoder;
mod lt_solve;
mod name;
mod overhead;
#[cfg(feature = "raptorq")]
mod raptorq;
mod rlf256;
mod slab;
mod soliton;
mod workspace;

pub use block::{BlockShape, MAX_SOURCE_SYMBOLS, MAX_SYMBOL_SIZE, ShapeError};
pub use decoder::{Decoder, Reception, SymbolError, Work};
pub use degree::Degree;
pub use encoder::Encoder;
pub use kernel::Kernel;
pub use name::{Code, CodeNameError};
