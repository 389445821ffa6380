//! A timer for callers that wait for capacity, or until one more call may be in flight.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Wakes callers at their deadlines, from a thread of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Timer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    sleepers: Mutex<Sleepers>,
    /// Notified when the first deadline has changed, or the thread is to end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Sleepers {
    /// By deadline and number.
    wakers: BTreeMap<(Instant, u64), Waker>,
    next: u64,
    // A thread of our own: a runtime may have no timer, and tokio panics when asked for one; the
    // engine times only what is under way. It starts with the first wait and is joined at shutdown,
    // where that of `futures-timer` would outlive all endpoints.
    thread: Option<JoinHandle<()>>,
    stopped: bool,
}

/// A future that resolves at a deadline.
pub(super) struct Sleep {
    shared: Arc<Shared>,
    at: Instant,
    /// The number under which its waker is kept, once it has been polled.
    number: Option<u64>,
}

impl Timer {
    pub(super) fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep { shared: self.0.clone(), at, number: None }
    }

    /// Ends the thread. Nobody is woken any more.
    pub(super) fn stop(&self) {
        let thread = {
            let mut sleepers = self.0.lock();
            sleepers.stopped = true;
            sleepers.thread.take()
        };
        self.0.changed.notify_one();
        // A waker may drop the endpoint, and so call this from the thread itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id())
        {
            // Its panic, which is that of a waker, was reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut sleepers = self.lock();
        while !sleepers.stopped {
            let now = Instant::now();
            let first = sleepers.wakers.first_key_value().map(|(&(at, _), _)| at);
            sleepers = match first {
                Some(at) if at <= now => {
                    let first = sleepers.wakers.pop_first();
                    // Without the lock: the waker may run the task that it wakes.
                    drop(sleepers);
                    first.into_iter().for_each(|(_, waker)| waker.wake());
                    self.lock()
                }
                Some(at) => {
                    let woken = self.changed.wait_timeout(sleepers, at - now);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(sleepers).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn start_thread(self: &Arc<Self>, sleepers: &mut Sleepers) {
        if sleepers.thread.is_some() || sleepers.stopped {
            return;
        }
        let shared = self.clone();
        let run = move || shared.run();
        match thread::Builder::new().name("cbrst-deadlines".into()).spawn(run) {
            Ok(thread) => sleepers.thread = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "cannot start the timer thread: a send may wait for capacity beyond its deadline");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.at <= Instant::now() {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let shared = self.shared.clone();
        let mut sleepers = shared.lock();
        let number = *self.number.get_or_insert(sleepers.next);
        sleepers.next = sleepers.next.max(number + 1);
        let key = (self.at, number);
        let replaced = sleepers.wakers.insert(key, waker);
        shared.start_thread(&mut sleepers);
        let is_first = sleepers.wakers.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(sleepers);
        if is_first {
            shared.changed.notify_one();
        }
        // Without the lock: a waker may own anything.
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.shared.lock().wakers.remove(&(self.at, number));
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::block_on;
    use core::time::Duration;

    fn soon(millis: u64) -> Instant {
        Instant::now() + Duration::from_millis(millis)
    }

    #[test]
    fn each_caller_is_woken_at_its_own_deadline_whatever_their_order() {
        let timer = Timer::default();
        let [late, early] = [soon(40), soon(20)];
        thread::scope(|scope| {
            for at in [late, early] {
                let sleep = timer.sleep_until(at);
                scope.spawn(move || {
                    block_on(None, sleep);
                    assert!(Instant::now() >= at);
                });
            }
        });
        assert!(timer.0.lock().wakers.is_empty());
    }

    #[test]
    fn a_caller_that_no_longer_waits_is_forgotten_and_the_thread_ends() {
        let timer = Timer::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut sleep = timer.sleep_until(soon(600_000));
        for _ in 0..2 {
            assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
        }
        assert_eq!(timer.0.lock().wakers.len(), 1);
        drop(sleep);
        assert!(timer.0.lock().wakers.is_empty());
        timer.stop();
        assert_eq!(Arc::strong_count(&timer.0), 1, "the thread has ended");
        let mut past = timer.sleep_until(Instant::now());
        assert!(Pin::new(&mut past).poll(&mut context).is_ready());
    }
}
