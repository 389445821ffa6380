//! Bursts that no report of the receiver but STOP influences (Algorithm 1).

use super::{AnyPolicy, Policy, TRICKLE_AFTER};

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::proto::send) struct Oblivious {
    source_symbols: u32,
}

impl Policy for Oblivious {
    fn begin(&mut self, source_symbols: u32, _: u32, _: bool) -> AnyPolicy {
        AnyPolicy::Oblivious(Self { source_symbols })
    }

    fn opening(&self) -> u32 {
        // Enough for the STOP to arrive before its end.
        self.source_symbols * TRICKLE_AFTER
    }
}
