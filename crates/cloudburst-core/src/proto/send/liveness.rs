//! Whether a peer answers, and what may be sent to it while it does not.

use super::recovery::retries;
use crate::id::MessageId;
use crate::proto::indexed::Indexed;
use crate::proto::limits::MAX_BACKOFF;
use crate::time::Instant;
use core::time::Duration;

/// The minimum time for which a peer must not have answered before it is unresponsive.
const MIN_UNRESPONSIVE: Duration = Duration::from_millis(50);
/// The number of messages that may retry in one period while a peer is late. Two that lost all
/// their symbols at once do not wait for each other.
const LATE_MESSAGES: u32 = 2;

/// The wait after the first attempt at a handshake, which doubles with each up to [`MAX_ATTEMPT`].
const FIRST_ATTEMPT: Duration = Duration::from_millis(1);
const MAX_ATTEMPT: Duration = Duration::from_millis(200);
/// Attempts addressed only to the owner of a session at a port of its own, before other endpoints
/// may answer, and by the paths that the peer has, before others are tried: about 0.25 s.
// Many outages last longer, but with more attempts, a peer whose endpoint is gone would wait for
// longer.
const ENOUGH_ATTEMPTS: u32 = 8;
/// The maximum number of packets in one attempt at a handshake.
// With three of four spines dead and 16 hashed ports at both ends, 5 of 8 transfers arrived within
// 10 s by one HELLO at a time, and 39 of 40 this way.
const MAX_COPIES: usize = 16;

/// What is known of a peer.
// There is no state for a peer that is gone: one that is back within a deadline must be found. Whether calls
// still depend on one is not asked here, but of its checks (`LostChecks`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// There is no session, or the peer may no longer hold it.
    #[default]
    Unverified,
    /// It answers, or no ACK request has been outstanding for long. It is *late* once an ACK request has not been
    /// answered for an RTO.
    Responsive,
    /// It has not answered for max(8 RTO, 50 ms).
    Unresponsive,
}

/// Whether one peer answers. `docs/architecture.md` has the diagram of its states, and a table of
/// what may be sent in each.
///
/// The time without an answer begins with the first ACK request since the peer was last heard from.
/// From an RTO on, what messages would repeat are *retries* out of a credit of the peer. The credit is
/// for a *period*, half as long as the time without an answer, from an RTO to [`MAX_BACKOFF`], however
/// many messages wait. The attempts at a handshake, which finds out whether a peer holds the session
/// or has restarted, are counted and timed here, too.
// When each message had its own credit, 4,000 messages of one symbol to an unresponsive peer sent
// 240,000 symbols in a second. The credit is for a period and never for an outage, so that a message
// within its deadline goes out whenever its peer is back.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    state: State,
    /// When the peer held the session for the last time that is known.
    last_heard: Instant,
    unanswered_since: Option<Instant>,
    /// Retries left in this period.
    credit: u32,
    period_ends: Instant,
    /// Attempts at the handshake under way.
    attempts: u32,
    /// The last attempt in which a RETRY was answered.
    replied_in: u32,
    /// HELLOs and OPENs of the last attempt that are still to be sent.
    hellos: usize,
    /// Whether a packet of the last attempt was refused.
    is_refused: bool,
    /// When another attempt is due; `None` while `hellos` are to be sent, and without a handshake.
    attempt_at: Option<Instant>,
    /// Messages that wait for a retry, in turn.
    pub(super) waiting: Indexed<MessageId, u64>,
}

/// The number of packets that must be refused.
const CLOSED_AFTER: u32 = 3;
/// The time over which they must be: an endpoint that is replaced on its port leaves it closed for a moment.
// The HELLOs of a handshake leave after 0, 1, 3, 7 and 15 ms. Linux answers six packets of a host at once,
// and then one a second: no more than five are needed.
const CLOSED_FOR: Duration = Duration::from_millis(5);
/// How long a refusal counts. A caller that tries again soon need not wait for as many again.
const COUNTS_FOR: Duration = Duration::from_secs(10);
/// The shortest time between two handshakes with a peer that begin because of a report that cannot be
/// verified.
const MIN_HANDSHAKE_INTERVAL: Duration = Duration::from_millis(200);

/// Refusals of packets to one peer since it was last heard from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusals {
    count: u32,
    first: Instant,
    last: Instant,
    handshake_at: Option<Instant>,
}

impl Refusals {
    /// Counts a refusal. `heard` is when the peer was last heard from. Returns whether the port is closed.
    pub(super) fn is_closed_after(&mut self, now: Instant, heard: Option<Instant>) -> bool {
        let is_heard = heard.is_some_and(|heard| heard >= self.last);
        if self.count == 0 || is_heard || now.saturating_since(self.last) > COUNTS_FOR {
            self.count = 0;
            self.first = now;
        }
        self.count = self.count.saturating_add(1);
        self.last = now;
        let is_closed =
            self.count >= CLOSED_AFTER && now.saturating_since(self.first) >= CLOSED_FOR;
        if is_closed {
            // What has to end is looked for again after as long, not with each message of a flood.
            self.first = now;
        }
        is_closed
    }

    /// Starts over: the peer, or another endpoint at its port, has answered.
    pub(super) const fn clear(&mut self) {
        self.count = 0;
    }

    pub(super) fn may_begin_handshake(&mut self, now: Instant) -> bool {
        let may =
            self.handshake_at.is_none_or(|at| now.saturating_since(at) >= MIN_HANDSHAKE_INTERVAL);
        if may {
            self.handshake_at = Some(now);
        }
        may
    }
}

/// The messages that may continue because a peer was heard from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// Those that waited for a retry because an answer was late.
    Waiting(Vec<MessageId>),
    /// All, and connects end.
    All,
}

impl Liveness {
    /// Whether bursts may be sent.
    pub(super) fn is_responsive(&self) -> bool {
        self.state == State::Responsive
    }

    /// Whether packets of the session may be sent.
    pub(super) fn is_verified(&self) -> bool {
        self.state != State::Unverified
    }

    /// Whether nothing but retries and handshakes may be sent.
    pub(super) fn is_unresponsive(&self) -> bool {
        self.state == State::Unresponsive
    }

    pub(super) const fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// Records that the peer held the session at `at`. Returns the messages that may continue.
    #[must_use]
    pub(super) fn heard(&mut self, at: Instant) -> Resume {
        self.last_heard = at;
        let was_verified = self.is_verified();
        let resumed = self.reset();
        self.state = State::Responsive;
        if was_verified { resumed } else { Resume::All }
    }

    /// Handles an answer to a packet that was sent at `sent_at`, if that is known. Returns the
    /// messages that may continue, and whether the peer then held the session.
    ///
    /// The answer may be old, above all if the process slept. It proves that the peer had the
    /// session when the packet arrived, but the peer may have forgotten it since. Therefore it does
    /// not verify a session.
    #[must_use]
    pub(super) fn answered(&mut self, sent_at: Option<Instant>) -> (Resume, bool) {
        if !self.is_verified() {
            return (Resume::Waiting(Vec::new()), false);
        }
        let is_newer = sent_at.is_some_and(|at| at >= self.last_heard);
        if let Some(at) = sent_at.filter(|_| is_newer) {
            self.last_heard = at;
        }
        (self.reset(), is_newer)
    }

    /// Waits for no answer any more: the peer was heard from, or nothing waits for it.
    pub(super) fn reset(&mut self) -> Resume {
        self.unanswered_since = None;
        self.credit = 0;
        self.period_ends = Instant::ZERO;
        let waiting = if self.waiting.is_empty() {
            Vec::new()
        } else {
            core::mem::take(&mut self.waiting).iter().map(|(id, _)| id).collect()
        };
        if self.is_unresponsive() {
            self.state = State::Responsive;
            return Resume::All;
        }
        Resume::Waiting(waiting)
    }

    /// Handles a sign that the peer no longer holds the session. Returns whether it was verified:
    /// the caller must then reschedule all messages.
    pub(super) fn unverify(&mut self) -> bool {
        let was_verified = self.is_verified();
        drop(self.reset());
        self.state = State::Unverified;
        was_verified
    }

    /// Records that a symbol that requests an ACK is being sent. Returns whether it is the first
    /// one since the peer was last heard from.
    pub(super) fn on_ack_request(&mut self, now: Instant) -> bool {
        let is_first = self.unanswered_since.is_none();
        self.unanswered_since.get_or_insert(now);
        is_first
    }

    /// Whether an answer is overdue.
    pub(super) fn is_late(&self, now: Instant, rto: Duration) -> bool {
        self.unanswered_since.is_some_and(|since| since + rto <= now)
    }

    /// Becomes unresponsive if that is due. Returns whether it does: all messages must wait then.
    pub(super) fn becomes_unresponsive(&mut self, now: Instant, rto: Duration) -> bool {
        let becomes = self.unresponsive_at(rto).is_some_and(|at| at <= now);
        if becomes {
            // Whatever is sent now would be lost, and HELLOs look for the peer at the same time.
            self.state = State::Unresponsive;
        }
        becomes
    }

    /// Begins a period if one is due and a message waits for it. The peer has `paths` paths.
    pub(super) fn begin_period(&mut self, now: Instant, rto: Duration, paths: usize) {
        if self.waiting.is_empty() || self.period_ends > now {
            return;
        }
        let waited = self.unanswered_since.map_or(rto, |since| now.saturating_since(since));
        self.period_ends = now + (waited / 2).max(rto).min(MAX_BACKOFF);
        self.credit = if self.is_unresponsive() {
            // HELLOs look for it on all paths at the same time.
            retries(paths / 2)
        } else {
            LATE_MESSAGES * retries(paths)
        };
    }

    /// When the peer becomes unresponsive.
    fn unresponsive_at(&self, rto: Duration) -> Option<Instant> {
        let since = self.unanswered_since.filter(|_| self.is_responsive())?;
        Some(since + (rto * 8).max(MIN_UNRESPONSIVE))
    }

    /// When it becomes unresponsive, or a period or an attempt is due, whichever is earliest.
    pub(super) fn wake_at(&self, rto: Duration) -> Option<Instant> {
        let period = (self.credit == 0 && !self.waiting.is_empty()).then_some(self.period_ends);
        [self.unresponsive_at(rto), period, self.attempt_at].into_iter().flatten().min()
    }

    /// Whether a message may retry now.
    pub(super) fn may_retry(&self) -> bool {
        self.credit > 0 && !self.waiting.is_empty()
    }

    /// Takes the message whose turn it is to retry from those that wait. The credit is returned
    /// with it.
    pub(super) fn take_retry(&mut self) -> Option<(MessageId, u32)> {
        if self.credit == 0 {
            return None;
        }
        Some((self.waiting.pop_first()?, self.credit))
    }

    /// Subtracts `retries`, which a message was granted, from the credit.
    pub(super) fn on_granted(&mut self, retries: u32) {
        self.credit = self.credit.saturating_sub(retries);
    }

    /// Makes an attempt at a handshake due, unless packets of the last one are still to be sent.
    pub(super) fn seek(&mut self, now: Instant) {
        self.attempt_at = (self.hellos == 0).then_some(now);
    }

    /// Ends the attempts at a handshake.
    pub(super) fn end_attempts(&mut self) {
        self.attempts = 0;
        self.replied_in = 0;
        self.hellos = 0;
        self.is_refused = false;
        self.attempt_at = None;
    }

    /// Whether an attempt is due at `now`, or a handshake because the peer is unresponsive.
    pub(super) fn needs_attempt(&self, now: Instant) -> bool {
        let seeks = self.hellos > 0 || self.attempt_at.is_some();
        self.attempt_is_due(now) || self.is_unresponsive() && !seeks
    }

    /// Whether another attempt is due.
    pub(super) fn attempt_is_due(&self, now: Instant) -> bool {
        self.attempt_at.is_some_and(|at| at <= now)
    }

    /// Whether enough attempts have gone unanswered.
    pub(super) const fn has_tried_enough(&self) -> bool {
        self.attempts >= ENOUGH_ATTEMPTS
    }

    /// Begins another attempt, over `paths` paths. The first attempts send two HELLOs, because one
    /// path may be a black hole. Without an answer, later attempts send more and more, because most
    /// paths may be black holes in one direction or the other, and each HELLO may be answered on
    /// another reverse path. After one that was refused, a single HELLO is enough, and the peer's host does
    /// not tell of many.
    pub(super) fn attempt(&mut self, paths: usize) {
        let copies = (self.attempts as usize).max(paths.min(2));
        let refused = core::mem::take(&mut self.is_refused);
        self.hellos = if refused { 1 } else { copies.min(MAX_COPIES).min(2 * paths) };
        self.attempts += 1;
        self.attempt_at = None;
    }

    /// The number of attempts begun, while packets of the last one are still to be sent.
    pub(super) fn attempt_to_send(&self) -> Option<u32> {
        (self.hellos > 0).then_some(self.attempts)
    }

    /// Whether to answer a RETRY with an OPEN. Each attempt answers one, so that a responder that
    /// refuses every token gets packets no faster than one that does not answer.
    pub(super) const fn takes_retry(&self) -> bool {
        self.replied_in < self.attempts
    }

    /// Answers a RETRY within this attempt. Returns the number of attempts begun.
    pub(super) fn on_retry(&mut self) -> u32 {
        self.replied_in = self.attempts;
        self.hellos = self.hellos.max(1);
        self.attempt_at = None;
        self.attempts
    }

    /// Records that a packet of the last attempt was refused.
    pub(super) const fn on_refused(&mut self) {
        self.is_refused = true;
    }

    /// Records that a HELLO or an OPEN is being sent, to a responder that takes `least` to answer, as far as
    /// is known.
    pub(super) fn on_hello_sent(&mut self, now: Instant, least: Duration) {
        self.hellos = self.hellos.saturating_sub(1);
        if self.hellos == 0 {
            let doublings = self.attempts.saturating_sub(1).min(16);
            let wait = FIRST_ATTEMPT.saturating_mul(1 << doublings).max(least).min(MAX_ATTEMPT);
            self.attempt_at = Some(now + wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_millis(1);
    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn waiting(messages: u64) -> Liveness {
        let mut liveness = Liveness::default();
        assert_eq!(liveness.heard(START), Resume::All);
        liveness.on_ack_request(START);
        for id in 0..messages {
            liveness.waiting.push_back(MessageId(id));
        }
        liveness
    }

    /// The number of retries in `time`, if each of `messages` messages takes one at a time.
    fn retries_sent(messages: u64, time: Duration) -> u32 {
        let mut liveness = waiting(messages);
        let mut sent = 0;
        let mut now = START + RTO;
        while now < START + time {
            liveness.becomes_unresponsive(now, RTO);
            liveness.begin_period(now, RTO, 4);
            while let Some((id, _)) = liveness.take_retry() {
                liveness.on_granted(1);
                liveness.waiting.push_back(id);
                sent += 1;
            }
            now = liveness.wake_at(RTO).unwrap();
        }
        sent
    }

    #[test]
    fn retries_are_bounded_in_rate_whatever_waits_and_never_in_total() {
        for seconds in [10, 100, 1_000] {
            let sent = retries_sent(4_000, Duration::from_secs(seconds));
            assert_eq!(sent, retries_sent(1, Duration::from_secs(seconds)));
            let bounds = 20 * seconds as u32..20 * seconds as u32 + 100;
            assert!(bounds.contains(&sent), "two in 100 ms, and more at first: {sent}");
        }
    }

    #[test]
    fn an_answer_resumes_messages_that_waited_for_retries_and_all_of_an_unresponsive_peer() {
        let unresponsive_at = START + MIN_UNRESPONSIVE;
        assert_eq!(waiting(0).reset(), Resume::Waiting(Vec::new()));
        let mut liveness = waiting(2);
        assert_eq!(liveness.reset(), Resume::Waiting(vec![MessageId(0), MessageId(1)]));
        assert_eq!(liveness.reset(), Resume::Waiting(Vec::new()));
        let mut liveness = waiting(2);
        assert_eq!(liveness.wake_at(RTO), Some(Instant::ZERO), "for a period");
        liveness.begin_period(START + RTO, RTO, 4);
        assert_eq!(liveness.wake_at(RTO), Some(unresponsive_at));
        assert!(!liveness.becomes_unresponsive(START + RTO, RTO));
        assert!(liveness.is_responsive() && liveness.is_late(START + RTO, RTO));
        assert!(liveness.becomes_unresponsive(unresponsive_at, RTO));
        assert!(liveness.is_unresponsive() && liveness.is_verified());
        assert_eq!(liveness.answered(Some(START)), (Resume::All, true));
        assert!(liveness.is_responsive() && !liveness.is_late(unresponsive_at, RTO));
    }

    #[test]
    fn answers_do_not_verify_a_session_that_the_peer_may_have_forgotten() {
        let mut liveness = waiting(1);
        assert!(liveness.unverify() && !liveness.unverify());
        assert_eq!(liveness.wake_at(RTO), None);
        assert_eq!(liveness.answered(Some(START)), (Resume::Waiting(Vec::new()), false));
        assert!(!liveness.is_verified());
        assert_eq!(liveness.heard(START), Resume::All);
    }
}
