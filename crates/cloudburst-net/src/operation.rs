//! What an endpoint is asked to do: one builder of options, which tasks await and threads wait for.

use crate::driver::{Inner, block_on, block_on_for};
#[cfg(doc)]
use crate::error::SendError;
use crate::io::UdpIo;
use crate::names::Peer;
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::burst::Engine;
use cloudburst_core::code::Code;
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::proto::SendOptions;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use futures_util::future::Either;
use std::sync::Arc;
use std::time::Instant;

/// A message, a call, a reply, a connect or a receive that is about to begin. Set the options that differ from the
/// endpoint's configuration, and await it; a thread [waits](Self::wait) for it instead.
///
/// It holds a clone of the endpoint, so that it can be spawned: `tokio::spawn(endpoint.call(peer, "hello"))`.
/// Dropping it cancels what has begun. Out-of-range options are refused when it begins: [`SendError::Option`].
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
#[must_use = "nothing happens before it is awaited, waited for or begun"]
pub struct Operation<K: Kind> {
    /// `None` once it is polled.
    pub(crate) kind: Option<K>,
    pub(crate) options: K::Options,
    polled: Option<Pin<Box<dyn Future<Output = K::Output> + Send + Sync>>>,
}

/// What an [`Operation`] does.
pub trait Kind: Sized {
    /// Its options.
    type Options: Default;
    /// Its result.
    type Output;

    /// The engine that a waiting thread drives, if it still exists.
    #[doc(hidden)]
    fn engine(&self) -> Option<Arc<Engine<UdpIo>>>;

    /// The result, if it is there already: then nothing is allocated to wait for it.
    #[doc(hidden)]
    fn ready(&self) -> Option<Self::Output> {
        None
    }

    /// Runs the operation with `options`.
    fn run(
        self,
        options: Self::Options,
    ) -> impl Future<Output = Self::Output> + Send + Sync + 'static;
}

impl<K: Kind> Operation<K> {
    pub(crate) fn new(kind: K) -> Self {
        Self { kind: Some(kind), options: K::Options::default(), polled: None }
    }

    /// Blocks this thread until it has ended. Needs no runtime. Do not use it in async code.
    ///
    /// # Example
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let (client, server) = (cloudburst_net::doc::endpoint(), cloudburst_net::doc::endpoint());
    /// let receipt = client.send(server.local_addr(), "hello").wait()?;
    /// assert_eq!(receipt.bytes, 5);
    /// assert_eq!(server.recv().wait()?.bytes, "hello");
    /// assert!(server.recv().wait_for(Duration::ZERO).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(self) -> K::Output {
        if let Some(output) = self.ready() {
            return output;
        }
        let (engine, future) = self.begun();
        block_on(engine, future)
    }

    /// Like [`wait`](Self::wait), for at most `timeout`. `None` if it has not ended by then: it is cancelled, and
    /// nothing that arrives is lost.
    pub fn wait_for(self, timeout: Duration) -> Option<K::Output> {
        if let Some(output) = self.ready() {
            return Some(output);
        }
        let (engine, future) = self.begun();
        block_on_for(engine, timeout, future)
    }

    fn ready(&self) -> Option<K::Output> {
        self.kind.as_ref().and_then(K::ready)
    }

    // Not boxed, unlike what a task polls.
    fn begun(self) -> (Option<Arc<Engine<UdpIo>>>, impl Future<Output = K::Output>) {
        match self.kind {
            Some(kind) => (kind.engine(), Either::Left(kind.run(self.options))),
            None => (None, Either::Right(self.polled.expect("it is set when `kind` is taken"))),
        }
    }
}

impl<K: Kind<Options = Settings>> Operation<K> {
    /// How long it may take, from when it is first polled, waited for or begun. Default:
    /// [`Config::deadline`](crate::Config::deadline). This includes the look-up of a name, the wait for capacity,
    /// if [`Limits::send_messages`](crate::Limits::send_messages) or `send_bytes` are reached, and the response to a
    /// call. If the deadline passes before anything was sent, the error is [`SendError::NotStarted`].
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.options.deadline = Some(deadline);
        self.options.until = None;
        self
    }

    /// When it must have ended: a [deadline](Self::deadline) as a time, such as that of a request which this
    /// one serves. The last call of either counts.
    pub fn deadline_at(mut self, at: Instant) -> Self {
        self.options.until = Some(at);
        self
    }

    /// How urgent it is, from 0 to 7, the most urgent. Default 4. See
    /// [`SendOptions::priority`].
    pub fn priority(mut self, priority: u8) -> Self {
        self.options.options.priority = priority;
        self
    }

    /// The code to send it with. Default: [`Config::code`](crate::Config::code).
    pub fn code(mut self, code: Code) -> Self {
        self.options.options.code = Some(code);
        self
    }

    /// The burst policy. Default: [`Config::policy`](crate::Config::policy).
    pub fn policy(mut self, policy: BurstPolicy) -> Self {
        self.options.options.policy = Some(policy);
        self
    }

    /// Sets all options at once, the deadline included, for callers that keep them. Of a connect, only the deadline
    /// counts.
    pub fn options(mut self, options: SendOptions) -> Self {
        self.options = Settings { options, until: None };
        self
    }
}

// The future is pinned in its box, and the kind is moved there.
impl<K: Kind> Unpin for Operation<K> {}

impl<K: Kind + 'static> Future for Operation<K> {
    type Output = K::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<K::Output> {
        if let Some(output) = self.ready() {
            return Poll::Ready(output);
        }
        if let Some(kind) = self.kind.take() {
            let options = core::mem::take(&mut self.options);
            self.polled = Some(Box::pin(kind.run(options)));
        }
        let polled = self.polled.as_mut().expect("it is set when `kind` is taken");
        polled.as_mut().poll(context)
    }
}

impl<K: Kind + fmt::Debug> fmt::Debug for Operation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Bytes that go to a peer.
pub(crate) struct Parcel {
    pub(crate) inner: Arc<Inner>,
    pub(crate) peer: Peer,
    pub(crate) bytes: Bytes,
}

/// Shows the length of the payload, not the payload.
impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner: _, peer, bytes } = self;
        let mut shown = f.debug_struct("Parcel");
        shown.field("peer", peer).field("len", &bytes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    fn send() -> Operation<crate::Plain> {
        let endpoint = doc::endpoint();
        let peer = endpoint.local_addr();
        endpoint.send(peer, "hello")
    }

    #[test]
    fn an_operation_without_options_has_those_of_the_endpoint() {
        assert_eq!(send().options.now(), SendOptions::default());
        let options = send()
            .deadline(Duration::from_secs(1))
            .priority(7)
            .code(Code::Rlf256)
            .policy(BurstPolicy::Oblivious)
            .options
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
        let deadline = |of: Operation<crate::Plain>| of.options.now().deadline;
        let operation = || send().deadline_at(past);
        assert_eq!(deadline(operation()), Some(Duration::ZERO));
        assert_eq!(deadline(operation().priority(7)), Some(Duration::ZERO));
        assert_eq!(deadline(operation().deadline(soon)), Some(soon));
        assert_eq!(deadline(operation().options(SendOptions::default())), None);
        let later = send().deadline(soon).deadline_at(past + 60 * soon);
        assert!(deadline(later).is_some_and(|left| left > soon && left < 60 * soon));
    }
}
