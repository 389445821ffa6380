//! When memory that is kept for reuse has not been used for a while.

use crate::time::Instant;
use core::time::Duration;

/// How often use is checked.
pub(super) const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A timer that runs as long as something is used now and then.
#[derive(Debug, Default)]
pub(super) struct IdleTimer {
    /// Whether anything was used since the last check.
    used: bool,
    due: Option<Instant>,
}

impl IdleTimer {
    pub(super) fn on_use(&mut self, now: Instant) {
        self.used = true;
        self.due.get_or_insert(now + CHECK_EVERY);
    }

    /// When [`check`](Self::check) is due; `None`: nothing was used lately, and nothing is to be kept.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Says, if a check is due, whether anything was used since the last one.
    pub(super) fn check(&mut self, now: Instant) -> Option<bool> {
        if self.due.is_none_or(|at| at > now) {
            return None;
        }
        let used = core::mem::take(&mut self.used);
        self.due = used.then(|| now + CHECK_EVERY);
        Some(used)
    }
}
