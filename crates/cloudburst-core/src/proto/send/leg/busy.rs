//! The pauses of a message whose receiver had no room, before it tries again.

use crate::proto::limits::{MAX_PAUSE, MAX_STRETCH};
use crate::time::Instant;
use core::time::Duration;

const FIRST_BUSY_WAIT: Duration = Duration::from_millis(1);
/// Pauses are as many times longer as there are this many unfinished messages to the peer. Each
/// message thus probes it less often from twice this number on.
const FEW_MESSAGES: usize = 64;

#[derive(Debug)]
pub(super) struct Busy {
    /// The end of the pause, if there is one.
    until: Option<Instant>,
    /// The length of the next pause, if it is not stretched.
    wait: Duration,
    /// How many times longer the pauses are because of other messages to the peer.
    stretch: u32,
}

impl Busy {
    pub(super) const fn new() -> Self {
        Self { until: None, wait: FIRST_BUSY_WAIT, stretch: 1 }
    }

    /// The end of the pause, if there is one.
    pub(super) const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Stretches the pauses from the next one on. `unfinished` is the number of unfinished messages
    /// to the peer.
    pub(super) fn stretch(&mut self, unfinished: usize) {
        self.stretch = (unfinished / FEW_MESSAGES).clamp(1, MAX_STRETCH as usize) as u32;
    }

    /// Pauses, for twice as long as the last time.
    pub(super) fn pause(&mut self, now: Instant) {
        self.until = Some(now + self.wait * self.stretch);
        self.wait = (self.wait * 2).min(MAX_PAUSE);
    }

    /// Records that the receiver works on the message. Returns whether that ends a pause.
    pub(super) fn end(&mut self) -> bool {
        self.wait = FIRST_BUSY_WAIT;
        self.until.take().is_some()
    }

    /// Ends a pause, but keeps the length of the next.
    pub(super) const fn cut_short(&mut self) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_until_the_receiver_works_on_the_message() {
        let (mut busy, now) = (Busy::new(), Instant::ZERO);
        let mut waits = (0..9).map(|_| {
            busy.pause(now);
            busy.until().map(|until| until.saturating_since(now).as_millis())
        });
        assert_eq!(waits.next(), Some(Some(1)));
        assert_eq!(waits.next(), Some(Some(2)));
        assert_eq!(waits.last(), Some(Some(100)));
        assert!(busy.end() && !busy.end());
        busy.pause(now);
        assert_eq!(busy.until(), Some(now + FIRST_BUSY_WAIT));
    }

    #[test]
    fn pauses_are_longer_beside_many_messages_within_a_limit() {
        for (unfinished, longest) in [(1, 100), (127, 100), (128, 200), (255, 300), (5_000, 400)] {
            let (mut busy, now) = (Busy::new(), Instant::ZERO);
            busy.stretch(unfinished);
            (0..9).for_each(|_| busy.pause(now));
            assert_eq!(busy.until(), Some(now + Duration::from_millis(longest)), "{unfinished}");
        }
    }
}
