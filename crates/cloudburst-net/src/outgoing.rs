//! Messages, calls and replies that are about to be sent, with settings of their own.

use crate::calls::{Calls, Request};
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::sending::Sending;
use crate::settings::Settings;
use bytes::Bytes;
use cloudburst_core::code::Code;
use cloudburst_core::config::BurstPolicy;
use cloudburst_core::error::Receipt;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Role;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::time::Duration;
use std::net::SocketAddr;
use std::time::Instant;

/// A message, a call or a reply that is about to be sent. Set the options that differ from the endpoint's
/// configuration, and await it.
///
/// Out-of-range settings are refused when it is sent: [`SendError::Option`].
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Endpoint, Security};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let security = Security::pre_shared([7; 32]);
/// # let loopback = "127.0.0.1:0".parse()?;
/// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
/// # let (client, server) = (build()?, build()?);
/// let peer = server.local_addr();
/// client.send(peer, "urgent").priority(7).deadline(Duration::from_secs(1)).await?;
/// assert_eq!(server.recv().await?.bytes, "urgent");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before it is awaited or begun"]
pub struct Outgoing<W> {
    what: W,
    settings: Settings,
}

impl<W> Outgoing<W> {
    pub(crate) fn new(what: W) -> Self {
        Self { what, settings: Settings::default() }
    }

    /// How long it may take, from when it is first polled or [begun](Self::begin). Default:
    /// [`Config::deadline`](crate::Config::deadline). This includes the wait for room, if
    /// [`Config::send_messages`](crate::Config::send_messages) or `send_bytes` are reached, and the response
    /// to a call. If the deadline passes during that wait, the error is [`SendError::NotStarted`].
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let nobody = "127.0.0.1:9".parse()?;
    /// let late = client.send(nobody, "hello").deadline(Duration::from_millis(1)).await;
    /// assert!(late.is_err_and(|error| error.is_timeout()));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings = self.settings.deadline(deadline);
        self
    }

    /// When it must have ended: a [deadline](Self::deadline) as a time, such as that of a request which this
    /// one serves. The last call of either counts.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::{Duration, Instant};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// let receipt = client.send(server.local_addr(), "hello").deadline_at(deadline).await?;
    /// assert_eq!(receipt.bytes, 5);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{BurstPolicy, Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let peer = server.local_addr();
    /// client.send(peer, "hello").code("lt".parse()?).policy(BurstPolicy::Oblivious).await?; // as in the paper
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security, SendOptions};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let urgent = SendOptions::default().priority(SendOptions::MAX_PRIORITY);
    /// for message in ["one", "two"] {
    ///     client.send(server.local_addr(), message).options(urgent).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn options(mut self, options: SendOptions) -> Self {
        self.settings = Settings::new(options);
        self
    }
}

/// The future of an [`Outgoing`] or a [`Connect`] that is awaited. It holds a clone of the endpoint, so it can
/// be spawned: `tokio::spawn(endpoint.call(peer, "hello").into_future())`.
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Endpoint, Receipt, Security, SendError, outgoing::BoxFuture};
/// # use futures_util::future::join_all;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let security = Security::pre_shared([7; 32]);
/// # let loopback = "127.0.0.1:0".parse()?;
/// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
/// # let (client, server) = (build()?, build()?);
/// let sends: [BoxFuture<Result<Receipt, SendError>>; 2] =
///     ["one", "two"].map(|message| client.send(server.local_addr(), message).into_future());
/// for outcome in join_all(sends).await {
///     println!("{:?}", outcome?.completed_in);
/// }
/// # Ok(())
/// # }
/// ```
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

/// A plain message: see [`Endpoint::send`].
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Outgoing, outgoing::Plain};
/// fn urgent(message: Outgoing<Plain<'_>>) -> Outgoing<Plain<'_>> {
///     message.priority(7)
/// }
/// ```
#[derive(Clone)]
pub struct Plain<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) peer: SocketAddr,
    pub(crate) bytes: Bytes,
}

/// A call: see [`Endpoint::call`].
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Outgoing, outgoing::Call};
/// # use std::time::Duration;
/// fn soon(call: Outgoing<Call<'_>>) -> Outgoing<Call<'_>> {
///     call.deadline(Duration::from_millis(20))
/// }
/// ```
#[derive(Clone)]
pub struct Call<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) peer: SocketAddr,
    pub(crate) bytes: Bytes,
}

/// Several calls: see [`Endpoint::call_many`].
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Outgoing, outgoing::CallMany};
/// # use std::time::Duration;
/// fn soon(calls: Outgoing<CallMany<'_>>) -> Outgoing<CallMany<'_>> {
///     calls.deadline(Duration::from_millis(20))
/// }
/// ```
#[derive(Clone)]
pub struct CallMany<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) requests: Vec<(SocketAddr, Bytes)>,
}

/// A reply: see [`Request::reply`].
///
/// # Example
///
/// ```
/// # use cloudburst_net::{Outgoing, outgoing::Reply, Request};
/// fn answer(request: Request) -> Outgoing<Reply> {
///     let answer = request.bytes().to_ascii_uppercase();
///     request.reply(answer).priority(7)
/// }
/// ```
pub struct Reply {
    pub(crate) request: Request,
    /// `None`: the application is overloaded.
    pub(crate) bytes: Option<Bytes>,
}

/// A connect that is about to begin: see [`Endpoint::connect`].
///
/// # Example
///
/// ```
/// # use cloudburst_net::{outgoing::Connect};
/// # use std::time::Duration;
/// fn patiently(connect: Connect<'_>) -> Connect<'_> {
///     connect.deadline(Duration::from_secs(60))
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before it is awaited"]
pub struct Connect<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) peer: SocketAddr,
    pub(crate) settings: Settings,
}

impl Connect<'_> {
    /// How long it may take, from when it is first polled. Default:
    /// [`Config::deadline`](crate::Config::deadline). This includes the wait for room.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings = self.settings.deadline(deadline);
        self
    }

    /// When it must have ended: a [deadline](Self::deadline) as a time, such as that of a request which this
    /// one serves. The last call of either counts.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::{Duration, Instant};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// client.connect(server.local_addr()).deadline_at(deadline).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn deadline_at(mut self, at: Instant) -> Self {
        self.settings = self.settings.deadline_at(at);
        self
    }
}

impl Outgoing<Plain<'_>> {
    /// Begins to burst the message, without waiting for room: when this returns, its first packets have left,
    /// or are about to leave together with those of other messages.
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] if the limits on messages under way are reached.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// let peer = server.local_addr();
    /// let (one, two) = (client.send(peer, "one").begin()?, client.send(peer, "two").begin()?);
    /// // Both are on their way.
    /// one.await?;
    /// two.await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(self) -> Result<Sending, SendError> {
        let Plain { endpoint, peer, bytes } = self.what;
        endpoint.burst(peer, Role::Plain, bytes, &self.settings.now())
    }
}

impl IntoFuture for Outgoing<Plain<'_>> {
    type Output = Result<Receipt, SendError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Plain { endpoint, peer, bytes } = self.what;
        let (endpoint, settings) = (endpoint.clone(), self.settings);
        Box::pin(async move {
            let options = settings.now();
            endpoint.burst_when_room(peer, Role::Plain, bytes, options).await?.await
        })
    }
}

impl IntoFuture for Outgoing<Call<'_>> {
    type Output = Result<Bytes, SendError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Call { endpoint, peer, bytes } = self.what;
        let (endpoint, settings) = (endpoint.clone(), self.settings);
        Box::pin(async move { endpoint.call_with(peer, bytes, settings.now()).await })
    }
}

impl Outgoing<CallMany<'_>> {
    /// Begins all calls, and returns the stream of their responses.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let security = Security::pre_shared([7; 32]);
    /// # let loopback = "127.0.0.1:0".parse()?;
    /// # let build = || Endpoint::builder().bind(loopback).security(security.clone()).build();
    /// # let (client, server) = (build()?, build()?);
    /// # let servers = [server.local_addr(); 2];
    /// # tokio::spawn(async move { server.serve(3, |request| async move { request.bytes }).await });
    /// let queries = servers.map(|server| (server, "query"));
    /// let calls = client.call_many(queries).deadline(Duration::from_secs(5)).begin();
    /// assert_eq!(calls.results().await.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(self) -> Calls {
        self.what.endpoint.call_many_with(self.what.requests, &self.settings.now())
    }
}

impl IntoFuture for Outgoing<Reply> {
    type Output = Result<Receipt, SendError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { what: Reply { request, bytes }, settings } = self;
        Box::pin(async move { request.reply_with(bytes, settings.now()).await })
    }
}

impl IntoFuture for Connect<'_> {
    type Output = Result<(), SendError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let (endpoint, peer, settings) = (self.endpoint.clone(), self.peer, self.settings);
        Box::pin(async move { endpoint.connect_with(peer, settings.now()).await })
    }
}

impl fmt::Debug for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint: _, peer, bytes } = self;
        f.debug_struct("Plain")
            .field("peer", peer)
            .field("len", &bytes.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint: _, peer, bytes } = self;
        f.debug_struct("Call")
            .field("peer", peer)
            .field("len", &bytes.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CallMany<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.requests.len();
        f.debug_struct("CallMany").field("requests", &requests).finish_non_exhaustive()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.bytes.as_ref().map(Bytes::len);
        f.debug_struct("Reply").field("request", &self.request).field("len", &len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_settings_it_has_those_of_the_endpoint() {
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
        let (soon, past) = (Duration::from_secs(1), Instant::now());
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
