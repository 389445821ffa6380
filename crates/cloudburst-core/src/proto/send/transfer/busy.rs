//! The backoff of a message whose receiver had no capacity, before it tries again.

use crate::proto::limits::{MAX_BACKOFF, MAX_STRETCH};
use crate::time::Instant;
use core::time::Duration;

const FIRST_BACKOFF: Duration = Duration::from_millis(1);
/// Backoffs are as many times longer as there are this many unfinished messages to the peer. Each
/// message thus tries it less often from twice this number on.
const FEW_MESSAGES: usize = 64;

// A peer that is busy answers: it lacks capacity for this message, perhaps not for a shorter one. The
// pause is therefore the message's and not part of the peer's liveness.
#[derive(Debug)]
pub(super) struct Busy {
    /// The end of the backoff, if there is one.
    until: Option<Instant>,
    /// The length of the next backoff, if it is not stretched.
    delay: Duration,
    /// How many times longer backoffs are because of other messages to the peer.
    stretch: u32,
}

impl Busy {
    pub(super) const fn new() -> Self {
        Self { until: None, delay: FIRST_BACKOFF, stretch: 1 }
    }

    /// The end of the backoff, if there is one.
    pub(super) const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Stretches backoffs from the next one on. `unfinished` is the number of unfinished messages
    /// to the peer.
    pub(super) fn stretch(&mut self, unfinished: usize) {
        // 5,000 calls that an overloaded service does not take would send it 50,000 symbols a
        // second.
        self.stretch = (unfinished / FEW_MESSAGES).clamp(1, MAX_STRETCH as usize) as u32;
    }

    /// Backs off, for twice as long as the last time.
    pub(super) fn back_off(&mut self, now: Instant) {
        self.until = Some(now + self.delay * self.stretch);
        self.delay = (self.delay * 2).min(MAX_BACKOFF);
    }

    /// Records that the receiver works on the message. Returns whether that ends a backoff.
    pub(super) fn end(&mut self) -> bool {
        self.delay = FIRST_BACKOFF;
        self.until.take().is_some()
    }

    /// Ends a backoff, but keeps the length of the next.
    pub(super) const fn cut_short(&mut self) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoffs_double_until_the_receiver_works_on_the_message() {
        let mut busy = Busy::new();
        let now = Instant::ZERO;
        let mut waits = (0..9).map(|_| {
            busy.back_off(now);
            busy.until().map(|until| until.saturating_since(now).as_millis())
        });
        assert_eq!(waits.next(), Some(Some(1)));
        assert_eq!(waits.next(), Some(Some(2)));
        assert_eq!(waits.last(), Some(Some(100)));
        assert!(busy.end() && !busy.end());
        busy.back_off(now);
        assert_eq!(busy.until(), Some(now + FIRST_BACKOFF));
    }

    #[test]
    fn backoffs_are_longer_beside_many_messages_within_a_limit() {
        for (unfinished, longest) in [(1, 100), (127, 100), (128, 200), (255, 300), (5_000, 400)] {
            let mut busy = Busy::new();
            let now = Instant::ZERO;
            busy.stretch(unfinished);
            (0..9).for_each(|_| busy.back_off(now));
            assert_eq!(busy.until(), Some(now + Duration::from_millis(longest)), "{unfinished}");
        }
    }
}
