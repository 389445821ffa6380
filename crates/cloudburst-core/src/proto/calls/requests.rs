//! The requests that an endpoint serves, from when the application takes them to when it releases them.

use super::frame::{IncomingRequest, RequestId, parse_withdrawal};
use super::table::CallTable;
use crate::proto::Message;
use crate::time::Instant;

/// The maximum number of withdrawals that are remembered because they may have overtaken their requests.
// The oldest is displaced. Overtaking takes milliseconds, and its price is that a handler runs on.
const MAX_EARLY: usize = if cfg!(feature = "small-limits") { 8 } else { 1_024 };

/// What the application did with a request that it has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// It began to answer.
    Answered,
    /// It refused the request, because it is overloaded.
    Overloaded,
    /// It dropped the request.
    Dropped,
}

impl CallTable {
    /// Accepts a request for the application, which must [release](Self::release) it. Returns
    /// `None` if it has expired or is malformed.
    pub(crate) fn accept(&mut self, now: Instant, message: Message) -> Option<IncomingRequest> {
        let mut request = self.parse(now, message)?;
        request.taken_at = now;
        self.open.set(request.id(), Some(request.deadline));
        self.will_watch(now);
        self.counters.requests_received += 1;
        Some(request)
    }

    /// Parses a request that the application will not see. Returns `None` if it has expired or is
    /// malformed.
    pub(in crate::proto) fn refuse(
        &mut self,
        now: Instant,
        message: Message,
    ) -> Option<IncomingRequest> {
        let request = self.parse(now, message)?;
        self.counters.requests_refused += 1;
        Some(request)
    }

    fn parse(&mut self, now: Instant, message: Message) -> Option<IncomingRequest> {
        let is_in_use = |id| self.open.contains(id) || self.given_up.contains(&id);
        let request = IncomingRequest::parse(message).filter(|request| !is_in_use(request.id()));
        let Some(request) = request else {
            self.counters.malformed += 1;
            return None;
        };
        if self.early.remove(request.id()).is_some() {
            self.counters.requests_withdrawn += 1;
            return None;
        }
        if request.deadline <= now {
            self.counters.requests_expired += 1;
            return None;
        }
        Some(request)
    }

    /// Releases a request that the application has replied to or dropped.
    pub(crate) fn release(&mut self, now: Instant, request: &IncomingRequest, served: Served) {
        let awaited = self.forget_request(request.id()) && now < request.deadline;
        match served {
            Served::Answered => {
                self.counters.requests_answered += 1;
                self.served.record(now.saturating_since(request.taken_at));
            }
            Served::Overloaded => self.counters.requests_overloaded += 1,
            Served::Dropped if awaited => self.counters.requests_unanswered += 1,
            Served::Dropped => self.counters.requests_cancelled += 1,
        }
    }

    /// Releases a request of which the application knows that its caller no longer waits.
    pub(crate) fn release_withdrawn(&mut self, id: RequestId) {
        self.forget_request(id);
        self.counters.requests_cancelled += 1;
    }

    /// Whether the request's caller still waits.
    fn forget_request(&mut self, id: RequestId) -> bool {
        if self.given_up.remove(&id) {
            self.withdrawn.retain(|withdrawn| *withdrawn != id);
        }
        self.open.remove(id).is_some()
    }

    /// Whether the application has this request and its caller still waits.
    #[cfg(test)]
    pub(crate) fn is_open(&self, id: RequestId) -> bool {
        self.open.contains(id)
    }

    /// The number of requests that the application has and whose callers still wait.
    pub(crate) fn open_requests(&self) -> usize {
        self.open.len()
    }

    /// Releases all requests that the application has. Returns those whose callers still wait, with
    /// their deadlines, the most urgent one first.
    pub(in crate::proto) fn release_all(&mut self) -> Vec<(RequestId, Instant)> {
        self.given_up.clear();
        core::mem::take(&mut self.open).iter().collect()
    }

    /// The request that a message withdraws. Counts a message that is malformed.
    pub(in crate::proto) fn withdrawn_by(&mut self, message: &Message) -> Option<RequestId> {
        let id = parse_withdrawal(message);
        self.counters.malformed += u64::from(id.is_none());
        id
    }

    /// Handles the withdrawal of a request by its caller. If the application has the request, it
    /// learns of it. If nobody has it, the withdrawal may have overtaken it.
    pub(in crate::proto) fn on_withdrawn(&mut self, id: RequestId, was_queued: bool) {
        let was_open = self.open.remove(id).is_some();
        if was_open {
            self.on_given_up(id);
        } else if !was_queued && !self.given_up.contains(&id) && !self.early.contains(id) {
            self.early.push_back(id);
            if self.early.len() > MAX_EARLY {
                self.early.pop_first();
            }
        }
        self.counters.requests_withdrawn += u64::from(was_queued || was_open);
    }

    /// The next request that the application has and whose caller no longer waits.
    pub(in crate::proto) fn poll_withdrawn(&mut self) -> Option<RequestId> {
        self.withdrawn.pop_front()
    }

    /// Tells the application that the caller of a request that it has no longer waits.
    pub(super) fn on_given_up(&mut self, id: RequestId) {
        self.given_up.insert(id);
        self.withdrawn.push_back(id);
    }

    /// Counts a reply that did not get through.
    pub fn count_failed_response(&mut self) {
        self.counters.responses_failed += 1;
    }

    /// Counts a panic of one of the application's handlers.
    pub fn count_panicked(&mut self) {
        self.counters.handlers_panicked += 1;
    }

    /// Panics unless the tables of requests agree with each other.
    pub(super) fn check_requests(&self) {
        assert!(self.early.len() <= MAX_EARLY);
        for id in &self.given_up {
            assert!(!self.open.contains(*id), "the caller of {id:?} waits and does not");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Incarnation, MessageId};
    use crate::proto::calls::frame::Prepared;
    use crate::rng::Seed;
    use core::time::Duration;
    use std::net::SocketAddr;

    const TIMEOUT: Duration = Duration::from_millis(10);
    const DUE: Instant = Instant::from_nanos(10_000_000);
    const CALLER: Incarnation = Incarnation([3; 16]);

    fn caller() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], 7))
    }

    fn calls() -> CallTable {
        CallTable::new(Seed::new([1; 32]), TIMEOUT)
    }

    /// Offers the application the request of a caller with `call`.
    fn offered(calls: &mut CallTable, now: Instant, call: &Prepared) -> Option<IncomingRequest> {
        let peer = caller();
        let id = MessageId(0);
        let role = crate::wire::Role::Request;
        let message = Message {
            peer,
            incarnation: CALLER,
            id,
            role,
            arrived_at: now,
            bytes: call.frame.clone(),
        };
        let accepted = calls.accept(now, message);
        calls.check_invariants();
        accepted
    }

    #[test]
    fn a_token_is_in_use_until_the_application_releases_its_request() {
        for is_late in [false, true] {
            let mut calls = calls();
            let call = calls.prepare(None, b"another request");
            let request = offered(&mut calls, Instant::ZERO, &call).unwrap();
            let first = request.id();
            if is_late {
                calls.handle_timeout(DUE);
            }
            calls.on_withdrawn(first, false);
            assert_eq!((calls.open_requests(), calls.is_open(first)), (0, false));
            assert_eq!(offered(&mut calls, DUE, &call), None, "the application has it");
            assert_eq!(calls.counters().malformed, 1);
            assert_eq!((calls.poll_withdrawn(), calls.poll_withdrawn()), (Some(first), None));
            calls.release(DUE, &request, Served::Dropped);
            assert_eq!(calls.counters().requests_cancelled, 1);
            assert_eq!(offered(&mut calls, DUE, &call).unwrap().id(), first);
            assert_eq!((calls.open_requests(), calls.is_open(first)), (1, true));
        }
    }

    #[test]
    fn withdrawals_of_requests_that_are_not_there_are_bounded_and_take_effect_once() {
        let mut calls = calls();
        let requests: Vec<_> = (0..=MAX_EARLY).map(|_| calls.prepare(None, b"")).collect();
        for call in &requests {
            let id = RequestId { peer: caller(), incarnation: CALLER, call: call.id() };
            calls.on_withdrawn(id, false);
            calls.check_invariants();
        }
        assert!(offered(&mut calls, Instant::ZERO, &requests[0]).is_some(), "it was displaced");
        assert_eq!(offered(&mut calls, Instant::ZERO, &requests[1]), None);
        assert!(offered(&mut calls, Instant::ZERO, &requests[1]).is_some());
        assert_eq!(calls.counters().requests_withdrawn, 1);
    }

    #[test]
    fn releasing_a_request_discards_its_unreported_withdrawal() {
        let mut calls = calls();
        let call = calls.prepare(None, b"another request");
        let request = offered(&mut calls, Instant::ZERO, &call).unwrap();
        calls.on_withdrawn(request.id(), false);
        calls.release(Instant::ZERO, &request, Served::Dropped);
        assert_eq!(offered(&mut calls, Instant::ZERO, &call), Some(request));
        assert_eq!(calls.poll_withdrawn(), None, "that withdrawal was of the released request");
    }
}
