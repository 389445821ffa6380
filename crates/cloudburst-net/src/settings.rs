//! The settings of an operation that has not begun.

use cloudburst_core::proto::SendOptions;
use core::time::Duration;
use std::time::Instant;

/// The settings of a message, a call, a reply or a connect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    options: SendOptions,
    /// If set, it counts instead of the deadline in `options`.
    until: Option<Instant>,
}

impl Settings {
    pub(crate) const fn new(options: SendOptions) -> Self {
        Self { options, until: None }
    }

    pub(crate) const fn deadline(self, deadline: Duration) -> Self {
        Self::new(self.options.deadline(deadline))
    }

    pub(crate) const fn deadline_at(self, at: Instant) -> Self {
        Self { until: Some(at), ..self }
    }

    pub(crate) const fn options(self) -> SendOptions {
        self.options
    }

    /// Changes settings other than the deadline.
    pub(crate) const fn with(self, options: SendOptions) -> Self {
        Self { options, ..self }
    }

    /// The options of an operation that begins now.
    pub(crate) fn now(self) -> SendOptions {
        left(self.options, self.until)
    }
}

/// The options of an operation that must end at `until`, and begins now.
pub(crate) fn left(options: SendOptions, until: Option<Instant>) -> SendOptions {
    match until {
        Some(until) => options.deadline(until.saturating_duration_since(Instant::now())),
        None => options,
    }
}
