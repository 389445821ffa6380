//! The settings of one message.

use crate::code::Code;
use crate::config::{self, BurstPolicy, ConfigError, Parameters};
use core::time::Duration;

/// The settings of one message, where they differ from the endpoint's configuration.
///
/// # Example
///
/// ```
/// # use cloudburst_core::code::Code;
/// # use cloudburst_core::config::BurstPolicy;
/// # use cloudburst_core::proto::SendOptions;
/// # use core::time::Duration;
/// let urgent = SendOptions::default()
///     .priority(SendOptions::MAX_PRIORITY)
///     .deadline(Duration::from_millis(50));
/// // The paper's code, and its Algorithm 1.
/// let lt: Code = "lt:d=5".parse()?;
/// let as_in_the_paper = urgent.code(lt).policy(BurstPolicy::UntilStop);
/// assert_eq!(as_in_the_paper.priority, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SendOptions {
    /// How long the message may take.
    pub deadline: Option<Duration>,
    /// The code to send it in.
    pub code: Option<Code>,
    /// The policy by which it is burst.
    pub policy: Option<BurstPolicy>,
    /// How urgent it is, from 0 to [`MAX_PRIORITY`](Self::MAX_PRIORITY), the most urgent. Default
    /// [`DEFAULT_PRIORITY`](Self::DEFAULT_PRIORITY).
    ///
    /// Of this endpoint's messages that have something to send, the more urgent ones go first, and
    /// within a level the shorter ones. But every eighth scheduling quantum goes to the message
    /// that has waited longest, so that none starves. Neither the network nor the receiver learns
    /// the priority.
    pub priority: u8,
    /// Whether it waits in line while there is no capacity for it
    /// ([`Limits`](crate::config::Limits)), as long as the deadline allows. Default true. Otherwise,
    /// it is refused at once with [`StartError::Full`](crate::error::StartError::Full) or
    /// [`StartError::TooManyCalls`](crate::error::StartError::TooManyCalls).
    pub wait: bool,
}

impl SendOptions {
    /// The most urgent `priority`, 7.
    pub const MAX_PRIORITY: u8 = 7;
    /// The default `priority`, 4.
    pub const DEFAULT_PRIORITY: u8 = 4;

    /// Sets [`deadline`](Self#structfield.deadline).
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets [`priority`](Self#structfield.priority).
    #[must_use]
    pub const fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets [`code`](Self#structfield.code).
    #[must_use]
    pub const fn code(mut self, code: Code) -> Self {
        self.code = Some(code);
        self
    }

    /// Sets [`policy`](Self#structfield.policy).
    #[must_use]
    pub const fn policy(mut self, policy: BurstPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets [`wait`](Self#structfield.wait).
    #[must_use]
    pub const fn wait(mut self, wait: bool) -> Self {
        self.wait = wait;
        self
    }

    /// The policy of a message of `len` bytes.
    pub(super) fn policy_for(&self, len: usize, config: &Parameters) -> BurstPolicy {
        self.policy.unwrap_or(if len >= config.pull_above {
            BurstPolicy::Pulled { window: None }
        } else {
            config.policy
        })
    }

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
        Self {
            deadline: None,
            code: None,
            policy: None,
            priority: Self::DEFAULT_PRIORITY,
            wait: true,
        }
    }
}
