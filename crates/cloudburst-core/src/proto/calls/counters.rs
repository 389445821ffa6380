//! Counters of calls and requests.

counters! {
/// Counters of the calls that an endpoint has made and served since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallCounters {
    /// Calls that got an answer.
    pub calls_answered: u64,
    /// Calls whose requests were not delivered, and never will be.
    pub calls_rejected: u64,
    /// Calls whose requests may or may not have been delivered.
    pub calls_unknown: u64,
    /// Calls whose requests were delivered, and whose deadlines passed without a response.
    pub calls_expired: u64,
    /// Calls whose requests the callee's application dropped.
    pub calls_unanswered: u64,
    /// Calls that the callee's application refused, because it was overloaded.
    pub calls_overloaded: u64,
    /// Calls that this application abandoned.
    pub calls_cancelled: u64,
    /// Responses that ended a call.
    pub responses_received: u64,
    /// Responses that no call waits for: late ones, duplicates, and those whose callers have given
    /// up.
    pub responses_dropped: u64,
    /// Requests that the application took.
    pub requests_received: u64,
    /// Requests whose callers had given up before the application took them.
    pub requests_expired: u64,
    /// Requests that the application took and began to answer.
    pub requests_answered: u64,
    /// Requests that the application took and dropped without a reply.
    pub requests_unanswered: u64,
    /// Requests that the application took and refused, because it was overloaded.
    pub requests_overloaded: u64,
    /// Requests that the application took and whose callers stopped waiting before it replied.
    pub requests_cancelled: u64,
    /// Replies that did not get through.
    pub responses_failed: u64,
    /// Requests that were refused because this endpoint was closing. The application has not seen
    /// them.
    pub requests_refused: u64,
    /// Requests that their callers withdrew, before or after the application took them, or whose callers are
    /// gone.
    pub requests_withdrawn: u64,
    /// Handlers that panicked; their requests are unanswered.
    pub handlers_panicked: u64,
    /// Requests, responses and withdrawals that cannot be parsed, and requests whose token is
    /// already in use.
    pub malformed: u64,
}
}
