//! Contains the panics of callers' wakers.

use cloudburst_core::burst::contain;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Waker};
use std::sync::Arc;
use std::task::Wake;

/// A waker that does not panic, even if the caller's does.
// Waking runs code of an executor, or the destructor of a task. Channels, semaphores and
// notifications wake tasks within their own data structures, which a panic leaves half done: a
// receiver whose waker had panicked broke the queue of messages for good.
struct Contained(Waker);

impl Wake for Contained {
    fn wake(self: Arc<Self>) {
        contain(move || self.0.wake_by_ref());
    }

    fn wake_by_ref(self: &Arc<Self>) {
        contain(|| self.0.wake_by_ref());
    }
}

/// Waits for `future`, which wakes its waiters within its own data structures, or one after
/// another: a waker that panics there would leave the structures inconsistent, or the next waiters
/// asleep.
pub(crate) async fn contained<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let waker = Waker::from(Arc::new(Contained(context.waker().clone())));
        future.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await
}
