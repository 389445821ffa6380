//! The calls that wait for their responses, and what they have in common with requests.

use super::counters::CallCounters;
use super::frame::{CallId, Prepared, RequestId, parse_response};
use crate::error::{CallFailure, Indeterminate, Outcome};
use crate::id::{Incarnation, MessageId};
use crate::latency::LatencyHistogram;
use crate::proto::indexed::Indexed;
use crate::proto::{Departure, Message};
use crate::rng::Seed;
use crate::time::Instant;
use bytes::Bytes;
use core::time::Duration;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

/// How often the peers of calls and requests that have lasted for this long are watched.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// The silence after which a callee that was replaced at its address is gone.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// How long a call waits for its response once its callee is known to be gone.
const LAST_RESPONSE: Duration = Duration::from_millis(200);

/// The calls that an endpoint makes and serves.
#[derive(Debug)]
pub struct CallTable {
    /// The seed of tokens. Known tokens do not reveal others.
    seed: Seed,
    /// Tokens drawn so far.
    prepared: u64,
    /// How long a call may take by default.
    timeout: Duration,
    waiting: HashMap<CallId, Waiting>,
    /// The calls whose requests are being sent.
    requests: HashMap<MessageId, CallId>,
    /// Calls whose deadlines have not passed.
    timers: Indexed<CallId, Instant>,
    ended: VecDeque<(CallId, Result<Bytes, CallFailure>)>,
    /// Requests that the application has taken and not yet replied to, by when their callers stop
    /// waiting.
    pub(super) open: Indexed<RequestId, Instant>,
    /// Others of which the callers have stopped. A token stays in use until its request is released.
    pub(super) given_up: HashSet<RequestId>,
    pub(super) withdrawn: VecDeque<RequestId>,
    /// Requests that were withdrawn and not there, oldest first: they may still arrive.
    pub(super) early: Indexed<RequestId, u64>,
    /// When to watch the peers of calls and requests that have lasted for long.
    watch_at: Option<Instant>,
    /// The requests that the application had when this was last done.
    long_open: HashSet<RequestId>,
    pub(super) counters: CallCounters,
    /// Of calls that got an answer, from when they began.
    pub(in crate::proto) answered: LatencyHistogram,
    /// Of requests that the application answered, from when it took them.
    pub(in crate::proto) served: LatencyHistogram,
}

#[derive(Debug)]
struct Waiting {
    peer: SocketAddr,
    request: MessageId,
    since: Instant,
    until: Instant,
    callee: Callee,
}

/// What is known of the endpoint that a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callee {
    /// It may not have the request yet.
    Asked,
    HasRequest,
    /// This one has the request and may respond, but another endpoint is at its address since then, which
    /// must get no withdrawal.
    Replaced {
        incarnation: Incarnation,
        since: Instant,
    },
    /// It has the request and will not respond any more.
    Gone(Indeterminate),
}

/// A call whose caller no longer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proto) struct CancelledCall {
    pub(in crate::proto) request: MessageId,
    pub(in crate::proto) callee: SocketAddr,
    /// The time until which the caller would have waited.
    pub(in crate::proto) until: Instant,
    /// Whether the endpoint at that address has the request, if it is known.
    pub(in crate::proto) delivered: Option<bool>,
}

impl CallTable {
    pub(in crate::proto) fn new(seed: Seed, timeout: Duration) -> Self {
        Self {
            seed,
            prepared: 0,
            timeout,
            waiting: HashMap::new(),
            requests: HashMap::new(),
            timers: Indexed::default(),
            ended: VecDeque::new(),
            open: Indexed::default(),
            given_up: HashSet::new(),
            withdrawn: VecDeque::new(),
            early: Indexed::default(),
            watch_at: None,
            long_open: HashSet::new(),
            counters: CallCounters::default(),
            answered: LatencyHistogram::default(),
            served: LatencyHistogram::default(),
        }
    }

    /// Prepares a request with `bytes` for a call that may take `timeout`. `None` stands for the
    /// default deadline of messages.
    pub fn prepare(&mut self, timeout: Option<Duration>, bytes: &[u8]) -> Prepared {
        let token = self.seed.derive("call token", self.prepared);
        self.prepared += 1;
        let id = CallId(u64::from_be_bytes(token));
        Prepared::new(id, timeout.unwrap_or(self.timeout), bytes)
    }

    /// Registers a call to `peer`, which waits for its response from `now` on. `request` is being
    /// sent.
    pub(in crate::proto) fn enter(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        call: &Prepared,
        request: MessageId,
    ) {
        let until = now + call.timeout;
        self.timers.set(call.id, Some(until));
        self.waiting
            .insert(call.id, Waiting { peer, request, since: now, until, callee: Callee::Asked });
        self.requests.insert(request, call.id);
        self.will_watch(now);
    }

    /// Forgets a call whose caller no longer waits. Returns `None` if the call has ended.
    pub(in crate::proto) fn forget(&mut self, id: CallId) -> Option<CancelledCall> {
        let Waiting { peer, request, until, callee, .. } = self.remove(id)?;
        self.counters.calls_cancelled += 1;
        let delivered = (callee != Callee::Asked).then_some(callee == Callee::HasRequest);
        Some(CancelledCall { request, callee: peer, until, delivered })
    }

    /// The calls whose requests are no longer under way, so that their callees may have them, with
    /// the callees and the times until which the callers wait.
    pub(in crate::proto) fn waiting_at_callees(
        &self,
        is_under_way: impl Fn(MessageId) -> bool,
    ) -> Vec<(CallId, SocketAddr, Instant)> {
        let is_there = |call: &Waiting| matches!(call.callee, Callee::Asked | Callee::HasRequest);
        let waiting = self
            .waiting
            .iter()
            .filter(|(_, waiting)| is_there(waiting) && !is_under_way(waiting.request));
        let mut calls: Vec<_> =
            waiting.map(|(id, waiting)| (*id, waiting.peer, waiting.until)).collect();
        // Sorted, so that the order does not change from run to run.
        calls.sort_unstable_by_key(|(id, ..)| *id);
        calls
    }

    /// Handles the end of a request's send.
    pub(in crate::proto) fn on_request_ended(&mut self, request: MessageId, outcome: &Outcome) {
        let Some(id) = self.requests.remove(&request) else { return };
        let failure = match outcome {
            Outcome::Delivered(_) => {
                let Some(waiting) = self.waiting.get_mut(&id) else { return };
                if waiting.callee == Callee::Asked {
                    waiting.callee = Callee::HasRequest;
                }
                if self.timers.contains(id) {
                    return;
                }
                CallFailure::Deadline
            }
            Outcome::Rejected(rejection) => CallFailure::Rejected(*rejection),
            Outcome::Unknown(reason) => CallFailure::Unknown(*reason),
        };
        self.fail(id, failure);
    }

    /// Handles a response from any peer.
    pub(in crate::proto) fn on_response(&mut self, message: Message) {
        let Some((id, result)) = parse_response(message.bytes) else {
            return self.counters.malformed += 1;
        };
        let Some(call) = self.remove(id) else { return self.counters.responses_dropped += 1 };
        self.counters.responses_received += 1;
        if result.is_ok() {
            self.answered.record(message.arrived_at.saturating_since(call.since));
        }
        self.end(id, result);
    }

    /// Has [`watch`](Self::watch) done, as there is a call or a request.
    pub(super) fn will_watch(&mut self, now: Instant) {
        self.watch_at.get_or_insert(now + WATCH_EVERY);
    }

    /// The peers that calls and requests depend on which have lasted for some time, if it is time to watch
    /// them.
    // Short calls depend on no check, and a table of all of them would cost each of them more.
    pub(in crate::proto) fn watch(&mut self, now: Instant) -> Option<BTreeSet<SocketAddr>> {
        self.watch_at.take_if(|at| *at <= now)?;
        let is_long =
            |call: &&Waiting| call.callee != Callee::Asked && call.since + WATCH_EVERY <= now;
        let callees = self.waiting.values().filter(is_long).map(|call| call.peer);
        let open: HashSet<RequestId> = self.open.iter().map(|(id, _)| id).collect();
        let callers = open.intersection(&self.long_open).map(|id| id.peer);
        let peers = callees.chain(callers).collect();
        if !open.is_empty() || !self.waiting.is_empty() {
            self.watch_at = Some(now + WATCH_EVERY);
        }
        self.long_open = open;
        Some(peers)
    }

    /// Handles the departure of a peer: nobody waits for the responses to its requests. Calls whose requests it
    /// has end soon, unless it `may_answer`: a response may be on its way.
    /// `queued` requests of it were in the application's queue. `is_under_way` tells whether a request is
    /// still being sent: otherwise the peer may have it, although the table has not learned of that yet.
    pub(in crate::proto) fn on_departed(
        &mut self,
        now: Instant,
        departure: Departure,
        queued: u64,
        is_under_way: impl Fn(MessageId) -> bool,
    ) {
        self.counters.requests_withdrawn += queued;
        let Departure { peer, incarnation, why, may_answer } = departure;
        let is_of =
            |id: &RequestId| id.peer == peer && incarnation.is_none_or(|it| it == id.incarnation);
        let mut withdrawn: Vec<RequestId> =
            self.open.iter().map(|(id, _)| id).filter(is_of).collect();
        // Sorted, so that the order does not change from run to run.
        withdrawn.sort_unstable();
        for id in withdrawn {
            self.on_withdrawn(id, false);
        }
        for (id, call) in self.waiting.iter_mut().filter(|(_, call)| call.peer == peer) {
            let is_there = match call.callee {
                Callee::Asked => !is_under_way(call.request),
                Callee::HasRequest => true,
                Callee::Replaced { incarnation: of, .. } => incarnation == Some(of),
                Callee::Gone(_) => false,
            };
            if !is_there {
                continue;
            }
            if let Some(incarnation) = incarnation.filter(|_| may_answer) {
                call.callee = Callee::Replaced { incarnation, since: now };
            } else {
                call.callee = Callee::Gone(why);
                self.timers.set(*id, Some(call.until.min(now + LAST_RESPONSE)));
            }
        }
    }

    /// Ends the calls at callees that were replaced at their addresses, and are silent. `heard` tells when
    /// one was last heard from: while it has the request, it watches its caller.
    pub(in crate::proto) fn end_replaced(
        &mut self,
        now: Instant,
        heard: impl Fn(SocketAddr, Incarnation) -> Option<Instant>,
    ) {
        for (id, call) in &mut self.waiting {
            let Callee::Replaced { incarnation, since } = call.callee else { continue };
            let last = heard(call.peer, incarnation).map_or(since, |last| last.max(since));
            if now.saturating_since(last) >= SILENT_FOR {
                call.callee = Callee::Gone(Indeterminate::PeerGone);
                self.timers.set(*id, Some(now));
            }
        }
    }

    /// Ends the calls whose requests were delivered and whose deadlines have passed. Other calls
    /// end with the sends of their requests, which have the same deadlines. Tells the application
    /// about requests whose callers have stopped waiting.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.timers.pop_due(now) {
            let Some(call) = self.waiting.get(&id) else { continue };
            let failure = match call.callee {
                Callee::Asked => continue,
                Callee::Gone(why) if now < call.until => CallFailure::Unknown(why),
                _ => CallFailure::Deadline,
            };
            self.fail(id, failure);
        }
        while let Some(id) = self.open.pop_due(now) {
            self.on_given_up(id);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.timers.first_rank(), self.open.first_rank(), self.watch_at];
        timers.into_iter().flatten().min()
    }

    /// The next call that ended, and how.
    pub(in crate::proto) fn poll_ended(&mut self) -> Option<(CallId, Result<Bytes, CallFailure>)> {
        self.ended.pop_front()
    }

    /// The counters so far.
    pub fn counters(&self) -> CallCounters {
        self.counters
    }

    /// Calls that wait for their responses.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Asserts that the tables agree with each other, and that something will end every call.
    ///
    /// # Panics
    ///
    /// When they do not.
    pub fn check_invariants(&self) {
        for (id, waiting) in &self.waiting {
            let ends = self.timers.contains(*id) || self.requests.contains_key(&waiting.request);
            assert!(ends, "{id:?} has neither a deadline nor a request under way");
        }
        for (id, _) in self.timers.iter() {
            assert!(self.waiting.contains_key(&id), "{id:?} has ended");
        }
        self.check_requests();
    }

    /// Ends a call, if it waits.
    fn fail(&mut self, id: CallId, failure: CallFailure) {
        if self.remove(id).is_some() {
            self.end(id, Err(failure));
        }
    }

    /// Reports the end of a call that no longer waits.
    fn end(&mut self, id: CallId, result: Result<Bytes, CallFailure>) {
        let counters = &mut self.counters;
        *match &result {
            Ok(_) => &mut counters.calls_answered,
            Err(CallFailure::Rejected(_)) => &mut counters.calls_rejected,
            Err(CallFailure::Unknown(_)) => &mut counters.calls_unknown,
            Err(CallFailure::Deadline) => &mut counters.calls_expired,
            Err(CallFailure::Unanswered) => &mut counters.calls_unanswered,
            Err(CallFailure::Overloaded) => &mut counters.calls_overloaded,
        } += 1;
        self.ended.push_back((id, result));
    }

    fn remove(&mut self, id: CallId) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        self.timers.remove(id);
        self.requests.remove(&waiting.request);
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Indeterminate;

    const TIMEOUT: Duration = Duration::from_millis(10);
    const DUE: Instant = Instant::from_nanos(10_000_000);

    fn callee() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 2], 7))
    }

    fn calls() -> (CallTable, CallId) {
        calls_for(TIMEOUT)
    }

    fn calls_for(timeout: Duration) -> (CallTable, CallId) {
        let mut calls = CallTable::new(Seed::new([1; 32]), TIMEOUT);
        let call = calls.prepare(Some(timeout), b"a request");
        calls.enter(Instant::ZERO, callee(), &call, MessageId(3));
        calls.check_invariants();
        (calls, call.id())
    }

    const CALLER: Incarnation = Incarnation([3; 16]);

    fn forgotten(delivered: Option<bool>) -> CancelledCall {
        CancelledCall { request: MessageId(3), callee: callee(), until: DUE, delivered }
    }

    fn delivered() -> Outcome {
        let waited = Duration::ZERO;
        let completed_in = Duration::ZERO;
        Outcome::Delivered(crate::error::Receipt {
            bytes: 1,
            blocks: 1,
            source_symbols: 1,
            packets: 1,
            arrivals: Vec::new(),
            waited,
            completed_in,
        })
    }

    #[test]
    fn a_call_whose_callee_has_the_request_ends_by_its_deadline() {
        let (mut calls, id) = calls();
        calls.on_request_ended(MessageId(3), &delivered());
        assert_eq!(calls.poll_timeout(), Some(DUE));
        calls.handle_timeout(DUE);
        calls.check_invariants();
        assert_eq!(calls.poll_ended(), Some((id, Err(CallFailure::Deadline))));
        assert_eq!(calls.poll_ended(), None);
        assert_eq!(calls.watch(DUE + WATCH_EVERY), Some(BTreeSet::new()));
        assert_eq!(calls.poll_timeout(), None);
    }

    #[test]
    fn after_the_deadline_the_outcome_of_the_request_decides_the_failure() {
        for (outcome, failure) in [
            (delivered(), CallFailure::Deadline),
            (
                Outcome::Unknown(Indeterminate::Deadline),
                CallFailure::Unknown(Indeterminate::Deadline),
            ),
        ] {
            let (mut calls, id) = calls();
            calls.handle_timeout(DUE);
            calls.check_invariants();
            assert_eq!(calls.poll_ended(), None);
            calls.on_request_ended(MessageId(3), &outcome);
            assert_eq!(calls.poll_ended(), Some((id, Err(failure))));
        }
    }

    #[test]
    fn a_forgotten_call_gets_no_result_and_its_request_is_returned_for_cancelling() {
        let (mut calls, id) = calls();
        assert_eq!(calls.forget(id), Some(forgotten(None)));
        assert_eq!(calls.forget(id), None);
        calls.on_request_ended(MessageId(3), &delivered());
        calls.check_invariants();
        assert_eq!(calls.poll_ended(), None);
    }

    #[test]
    fn a_forgotten_call_returns_the_callee_that_has_its_request() {
        let (mut calls, id) = calls();
        calls.on_request_ended(MessageId(3), &delivered());
        assert_eq!(calls.forget(id), Some(forgotten(Some(true))));
        calls.check_invariants();
    }

    /// The departure of the incarnation `who` of the callee.
    fn departure(who: Incarnation, may_answer: bool) -> Departure {
        let why = Indeterminate::PeerRestarted;
        Departure { peer: callee(), incarnation: Some(who), why, may_answer }
    }

    #[test]
    fn a_call_whose_callee_was_replaced_waits_for_its_response_and_is_not_withdrawn_elsewhere() {
        let (mut calls, id) = calls();
        calls.on_request_ended(MessageId(3), &delivered());
        calls.on_departed(DUE, departure(CALLER, true), 0, |_| false);
        // The next one at the address leaves as well.
        calls.on_departed(DUE, departure(Incarnation([9; 16]), false), 0, |_| false);
        calls.check_invariants();
        calls.handle_timeout(DUE - Duration::from_nanos(1));
        assert_eq!(calls.poll_ended(), None);
        assert_eq!(calls.waiting_at_callees(|_| false), []);
        assert_eq!(calls.forget(id), Some(forgotten(Some(false))));
    }

    #[test]
    fn a_call_whose_callee_was_replaced_ends_when_that_leaves_or_is_silent() {
        for leaves in [false, true] {
            let (mut calls, id) = calls_for(SILENT_FOR * 9);
            calls.on_request_ended(MessageId(3), &delivered());
            calls.on_departed(Instant::ZERO, departure(CALLER, true), 0, |_| false);
            let why = if leaves {
                calls.on_departed(Instant::ZERO, departure(CALLER, false), 0, |_| false);
                Indeterminate::PeerRestarted
            } else {
                let heard = Instant::ZERO + Duration::from_secs(5);
                let almost = heard + SILENT_FOR - Duration::from_nanos(1);
                calls.end_replaced(almost, |_, who| (who == CALLER).then_some(heard));
                calls.handle_timeout(almost);
                assert_eq!(calls.poll_ended(), None);
                calls.end_replaced(heard + SILENT_FOR, |_, _| Some(heard));
                Indeterminate::PeerGone
            };
            calls.handle_timeout(Instant::ZERO + SILENT_FOR * 2);
            assert_eq!(calls.poll_ended(), Some((id, Err(CallFailure::Unknown(why)))));
        }
    }

    #[test]
    fn a_call_ends_when_its_callee_leaves_right_after_it_has_the_request() {
        let (mut calls, id) = calls_for(SILENT_FOR);
        // The table learns of the delivery later.
        calls.on_departed(Instant::ZERO, departure(CALLER, false), 0, |_| true);
        assert_eq!(calls.waiting[&id].callee, Callee::Asked);
        calls.on_departed(Instant::ZERO, departure(CALLER, false), 0, |_| false);
        calls.on_request_ended(MessageId(3), &delivered());
        calls.handle_timeout(Instant::ZERO + LAST_RESPONSE);
        let why = Indeterminate::PeerRestarted;
        assert_eq!(calls.poll_ended(), Some((id, Err(CallFailure::Unknown(why)))));
    }
}
