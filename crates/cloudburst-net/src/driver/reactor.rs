//! Receives packets in a task, in the runtime of the tasks that wait for them.

use super::inner::Inner;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::thread::panicking;
use std::time::Instant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::yield_now;

impl Inner {
    /// Returns the tokio runtime that this runs in, if any. Unless a task receives packets already, spawns
    /// one there: tasks are woken sooner by a task of their own runtime than by a thread of the endpoint, and
    /// what they send leaves together.
    ///
    /// While the runtime is busy with other things, a thread of the endpoint steps in. Without a runtime,
    /// threads that wait receive the packets, or that thread if none waits.
    ///
    /// If the runtime's I/O is not enabled, registering the descriptor panics within that task: tokio has no
    /// way to check beforehand. A thread of the endpoint then keeps receiving the packets, and no other runtime
    /// is tried.
    pub(crate) fn join_runtime(self: &Arc<Self>) -> Option<Handle> {
        let runtime = Handle::try_current().ok()?;
        if !self.has_reactor.load(Relaxed) && !self.has_reactor.swap(true, Relaxed) {
            let guard = ReactorGuard(Arc::downgrade(self));
            let receive = self.receive_in_task();
            // Automatically, and before the first packet: with 64 messages of 5 KB in flight, a task of the
            // runtime receives 195,000 messages a second, and a thread that wakes its tasks 135,000.
            drop(runtime.spawn(async move {
                let _guard = guard;
                if let Err(error) = receive.await {
                    tracing::debug!(%error, "cannot receive packets in this runtime: a thread does");
                }
            }));
        }
        Some(runtime)
    }

    fn receive_in_task(self: &Arc<Self>) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let inner = Arc::downgrade(self);
        let mut closed = self.closed.subscribe();
        let fd = self.engine.io().readiness();
        let busy_poll = self.engine.busy_poll();
        async move {
            #[expect(deprecated, reason = "unsound only for types that misreport their descriptor")]
            let fd = AsyncFd::<OwnedFd>::with_interest(fd?, Interest::READABLE)?;
            let mut closed = pin!(closed.wait_for(|closed| *closed));
            let take = || Inner::engine_of(&inner).is_some_and(|engine| engine.take());
            // Whether packets arrived within the time to busy-poll, so that more are likely to.
            let mut soon = false;
            loop {
                let begun = Instant::now();
                let mut taken = false;
                // All other tasks of this runtime go first, each time.
                while soon && !taken && begun.elapsed() < busy_poll {
                    yield_now().await;
                    taken = take();
                }
                if !taken {
                    let mut readable = pin!(fd.readable());
                    let ready = poll_fn(|context| match closed.as_mut().poll(context) {
                        Poll::Ready(_) => Poll::Ready(None),
                        Poll::Pending => readable.as_mut().poll(context).map(Some),
                    });
                    let Some(ready) = ready.await else { return Ok(()) };
                    taken = take();
                    ready?.clear_ready();
                }
                soon = taken && begun.elapsed() <= busy_poll;
                if taken {
                    // The tasks that were woken go first: what they send carries the STOPs. The future of
                    // `Runtime::block_on` does so only after the runtime has polled its descriptors.
                    yield_now().await;
                    if let Some(engine) = Inner::engine_of(&inner) {
                        engine.flush();
                    }
                }
            }
        }
    }
}

/// Lets another runtime receive the packets when the task that received them ends.
struct ReactorGuard(Weak<Inner>);

impl Drop for ReactorGuard {
    fn drop(&mut self) {
        // A runtime without I/O would panic again and again.
        if let Some(inner) = self.0.upgrade().filter(|_| !panicking()) {
            inner.has_reactor.store(false, Relaxed);
        }
    }
}
