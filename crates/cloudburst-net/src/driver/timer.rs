//! Deadlines of callers that wait for room.

use cloudburst_core::burst::contain;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Wakes callers at their deadlines, from a thread of its own: there may be no runtime with a timer, and the
/// threads of the engine know only what is under way. The thread starts with the first caller that waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the first deadline has changed, or the thread is to end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By deadline and number.
    waiting: BTreeMap<(Instant, u64), Waker>,
    next: u64,
    // A thread of our own: a runtime may have no timer, and tokio panics when asked for one; the
    // engine times only what is under way. It starts with the first wait and is joined at shutdown,
    // where that of `futures-timer` would outlive all endpoints.
    thread: Option<JoinHandle<()>>,
    over: bool,
}

/// A future that resolves at a deadline.
pub(crate) struct Reached {
    shared: Arc<Shared>,
    at: Instant,
    /// The number under which its waker is kept, once it has been polled.
    number: Option<u64>,
}

impl Deadlines {
    pub(crate) fn reached(&self, at: Instant) -> Reached {
        Reached { shared: self.0.clone(), at, number: None }
    }

    /// Ends the thread. Deadlines wake nobody any more.
    pub(crate) fn stop(&self) {
        let thread = {
            let mut state = self.0.lock();
            state.over = true;
            state.thread.take()
        };
        self.0.changed.notify_one();
        // A waker may drop the endpoint, and so call this from the thread itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != thread::current().id()) {
            // It contains the panics of wakers.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.lock();
        while !state.over {
            let now = Instant::now();
            let first = state.waiting.first_key_value().map(|(&(at, _), _)| at);
            state = match first {
                Some(at) if at <= now => {
                    let first = state.waiting.pop_first();
                    // Without the lock: the waker may run the task that it wakes.
                    drop(state);
                    contain(|| first.into_iter().for_each(|(_, waker)| waker.wake()));
                    self.lock()
                }
                Some(at) => {
                    let woken = self.changed.wait_timeout(state, at - now);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn start_thread(self: &Arc<Self>, state: &mut State) {
        if state.thread.is_some() || state.over {
            return;
        }
        let shared = self.clone();
        let run = move || shared.run();
        match thread::Builder::new().name("cbrst-deadlines".into()).spawn(run) {
            Ok(thread) => state.thread = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "cannot start the deadline thread: a send may wait for room beyond its deadline");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Reached {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.at <= Instant::now() {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let shared = self.shared.clone();
        let mut state = shared.lock();
        let number = *self.number.get_or_insert(state.next);
        state.next = state.next.max(number + 1);
        let key = (self.at, number);
        let replaced = state.waiting.insert(key, waker);
        shared.start_thread(&mut state);
        let is_first = state.waiting.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(state);
        if is_first {
            shared.changed.notify_one();
        }
        // Without the lock: a waker may own anything.
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Reached {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.shared.lock().waiting.remove(&(self.at, number));
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
    fn each_is_woken_at_its_own_deadline_whatever_their_order() {
        let deadlines = Deadlines::default();
        let [late, early] = [soon(40), soon(20)];
        thread::scope(|scope| {
            for at in [late, early] {
                let reached = deadlines.reached(at);
                scope.spawn(move || {
                    block_on(None, reached);
                    assert!(Instant::now() >= at);
                });
            }
        });
        assert!(deadlines.0.lock().waiting.is_empty());
    }

    #[test]
    fn whoever_no_longer_waits_is_forgotten_and_the_thread_ends() {
        let deadlines = Deadlines::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut reached = deadlines.reached(soon(600_000));
        for _ in 0..2 {
            assert!(Pin::new(&mut reached).poll(&mut context).is_pending());
        }
        assert_eq!(deadlines.0.lock().waiting.len(), 1);
        drop(reached);
        assert!(deadlines.0.lock().waiting.is_empty());
        deadlines.stop();
        assert_eq!(Arc::strong_count(&deadlines.0), 1, "the thread has ended");
        let mut past = deadlines.reached(Instant::now());
        assert!(Pin::new(&mut past).poll(&mut context).is_ready());
    }
}
