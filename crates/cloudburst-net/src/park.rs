//! Runs a future on the calling thread, which sleeps in between, for a limited time.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits until `future` is done, or for `timeout`. `None`: it was not done by then, and is
/// dropped.
pub(crate) fn block_on_for<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    // A timeout beyond what the clock can count is none.
    let deadline = Instant::now().checked_add(timeout);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future;

    #[test]
    fn ends_with_the_future_or_with_the_time() {
        assert_eq!(block_on_for(future::ready(7), Duration::ZERO), Some(7));
        let start = Instant::now();
        assert_eq!(block_on_for(future::pending::<()>(), Duration::from_millis(20)), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn another_thread_wakes_it() {
        let (sender, receiver) = async_channel::bounded(1);
        let other = thread::spawn(move || sender.send_blocking(7));
        assert_eq!(block_on_for(receiver.recv(), Duration::MAX), Some(Ok(7)));
        other.join().unwrap().unwrap();
    }
}
