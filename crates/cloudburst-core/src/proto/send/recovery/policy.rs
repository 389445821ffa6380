//! What recovery policies have in common: the questions that messages and blocks ask them.

use super::budgeted::Budgeted;
use super::oblivious::Oblivious;
use super::pulled::Pulled;
use super::{ACK_REQUESTS, Pull, backoff};
use crate::code::Code;
use crate::config::BurstPolicy;
use crate::time::Instant;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

/// A recovery policy: how many symbols of a block are sent before the receiver answers, and what
/// its answers grant.
///
/// A message has the policy of the block that it begins next. [`begin`](Self::begin) splits off
/// that of one block.
pub(in crate::proto::send) trait Policy {
    /// Begins the next block, of `source_symbols`, which decodes from `expected` symbols if nothing
    /// is lost. `is_clean` says that nothing is lost on its paths, as far as is known. Returns the
    /// policy of that block.
    fn begin(&mut self, source_symbols: u32, expected: u32, is_clean: bool) -> AnyPolicy;

    /// How many blocks of the message may be under way, with the configured limit `configured`.
    fn slots(&self, configured: usize) -> usize {
        configured
    }

    /// Of the `unbegun` blocks, how many count as still to be sent.
    fn to_begin(&self, unbegun: usize) -> usize {
        unbegun
    }

    /// No block is under way, and for long nothing has allowed the next to begin.
    fn on_timeout(&mut self) {}

    /// The message starts over with its first block.
    fn reset(&mut self) {}

    /// Symbols that the block opens with.
    fn opening(&self) -> u32;

    /// Symbols granted once the receiver has capacity again.
    fn resumption(&self) -> u32 {
        self.opening()
    }

    /// Whether a probe follows the opening, with the configured default `configured`.
    fn probes_opening(&self, configured: bool) -> bool {
        configured
    }

    /// Whether the next symbol requests an ACK if `left` symbols may be sent.
    fn requests_ack(&self, left: u32) -> bool {
        left <= ACK_REQUESTS
    }

    /// Packet `number` requests an ACK. `sent` symbols have been sent by then.
    fn on_ack_request(&mut self, _now: Instant, _number: u64, _sent: u32) {}

    /// A NACK answers packet `acknowledged`: the receiver needs `needed` more symbols. Returns how
    /// many it grants in all.
    fn on_feedback(&mut self, _acknowledged: u64, _needed: u32) -> u32 {
        0
    }

    /// The receiver has capacity again. It refused what was sent before.
    fn on_resumption(&mut self) {}

    /// A PULL has arrived. `next` is the number of the next packet. Returns how many more symbols
    /// it grants; `None` if the receiver was not asked to pull.
    fn on_pull(&mut self, _now: Instant, _pull: Pull, _next: u64) -> Option<u32> {
        None
    }

    /// Symbols that the receiver has pulled in all; `None` if it does not pull.
    fn pulled(&self) -> Option<u32> {
        None
    }

    /// Whether the burst goes on at its rate until STOP or the deadline, however long there is no
    /// answer.
    fn is_endless(&self) -> bool {
        false
    }

    /// How long to wait for an answer once all granted symbols have been sent, after `unanswered`
    /// RTOs in a row without one.
    fn wait(&self, rto: Duration, unanswered: u32) -> Duration {
        backoff(rto, unanswered)
    }
}

/// Any of the policies.
// Not a box, which would be allocated for each block.
#[derive(Debug)]
pub(in crate::proto::send) enum AnyPolicy {
    Oblivious(Oblivious),
    Budgeted(Budgeted),
    Pulled(Pulled),
}

impl AnyPolicy {
    /// The policy of a message in `code`, on a link of `capacity` bits per second.
    pub(in crate::proto::send) fn new(policy: BurstPolicy, code: Code, capacity: u64) -> Self {
        match policy {
            BurstPolicy::UntilStop => Self::Oblivious(Oblivious::new(true)),
            BurstPolicy::Oblivious => Self::Oblivious(Oblivious::new(false)),
            BurstPolicy::Budgeted { margin } => Self::Budgeted(Budgeted::new(margin)),
            BurstPolicy::Pulled { window } if code.is_systematic() => {
                Self::Pulled(Pulled::new(window, capacity))
            }
            // The receiver could not count what a block still needs.
            BurstPolicy::Pulled { .. } => Self::default(),
        }
    }
}

impl Default for AnyPolicy {
    fn default() -> Self {
        Self::Budgeted(Budgeted::new(BurstPolicy::DEFAULT_MARGIN))
    }
}

impl Deref for AnyPolicy {
    type Target = dyn Policy;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Oblivious(policy) => policy,
            Self::Budgeted(policy) => policy,
            Self::Pulled(policy) => policy,
        }
    }
}

impl DerefMut for AnyPolicy {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Oblivious(policy) => policy,
            Self::Budgeted(policy) => policy,
            Self::Pulled(policy) => policy,
        }
    }
}
