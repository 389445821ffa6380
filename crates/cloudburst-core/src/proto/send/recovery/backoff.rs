//! How long silence is waited out, and how many symbols it grants then.

use super::ACK_REQUESTS;
use crate::proto::limits::MAX_PAUSE;
use core::time::Duration;

/// Symbols in a grant after silences, at most: one for each path, for most may be dead.
const MAX_PROBES: u32 = 8;

/// Symbols that are granted after a silence, where there are `paths` paths.
pub(in crate::proto::send) fn probes(paths: usize) -> u32 {
    u32::try_from(paths).unwrap_or(u32::MAX).clamp(ACK_REQUESTS, MAX_PROBES)
}

/// How long to wait for an answer that takes `wait`, after so many waits in a row that nobody
/// answered. The first may well be bad luck: twice each before the wait doubles.
pub(in crate::proto::send) fn backoff(wait: Duration, unanswered: u32) -> Duration {
    let doublings = (unanswered / 2).min(8);
    wait.saturating_mul(1 << doublings).min(MAX_PAUSE)
}
