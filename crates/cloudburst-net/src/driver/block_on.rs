//! Runs a future on the calling thread, which receives packets or sleeps while the future waits.

use crate::io::UdpIo;
use cloudburst_core::burst::{Driven, Engine, PacketIo};
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

/// A waker of a thread that may be driving an endpoint.
struct ThreadWaker {
    engine: Option<Arc<Engine<UdpIo>>>,
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, SeqCst);
        if thread::current().id() != self.thread.id() {
            self.thread.unpark();
            if let Some(engine) = &self.engine {
                engine.wake();
            }
        }
    }
}

impl ThreadWaker {
    /// Drives the endpoint until it is woken, or until the deadline.
    fn wait(&self, deadline: Option<Instant>) {
        let Some(engine) = &self.engine else { return self.sleep(deadline) };
        let until = deadline.map(|at| engine.io().now() + left(at));
        // A bare round trip of 1.5 KB and 5 KB over one socket takes 14 us, and 36 with a thread in
        // between at each end: so the caller receives its packets itself.
        if engine.drive(until, || self.woken.load(SeqCst)) == Driven::Stopped {
            self.sleep(deadline);
        }
    }

    fn sleep(&self, deadline: Option<Instant>) {
        // After a wake-up just before this, `park` returns at once.
        while !self.woken.load(SeqCst) {
            match deadline.map(left) {
                Some(Duration::ZERO) => return,
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }
}

/// Waits until `future` is done. Meanwhile, this thread drives the endpoint, unless another one does.
/// `engine` is `None` if the endpoint is gone.
pub(crate) fn block_on<F: Future>(engine: Option<Arc<Engine<UdpIo>>>, future: F) -> F::Output {
    block_until(engine, None, future).expect("there is no deadline")
}

/// Like [`block_on`], for at most `timeout`. Returns `None` if `future` was not done by then; it is
/// dropped.
pub(crate) fn block_on_for<F: Future>(
    engine: Option<Arc<Engine<UdpIo>>>,
    timeout: Duration,
    future: F,
) -> Option<F::Output> {
    // A timeout beyond the range of the clock is no timeout.
    block_until(engine, Instant::now().checked_add(timeout), future)
}

fn block_until<F: Future>(
    engine: Option<Arc<Engine<UdpIo>>>,
    deadline: Option<Instant>,
    future: F,
) -> Option<F::Output> {
    let thread_waker =
        Arc::new(ThreadWaker { engine, woken: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(thread_waker.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        if deadline.map(left) == Some(Duration::ZERO) {
            return None;
        }
        thread_waker.wait(deadline);
        thread_waker.woken.store(false, SeqCst);
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use cloudburst_core::config::Security;
    use core::future;
    use tokio::sync::oneshot;

    /// No engine, and one.
    fn engines() -> [Option<Arc<Engine<UdpIo>>>; 2] {
        let loopback = "127.0.0.1:0".parse().unwrap();
        let builder = Endpoint::builder().bind(loopback).security(Security::pre_shared([7; 32]));
        let endpoint = builder.build().unwrap();
        [None, Some(Arc::into_inner(endpoint.inner).unwrap().engine.clone())]
    }

    #[test]
    fn it_ends_with_the_future_or_at_the_timeout() {
        for engine in engines() {
            let ready = future::ready(7);
            assert_eq!(block_on_for(engine.clone(), Duration::ZERO, ready), Some(7));
            let start = Instant::now();
            let soon = Duration::from_millis(20);
            assert_eq!(block_on_for(engine, soon, future::pending::<()>()), None);
            assert!(start.elapsed() >= soon);
        }
    }

    #[test]
    fn another_thread_can_complete_the_future() {
        for engine in engines() {
            let (sender, receiver) = oneshot::channel();
            let other = thread::spawn(move || sender.send(7));
            assert_eq!(block_on_for(engine, Duration::MAX, receiver), Some(Ok(7)));
            other.join().unwrap().unwrap();
        }
    }
}
