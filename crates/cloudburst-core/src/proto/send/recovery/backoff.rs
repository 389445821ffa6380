//! How long to wait for an answer, and how many symbols to grant after it.

use super::ACK_REQUESTS;
use crate::proto::limits::MAX_BACKOFF;
use core::time::Duration;

/// The maximum number of symbols granted after a timeout: one for each path, because most paths may
/// be dead.
// With two probes and a timeout that doubled each time, 10 KB took up to 1.5 s with three of four
// paths dead and 20 % lost on the fourth. With one for each path, 17 ms.
const MAX_PROBES: u32 = 8;

/// The number of symbols granted after a timeout, with `paths` paths.
pub(in crate::proto::send) fn probes(paths: usize) -> u32 {
    u32::try_from(paths).unwrap_or(u32::MAX).clamp(ACK_REQUESTS, MAX_PROBES)
}

/// How long to wait for an answer, after `unanswered` RTOs in a row without one.
/// Each timeout is tried twice before it doubles, because the first may well be bad luck.
pub(in crate::proto::send) fn backoff(rto: Duration, unanswered: u32) -> Duration {
    let doublings = (unanswered / 2).min(8);
    rto.saturating_mul(1 << doublings).min(MAX_BACKOFF)
}
