//! What is counted of calls.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an endpoint has seen of calls, its own and those of others, since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallCounters {
    /// Responses that ended a call.
    pub responses_received: u64,
    /// Responses that no call waits for: late, told twice, or of a caller that is gone.
    pub responses_dropped: u64,
    /// Requests that the application took.
    pub requests_received: u64,
    /// Requests whose callers had given up before the application took them.
    pub requests_expired: u64,
    /// Requests that the application dropped without a reply, or whose reply did not get through.
    pub requests_unanswered: u64,
    /// Handlers that panicked; their requests are unanswered.
    pub handlers_panicked: u64,
    /// Requests and responses whose bytes are none.
    pub malformed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(super) responses_received: AtomicU64,
    pub(super) responses_dropped: AtomicU64,
    pub(super) requests_received: AtomicU64,
    pub(super) requests_expired: AtomicU64,
    pub(super) requests_unanswered: AtomicU64,
    pub(super) handlers_panicked: AtomicU64,
    pub(super) malformed: AtomicU64,
}

impl Counts {
    pub(super) fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> CallCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CallCounters {
            responses_received: read(&self.responses_received),
            responses_dropped: read(&self.responses_dropped),
            requests_received: read(&self.requests_received),
            requests_expired: read(&self.requests_expired),
            requests_unanswered: read(&self.requests_unanswered),
            handlers_panicked: read(&self.handlers_panicked),
            malformed: read(&self.malformed),
        }
    }
}
