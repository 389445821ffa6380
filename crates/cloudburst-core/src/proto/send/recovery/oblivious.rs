//! Bursts that no report of the receiver but STOP and BUSY influences (Algorithm 1).

use super::{AnyPolicy, Policy, TRICKLE_AFTER};

#[derive(Clone, Copy, Debug)]
pub(in crate::proto::send) struct Oblivious {
    source_symbols: u32,
    /// Whether the burst never slows to a trickle.
    until_stop: bool,
}

impl Oblivious {
    pub(super) const fn new(until_stop: bool) -> Self {
        Self { source_symbols: 0, until_stop }
    }
}

impl Policy for Oblivious {
    fn begin(&mut self, source_symbols: u32, _: u32, _: bool) -> AnyPolicy {
        AnyPolicy::Oblivious(Self { source_symbols, ..*self })
    }

    fn opening(&self) -> u32 {
        // Enough for the STOP to arrive before its end. An endless burst is granted as many again
        // and again, so that the schedule ranks it like others.
        self.source_symbols * TRICKLE_AFTER
    }

    fn is_endless(&self) -> bool {
        self.until_stop
    }
}
