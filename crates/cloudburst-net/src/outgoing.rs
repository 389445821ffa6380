//! Messages, calls and replies that are about to be sent, with settings of their own.

#[cfg(doc)]
use crate::error::SendError;
use crate::settings::Settings;
use cloudburst_core::code::Code;
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::proto::SendOptions;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::time::Instant;

/// A message, a call or a reply that is about to be sent. Set the options that differ from the endpoint's
/// configuration, and await it.
///
/// Out-of-range settings are refused when it is sent: [`SendError::Option`].
///
/// # Example
///
/// ```
/// # use std::time::Duration;
/// # cloudburst_net::doc::run(async |client, server| {
/// let peer = server.local_addr();
/// client.send(peer, "urgent").priority(7).deadline(Duration::from_secs(1)).await?;
/// assert_eq!(server.recv().await?.bytes, "urgent");
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before it is awaited or begun"]
pub struct Outgoing<T> {
    pub(crate) operation: T,
    pub(crate) settings: Settings,
}

impl<T> Outgoing<T> {
    pub(crate) fn new(operation: T) -> Self {
        Self { operation, settings: Settings::default() }
    }

    /// How long it may take, from when it is first polled or [begun](Self::begin). Default:
    /// [`Config::deadline`](crate::Config::deadline). This includes the wait for capacity, if
    /// [`Limits::send_messages`](crate::Limits::send_messages) or `send_bytes` are reached, and the response
    /// to a call. If the deadline passes during that wait, the error is [`SendError::NotStarted`].
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings = self.settings.deadline(deadline);
        self
    }

    /// When it must have ended: a [deadline](Self::deadline) as a time, such as that of a request which this
    /// one serves. The last call of either counts.
    pub const fn deadline_at(mut self, at: Instant) -> Self {
        self.settings = self.settings.deadline_at(at);
        self
    }

    /// How urgent it is, from 0 to 7, the most urgent. Default 4. See
    /// [`SendOptions::priority`].
    pub const fn priority(mut self, priority: u8) -> Self {
        self.settings = self.settings.with(self.settings.options().priority(priority));
        self
    }

    /// The code to send it with. Default: [`Config::code`](crate::Config::code).
    pub const fn code(mut self, code: Code) -> Self {
        self.settings = self.settings.with(self.settings.options().code(code));
        self
    }

    /// The burst policy. Default: [`Config::policy`](crate::Config::policy).
    pub const fn policy(mut self, policy: BurstPolicy) -> Self {
        self.settings = self.settings.with(self.settings.options().policy(policy));
        self
    }

    /// Sets all options at once, the deadline included, for callers that keep them.
    pub const fn options(mut self, options: SendOptions) -> Self {
        self.settings = Settings::new(options);
        self
    }
}

/// The future of an [`Outgoing`] or a [`Connect`](crate::Connect) that is awaited. It holds a clone of the
/// endpoint, so it can be spawned: `tokio::spawn(endpoint.call(peer, "hello").into_future())`.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_without_options_has_those_of_the_endpoint() {
        assert_eq!(Outgoing::new(()).settings.now(), SendOptions::default());
        let options = Outgoing::new(())
            .deadline(Duration::from_secs(1))
            .priority(7)
            .code(Code::Rlf256)
            .policy(BurstPolicy::Oblivious)
            .settings
            .now();
        let expected = SendOptions::default()
            .deadline(Duration::from_secs(1))
            .priority(7)
            .code(Code::Rlf256)
            .policy(BurstPolicy::Oblivious);
        assert_eq!(options, expected);
    }

    #[test]
    fn of_several_deadlines_the_last_counts() {
        let soon = Duration::from_secs(1);
        let past = Instant::now();
        let deadline = |outgoing: Outgoing<()>| outgoing.settings.now().deadline;
        let outgoing = || Outgoing::new(()).deadline_at(past);
        assert_eq!(deadline(outgoing()), Some(Duration::ZERO));
        assert_eq!(deadline(outgoing().priority(7)), Some(Duration::ZERO));
        assert_eq!(deadline(outgoing().deadline(soon)), Some(soon));
        assert_eq!(deadline(outgoing().options(SendOptions::default())), None);
        let later = Outgoing::new(()).deadline(soon).deadline_at(past + 60 * soon);
        assert!(deadline(later).is_some_and(|left| left > soon && left < 60 * soon));
    }
}
