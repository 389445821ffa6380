//! Which process an endpoint belongs to.

use crate::error::SendError;
use core::future::{Future, poll_fn};
use core::mem;
use core::pin::Pin;
use core::task::Poll;
use forkguard::atfork::Guard;
use std::process;

/// The process that built an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    number: u32,
    /// Detects forks, except children of a bare `clone`.
    // By a handler of `pthread_atfork`, so that a check is one load: reading the process ID is a
    // system call of 80 ns, six times in a round trip, and a child in another PID namespace may
    // have its parent's.
    forks: Guard,
    /// Set by tests that simulate another process.
    #[cfg(test)]
    other: bool,
}

impl Process {
    pub(crate) fn this() -> Self {
        Self {
            number: process::id(),
            forks: Guard::default(),
            #[cfg(test)]
            other: false,
        }
    }

    /// What a fork of process `number` would have.
    #[cfg(test)]
    pub(crate) fn other(number: u32) -> Self {
        Self { number, other: true, ..Self::this() }
    }

    /// Checks that this is the process that built the endpoint.
    ///
    /// # Errors
    ///
    /// [`SendError::Forked`] in a fork of it.
    pub(crate) fn check(&self) -> Result<(), SendError> {
        if self.is_forked() {
            Err(SendError::Forked { built_in: self.number, here: process::id() })
        } else {
            Ok(())
        }
    }

    fn is_forked(&self) -> bool {
        #[cfg(test)]
        if self.other {
            return true;
        }
        // A guard reports a fork only once, but each clone reports it again.
        self.forks.clone().detected_fork()
    }

    /// Waits for `future`, which other threads of this process complete.
    ///
    /// # Errors
    ///
    /// [`SendError::Forked`] if it is polled in a fork, where no thread completes it.
    pub(crate) async fn wait<F: Future>(&self, future: F) -> Result<F::Output, SendError> {
        let mut waiting = Waiting { future: Some(Box::pin(future)), process: self };
        poll_fn(|context| {
            // Before the poll, which may take a lock: another thread may have held it at the fork.
            if let Err(forked) = self.check() {
                return Poll::Ready(Err(forked));
            }
            let future = waiting.future.as_mut().expect("it is there until this is dropped");
            future.as_mut().poll(context).map(Ok)
        })
        .await
    }
}

/// A future that is leaked in a fork, because dropping it may take a lock, too.
struct Waiting<'a, F> {
    future: Option<Pin<Box<F>>>,
    process: &'a Process,
}

impl<F> Drop for Waiting<'_, F> {
    fn drop(&mut self) {
        let future = self.future.take();
        if self.process.is_forked() {
            mem::forget(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future;
    use core::pin::pin;
    use core::task::{Context, Waker};
    use std::sync::Arc;
    use tokio::sync::oneshot;

    #[test]
    fn a_wait_ends_in_a_fork_and_leaks_its_future() {
        let here = process::id();
        let built_in = here.wrapping_add(1);
        let process = Process::other(built_in);
        let locks_at_its_end = Arc::new(());
        let held = locks_at_its_end.clone();
        let future = async move {
            future::pending::<()>().await;
            drop(held);
        };
        let mut context = Context::from_waker(Waker::noop());
        let mut wait = Box::pin(process.wait(future));
        let forked = SendError::Forked { built_in, here };
        assert_eq!(wait.as_mut().poll(&mut context), Poll::Ready(Err(forked)));
        drop(wait);
        assert_eq!(Arc::strong_count(&locks_at_its_end), 2);
    }

    #[test]
    fn a_wait_continues_in_the_process_that_began_it() {
        let mut context = Context::from_waker(Waker::noop());
        let (done, wait) = oneshot::channel();
        let process = Process::this();
        let mut wait = pin!(process.wait(wait));
        for _ in 0..3 {
            assert_eq!(wait.as_mut().poll(&mut context), Poll::Pending);
        }
        done.send(7).unwrap();
        assert_eq!(wait.poll(&mut context), Poll::Ready(Ok(Ok(7))));
    }
}
