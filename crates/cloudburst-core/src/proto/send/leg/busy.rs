//! The pauses of a message whose receiver had no room, before it tries again.

use crate::proto::limits::MAX_PAUSE;
use crate::time::Instant;
use core::time::Duration;

const FIRST_BUSY_WAIT: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Busy {
    /// The end of the pause, if there is one.
    until: Option<Instant>,
    /// The length of the next pause.
    wait: Duration,
}

impl Busy {
    pub(super) const fn new() -> Self {
        Self { until: None, wait: FIRST_BUSY_WAIT }
    }

    /// The end of the pause, if there is one.
    pub(super) const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Pauses, for twice as long as the last time.
    pub(super) fn pause(&mut self, now: Instant) {
        self.until = Some(now + self.wait);
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
}
