//! Whether a peer answers, and what may be sent to it while it does not.

use super::recovery::{backoff, probes};
use crate::id::MessageId;
use crate::proto::indexed::Indexed;
use crate::time::Instant;
use core::time::Duration;

/// The minimum time for which a peer with messages under way must not have answered before a
/// handshake checks it, and before only probes are sent to it.
const MIN_UNRESPONSIVE: Duration = Duration::from_millis(50);
/// The minimum number of messages that get probes in one period. Two that lost all their symbols at
/// once do not wait for each other.
// The credit is the peer's. When each message had its own, 4,000 messages of one symbol to an
// unresponsive peer sent 240,000 symbols in a second; now each is sent once, and then 80 a second.
const PROBED_AT_ONCE: u32 = 2;

/// Whether one peer answers.
///
/// The time without an answer begins with the first ACK request since the peer was last heard from.
/// When an answer is overdue, symbols that messages would repeat become probes. The peer has a
/// credit of probes for each *period*, however many messages wait for it. Periods grow as the RTOs
/// of a block do. Once the peer is *unresponsive*, its messages are paused: nothing but probes is
/// sent.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    unanswered_since: Option<Instant>,
    unresponsive: bool,
    periods: u32,
    /// Probes left in this period.
    credit: u32,
    next_period_at: Option<Instant>,
    /// Messages that wait for a probe, by when they may have one.
    pub(super) waiting: Indexed<MessageId, Instant>,
}

/// The messages that may continue because a peer was heard from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// None: no message waited for a probe, so that none has paused.
    None,
    /// Those that waited for a probe.
    Waiting(Vec<MessageId>),
    /// All, and connects end.
    All,
}

impl Liveness {
    /// Records that a symbol that requests an ACK is being sent. Returns whether it is the first
    /// one since the peer was last heard from.
    pub(super) fn on_ack_request(&mut self, now: Instant) -> bool {
        let is_first = self.unanswered_since.is_none();
        self.unanswered_since.get_or_insert(now);
        is_first
    }

    /// Starts over: the peer was heard from, or nothing waits for it any more.
    pub(super) fn reset(&mut self) -> Resume {
        self.unanswered_since = None;
        if !self.unresponsive && self.waiting.is_empty() {
            self.periods = 0;
            self.credit = 0;
            self.next_period_at = None;
            return Resume::None;
        }
        let Self { unresponsive, waiting, .. } = core::mem::take(self);
        let waiting = waiting.iter().map(|(id, _)| id);
        if unresponsive { Resume::All } else { Resume::Waiting(waiting.collect()) }
    }

    /// Whether an answer is overdue.
    pub(super) fn is_overdue(&self, now: Instant, rto: Duration) -> bool {
        self.unanswered_since.is_some_and(|since| since + rto <= now)
    }

    /// When the peer becomes unresponsive.
    pub(super) fn unresponsive_at(&self, rto: Duration) -> Option<Instant> {
        self.unanswered_since.map(|since| since + (rto * 8).max(MIN_UNRESPONSIVE))
    }

    /// Whether nothing but probes may be sent.
    pub(super) const fn is_unresponsive(&self) -> bool {
        self.unresponsive
    }

    /// Marks the peer as unresponsive: the caller must pause all messages.
    // Whatever is sent now would be lost, and HELLOs look for the peer at the same time.
    pub(super) fn set_unresponsive(&mut self) {
        self.unresponsive = true;
    }

    /// Queues a message that has already had probes in this period.
    pub(super) fn push_again(&mut self, now: Instant, id: MessageId) {
        self.waiting.set(id, Some(self.next_period_at.unwrap_or(now)));
    }

    /// The message that may send probes now, and how many: at most the credit that is left. The
    /// peer has `paths` paths.
    pub(super) fn next_probe(
        &mut self,
        now: Instant,
        rto: Duration,
        paths: usize,
    ) -> Option<(MessageId, u32)> {
        let id = self.waiting.first()?;
        if self.waiting.first_rank().is_some_and(|at| at > now) {
            return None;
        }
        if self.next_period_at.is_none_or(|at| at <= now) {
            self.periods = self.periods.saturating_add(1);
            self.next_period_at = Some(now + backoff(rto, self.periods));
            self.credit = PROBED_AT_ONCE * probes(paths);
        }
        (self.credit > 0).then_some((id, self.credit))
    }

    /// Subtracts `probes`, which a message was granted, from the credit.
    pub(super) fn on_granted(&mut self, probes: u32) {
        self.credit = self.credit.saturating_sub(probes);
    }

    /// When a message may have probes, if any waits for some.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let waiting = self.waiting.first_rank()?;
        let next_period_at = self.next_period_at.filter(|_| self.credit == 0);
        Some(next_period_at.map_or(waiting, |at| at.max(waiting)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_millis(1);
    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn waiting(messages: u64) -> Liveness {
        let mut liveness = Liveness::default();
        liveness.on_ack_request(START);
        for id in 0..messages {
            liveness.waiting.set(MessageId(id), Some(START));
        }
        liveness
    }

    /// The number of probes in 10 s, if each of `messages` messages takes 4 of them and waits
    /// again.
    fn probes_sent(messages: u64) -> u32 {
        let mut liveness = waiting(messages);
        let mut sent = 0;
        let mut now = START + RTO;
        while now < START + Duration::from_secs(10) {
            while let Some((id, credit)) = liveness.next_probe(now, RTO, 4) {
                liveness.waiting.remove(id);
                liveness.on_granted(credit.min(4));
                sent += credit.min(4);
                liveness.push_again(now, id);
            }
            now = liveness.wake_at().unwrap();
        }
        sent
    }

    #[test]
    fn many_messages_have_no_more_probes_than_few() {
        let sent = probes_sent(4_000);
        assert_eq!(sent, probes_sent(2));
        assert_eq!(sent, 2 * probes_sent(1), "each has them once in a period");
        assert!((800..1_200).contains(&sent), "eight in 100 ms, and more at first: {sent}");
    }

    #[test]
    fn an_answer_resumes_messages_that_waited_for_probes_and_all_of_an_unresponsive_peer() {
        let mut liveness = waiting(0);
        assert_eq!(liveness.reset(), Resume::None);
        let mut liveness = waiting(2);
        assert_eq!(liveness.reset(), Resume::Waiting(vec![MessageId(0), MessageId(1)]));
        assert_eq!(liveness.reset(), Resume::None);
        let mut liveness = waiting(2);
        assert_eq!(liveness.unresponsive_at(RTO), Some(START + MIN_UNRESPONSIVE));
        liveness.set_unresponsive();
        assert_eq!(liveness.reset(), Resume::All);
        assert!(!liveness.is_unresponsive());
        assert!(!liveness.is_overdue(START + MIN_UNRESPONSIVE, RTO));
    }
}
