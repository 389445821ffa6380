//! Bursts that ask nothing: symbols until STOP (Algorithm 1, section III-B).

/// A burst that nobody answers ends after this many times the block's symbols: what follows is as
/// slow as silence makes it.
pub(super) const TRICKLE_AFTER: u32 = 8;

/// Symbols that a block of `source_symbols` opens with: so many that the STOP comes first.
pub(super) const fn opening(source_symbols: u32) -> u32 {
    source_symbols * TRICKLE_AFTER
}
