//! Opening a session before the first message.

use crate::driver::Inner;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::io::{UdpIo, canonical};
use crate::names::Peer;
use crate::operation::{Kind, Operation};
use crate::settings::Settings;
use cloudburst_core::burst::Engine;
use cloudburst_core::id::ConnectId;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A connect: see [`Endpoint::connect`].
#[derive(Debug)]
pub struct Connect {
    inner: Arc<Inner>,
    peer: Peer,
}

impl Kind for Connect {
    type Options = Settings;
    type Output = Result<(), SendError>;

    fn engine(&self) -> Option<Arc<Engine<UdpIo>>> {
        Some(self.inner.engine.clone())
    }

    async fn run(self, settings: Settings) -> Self::Output {
        let Self { inner, peer } = self;
        let (peer, options) = inner.find(peer, settings.now()).await?;
        let _ = inner.join_runtime();
        let (end, ended) = oneshot::channel();
        let on_connect = Box::new(move |result| {
            // This fails if the caller no longer waits.
            let _ = end.send(result);
        });
        let id = inner.engine.connect(canonical(peer), &options, on_connect)?;
        let _connecting = Connecting { id, inner: &inner };
        // Dropped without a result: the engine was stopped.
        ended.await.map_or(Err(SendError::Closed), |result| result.map_err(SendError::from))
    }
}

/// A connect under way. Dropping it cancels the connect.
struct Connecting<'a> {
    id: ConnectId,
    inner: &'a Inner,
}

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        // If it has ended, this does nothing.
        self.inner.engine.cancel_connect(self.id);
    }
}

impl Endpoint {
    /// Opens a session with `peer`, so that the first message need not wait for the handshake, which takes
    /// two round trips. Await the returned [`Operation`], or wait for it; of its options, the deadline counts.
    ///
    /// The connect ends when the peer is known to hold the session: at once if there is a session and the
    /// peer was heard from recently; otherwise, the peer must answer by the deadline.
    ///
    /// If the session is idle for 30 s, the next message or connect first checks the session, which takes one
    /// round trip; after two and a half minutes, the peer has forgotten it.
    ///
    /// A connect under way counts as a message under way
    /// ([`Limits::send_messages`](crate::Limits::send_messages)); if there are too many, this first
    /// waits. Dropping the future cancels the connect.
    ///
    /// # Errors
    ///
    /// See [`SendError`]. If the peer does not answer, the error is that of a message of which nothing was
    /// sent, such as [`SendError::NoAnswer`], or at once [`SendError::PortClosed`].
    ///
    /// # Example
    ///
    /// ```
    /// # cloudburst_net::doc::run(async |client, server| {
    /// client.connect(server.local_addr()).await?; // while the application starts
    ///
    /// client.send(server.local_addr(), "hello").await?; // one round trip
    /// assert_eq!(server.recv().await?.bytes, "hello");
    /// assert_eq!(client.counters().sender.sessions_opened, 1);
    /// # Ok(())
    /// # });
    /// ```
    pub fn connect(&self, peer: impl Into<Peer>) -> Operation<Connect> {
        Operation::new(Connect { inner: self.inner.clone(), peer: peer.into() })
    }
}
