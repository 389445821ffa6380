//! Path maps: what distinguishes each path on the wire.
//!
//! | file | role |
//! |---|---|
//! | `map` | [`PathMap`]: a map given in code, as text, or by a file |
//! | `uniform` | a map that is the same for every destination, or for those of one prefix |
//! | `file` | maps by destination prefix, from a TOML file |
//! | `text` | the text form of maps |
//! | `address` | what addresses and prefixes can stand for |
//! | `error` | why a map is refused |

mod address;
mod error;
mod file;
mod map;
mod text;
mod uniform;

pub(crate) use address::{is_host, is_of_a_host, reaches};
pub use error::PathMapError;
pub(crate) use file::read;
pub use map::PathMap;
pub(crate) use uniform::{Needs, Uniform};
