//! The clock of a host: it may stand still, and jump.

use cloudburst_core::time::Instant;

/// A clock that differs from the world's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// How many nanoseconds it is ahead of the world's.
    ahead: i128,
    /// What it shows while it stands still.
    stands_at: Option<Instant>,
}

impl Clock {
    /// What it shows at the world's time `now`; not less than zero.
    pub fn read(&self, now: Instant) -> Instant {
        self.stands_at.unwrap_or_else(|| instant(i128::from(now.as_nanos()) + self.ahead))
    }

    /// The world's time at which it shows `at`; `None` if it stands still before that.
    pub(crate) fn when(&self, at: Instant) -> Option<Instant> {
        match self.stands_at {
            Some(shown) => (at <= shown).then_some(Instant::ZERO),
            None => Some(instant(i128::from(at.as_nanos()) - self.ahead)),
        }
    }

    /// Stands still from the world's time `now` on.
    pub fn stop(&mut self, now: Instant) {
        self.stands_at = Some(self.read(now));
    }

    /// Runs again from the world's time `now` on. What has passed meanwhile is missing.
    pub fn start(&mut self, now: Instant) {
        if let Some(shown) = self.stands_at.take() {
            self.ahead = i128::from(shown.as_nanos()) - i128::from(now.as_nanos());
        }
    }

    /// Jumps this many nanoseconds forward, or backward.
    pub const fn jump(&mut self, nanos: i128) {
        self.ahead += nanos;
    }
}

fn instant(nanos: i128) -> Instant {
    Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}
