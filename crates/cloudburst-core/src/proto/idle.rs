//! Detects that memory kept for reuse has not been used for a while.

use crate::time::Instant;
use core::time::Duration;

/// How often use is checked.
pub(super) const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A timer that runs while the memory is used at least once between checks.
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

    /// When [`check`](Self::check) is due; `None` if no memory was used recently, so that none
    /// should be kept.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns whether any memory was used since the last check, or `None` if no check is due.
    pub(super) fn check(&mut self, now: Instant) -> Option<bool> {
        if self.due.is_none_or(|at| at > now) {
            return None;
        }
        let used = core::mem::take(&mut self.used);
        self.due = used.then(|| now + CHECK_EVERY);
        Some(used)
    }
}
