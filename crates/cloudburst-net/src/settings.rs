//! The settings of an operation that has not begun.

use cloudburst_core::proto::SendOptions;
use std::time::Instant;

/// The settings of a message, a call, a reply or a connect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    pub(crate) options: SendOptions,
    /// If set, it counts instead of the deadline in `options`.
    pub(crate) until: Option<Instant>,
}

impl Settings {
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
