//! Packets taken by a task, in the runtime of the tasks that wait for them.

use crate::endpoint::Endpoint;
use crate::wakers::contained;
use cloudburst_core::burst::Engine;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;

impl Endpoint {
    /// Takes what comes in within the tokio runtime that this future runs on, until the endpoint is
    /// closed or dropped: spawn it there. It does not keep the endpoint.
    ///
    /// Without it, a thread of the endpoint takes packets and wakes the tasks that wait for them.
    /// With it, they are woken by a task of their own runtime: calls take half the time on an idle
    /// link, and STOPs leave with responses. While the runtime is busy with other things, the thread
    /// steps in after 0.2 ms. Blocking callers need none of this. In a fork of the process, it ends
    /// at once.
    ///
    /// What waits in the same thread gains most: tasks of a current-thread runtime. In one of many
    /// threads, `main` itself is on none of the workers: spawn what calls. Packets that come one at a
    /// time, milliseconds apart, cost some looks of the thread each.
    ///
    /// # Errors
    ///
    /// When the system refuses the registration of a file descriptor.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime whose I/O is enabled (`enable_io` or `enable_all`).
    ///
    /// # Example
    ///
    /// A service of several endpoints on one port ([`Builder::reuse_port`]), and its client:
    ///
    /// ```
    /// # use cloudburst_net::{Endpoint, Security};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let address = "127.0.0.8:7000".parse()?;
    /// let builder = Endpoint::builder().security(Security::pre_shared([7; 32]));
    /// for _ in 0..2 {
    ///     let shard = builder.clone().bind(address).reuse_port(true).build()?;
    ///     tokio::spawn(shard.drive());
    ///     tokio::spawn(async move { shard.serve(|_peer, question| async { question }).await });
    /// }
    /// let client = builder.build()?;
    /// tokio::spawn(client.drive());
    /// assert_eq!(client.call(address, "hello").await?, "hello");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Builder::reuse_port`]: crate::Builder::reuse_port
    pub fn drive(&self) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let inner = Arc::downgrade(&self.inner);
        let mut over = self.inner.over.subscribe();
        let fd = self.inner.engine.io().readiness();
        let busy_poll = self.inner.engine.busy_poll();
        let process = self.inner.process.clone();
        async move {
            if process.check().is_err() {
                // The packets are another process's, and nobody would tell of the end.
                return Ok(());
            }
            #[expect(
                deprecated,
                reason = "unsound for types that lie about their descriptor alone"
            )]
            let fd = AsyncFd::<OwnedFd>::with_interest(fd?, Interest::READABLE)?;
            let mut over = pin!(contained(over.wait_for(|over| *over)));
            let take = || {
                let engine = inner.upgrade().and_then(|inner| inner.engine_here());
                engine.is_some_and(|engine| engine.take())
            };
            // Packets that came soon are followed by others as soon.
            let mut soon = false;
            loop {
                let (begun, mut taken) = (Instant::now(), false);
                // Everybody else in this runtime goes first, each time.
                while soon && !taken && begun.elapsed() < busy_poll {
                    yield_now().await;
                    taken = take();
                }
                if !taken {
                    let mut readable = pin!(fd.readable());
                    let ready = poll_fn(|context| match over.as_mut().poll(context) {
                        Poll::Ready(_) => Poll::Ready(None),
                        Poll::Pending => readable.as_mut().poll(context).map(Some),
                    });
                    let Some(ready) = ready.await else { return Ok(()) };
                    taken = take();
                    ready?.clear_ready();
                }
                soon = taken && begun.elapsed() <= busy_poll;
                if taken {
                    // Those who were woken go first: what they send takes the STOPs along.
                    yield_now().await;
                    if let Some(inner) = inner.upgrade() {
                        inner.unless_closed(Engine::flush);
                    }
                }
            }
        }
    }
}
