//! The settings of one message.

use crate::code::Code;
use crate::config::{self, BurstPolicy, Config, ConfigError};
use core::time::Duration;

/// The settings of one message, where they differ from the endpoint's configuration.
///
/// # Example
///
/// ```
/// # use cloudburst_core::proto::SendOptions;
/// # use core::time::Duration;
/// let urgent = SendOptions {
///     priority: SendOptions::MAX_PRIORITY,
///     deadline: Some(Duration::from_millis(50)),
///     ..SendOptions::default()
/// };
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendOptions {
    /// How long the message may take.
    pub deadline: Option<Duration>,
    /// The code to send it in.
    pub code: Option<Code>,
    /// The policy by which it is burst.
    pub policy: Option<BurstPolicy>,
    /// How urgent it is, from 0 to 7, the most urgent. Default 4.
    ///
    /// Of this endpoint's messages that have something to send, the more urgent ones go first, and
    /// within a level the shorter ones. But every eighth scheduling quantum goes to the message
    /// that has waited longest, so that none starves. Neither the network nor the receiver learns
    /// the priority.
    pub priority: u8,
}

impl SendOptions {
    /// The policy of a message of `len` bytes. A message whose code is not systematic is budgeted
    /// instead of pulled, because the receiver could not count what a block still needs.
    pub(super) fn policy(&self, len: usize, config: &Config) -> BurstPolicy {
        let code = self.code.unwrap_or(config.code);
        let default = if len >= config.pull_above {
            BurstPolicy::Pulled { window: None }
        } else {
            config.policy
        };
        match self.policy.unwrap_or(default) {
            BurstPolicy::Pulled { .. } if !code.is_systematic() => BurstPolicy::default(),
            policy => policy,
        }
    }

    /// The most urgent `priority`.
    pub const MAX_PRIORITY: u8 = 7;

    /// Checks the application's settings.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if let Some(policy) = &self.policy {
            policy.check()?;
        }
        if let Some(code) = self.code {
            config::check_code(code)?;
        }
        if self.priority > Self::MAX_PRIORITY {
            let value = self.priority.to_string();
            return Err(ConfigError { field: "priority", value, expected: "at most 7" });
        }
        Ok(())
    }
}

impl Default for SendOptions {
    fn default() -> Self {
        Self { deadline: None, code: None, policy: None, priority: 4 }
    }
}
