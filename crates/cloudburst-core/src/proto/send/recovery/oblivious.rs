//! Bursts without feedback: symbols until STOP (Algorithm 1, section III-B).

/// An unanswered burst ends after this many times the block's source symbols. Symbols after that
/// leave as slowly as the backoff demands.
pub(super) const TRICKLE_AFTER: u32 = 8;

/// The number of symbols that a block of `source_symbols` opens with: enough for the STOP to arrive
/// before its end.
pub(super) const fn opening(source_symbols: u32) -> u32 {
    source_symbols * TRICKLE_AFTER
}
