//! The silence of a peer that does not answer, and what may be sent to it in the meantime.

use super::recovery::{backoff, probes};
use crate::id::MessageId;
use crate::proto::timers::Timers;
use crate::time::Instant;
use core::time::Duration;

/// The minimum time that a peer with messages under way must be silent before a handshake checks
/// it, and before only probes are sent to it.
const MIN_SILENCE: Duration = Duration::from_millis(50);
/// The minimum number of messages that get probes in one period. Two that lost all their symbols at
/// once do not wait for each other.
const PROBED_AT_ONCE: u32 = 2;

/// The silence of one peer.
///
/// Silence begins with the first ACK request since the peer was last heard from. When an answer is
/// overdue, symbols that messages would repeat become probes. The peer has a credit of probes for
/// each *period*, however many messages wait for it. Periods grow as the waits of a block do. When
/// silence has *lasted*, all other symbols are held, too.
#[derive(Debug, Default)]
pub(super) struct Silence {
    since: Option<Instant>,
    lasting: bool,
    /// Periods so far.
    unanswered: u32,
    /// Probes left in this period.
    credit: u32,
    /// When the next period begins.
    next_at: Option<Instant>,
    /// Messages that wait for a probe, by when they may have one.
    waiting: Timers<MessageId>,
}

/// What may continue because a peer was heard from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GoOn {
    /// Nothing: no message waited for a probe, so that none has paused.
    None,
    /// Those that waited for a probe.
    Waiting(Vec<MessageId>),
    /// All, and connects end.
    All,
}

impl Silence {
    /// Records that a symbol that requests an ACK is being sent. Returns whether silence begins
    /// with it.
    pub(super) fn on_asked(&mut self, now: Instant) -> bool {
        let begins = self.since.is_none();
        self.since.get_or_insert(now);
        begins
    }

    /// Ends the silence: the peer was heard from, or nothing waits for it any more.
    pub(super) fn end(&mut self) -> GoOn {
        self.since = None;
        if !self.lasting && self.waiting.next().is_none() {
            (self.unanswered, self.credit, self.next_at) = (0, 0, None);
            return GoOn::None;
        }
        let Self { lasting, waiting, .. } = core::mem::take(self);
        if lasting { GoOn::All } else { GoOn::Waiting(waiting.into_iter().collect()) }
    }

    /// Whether an answer that takes `wait` is overdue.
    pub(super) fn is_overdue(&self, now: Instant, wait: Duration) -> bool {
        self.since.is_some_and(|since| since + wait <= now)
    }

    /// When the silence becomes lasting.
    pub(super) fn lasts_at(&self, wait: Duration) -> Option<Instant> {
        self.since.map(|since| since + (wait * 8).max(MIN_SILENCE))
    }

    /// Whether nothing but probes may be sent.
    pub(super) const fn is_lasting(&self) -> bool {
        self.lasting
    }

    /// Marks the silence as lasting: the caller must hold all messages.
    pub(super) fn set_lasting(&mut self) {
        self.lasting = true;
    }

    /// Messages that wait for a probe.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a message is queued at `key`. True if there is no key.
    pub(super) fn has(&self, key: Option<Instant>, id: MessageId) -> bool {
        self.waiting.has(key, id)
    }

    /// Queues a message, whose key is `key`, for a probe.
    pub(super) fn push(&mut self, now: Instant, key: &mut Option<Instant>, id: MessageId) {
        self.waiting.set(key, Some(now), id);
    }

    /// Queues a message that has already had probes in this period.
    pub(super) fn push_again(&mut self, now: Instant, key: &mut Option<Instant>, id: MessageId) {
        self.waiting.set(key, Some(self.next_at.unwrap_or(now)), id);
    }

    /// Removes a message, whose key is `key`, from those that wait for a probe.
    pub(super) fn remove(&mut self, key: &mut Option<Instant>, id: MessageId) {
        self.waiting.set(key, None, id);
    }

    /// The message that may send probes now, and how many: at most the credit that is left. The
    /// peer has `paths` paths and answers within `wait`.
    pub(super) fn next_probe(
        &mut self,
        now: Instant,
        wait: Duration,
        paths: usize,
    ) -> Option<(MessageId, u32)> {
        let id = self.waiting.first_due(now)?;
        if self.next_at.is_none_or(|at| at <= now) {
            self.unanswered = self.unanswered.saturating_add(1);
            self.next_at = Some(now + backoff(wait, self.unanswered));
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
        let waiting = self.waiting.next()?;
        let next_at = self.next_at.filter(|_| self.credit == 0);
        Some(next_at.map_or(waiting, |at| at.max(waiting)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(1);
    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn waiting(messages: u64) -> (Silence, Vec<Option<Instant>>) {
        let mut silence = Silence::default();
        silence.on_asked(START);
        let mut keys = vec![None; messages as usize];
        for (id, key) in keys.iter_mut().enumerate() {
            silence.push(START, key, MessageId(id as u64));
        }
        (silence, keys)
    }

    /// The number of probes in 10 s, if each of `messages` messages takes 4 of them and waits
    /// again.
    fn probes_sent(messages: u64) -> u32 {
        let (mut silence, mut keys) = waiting(messages);
        let (mut sent, mut now) = (0, START + WAIT);
        while now < START + Duration::from_secs(10) {
            while let Some((id, credit)) = silence.next_probe(now, WAIT, 4) {
                let key = &mut keys[id.0 as usize];
                silence.remove(key, id);
                silence.on_granted(credit.min(4));
                sent += credit.min(4);
                silence.push_again(now, key, id);
            }
            now = silence.wake_at().unwrap();
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
    fn who_is_heard_lets_go_on_what_waited_and_after_long_all() {
        let (mut silence, _) = waiting(0);
        assert_eq!(silence.end(), GoOn::None);
        let (mut silence, _) = waiting(2);
        assert_eq!(silence.end(), GoOn::Waiting(vec![MessageId(0), MessageId(1)]));
        assert_eq!(silence.end(), GoOn::None);
        let (mut silence, _) = waiting(2);
        assert_eq!(silence.lasts_at(WAIT), Some(START + MIN_SILENCE));
        silence.set_lasting();
        assert_eq!(silence.end(), GoOn::All);
        assert!(!silence.is_lasting() && !silence.is_overdue(START + MIN_SILENCE, WAIT));
    }
}
