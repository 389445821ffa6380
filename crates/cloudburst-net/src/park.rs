//! Runs a future on the calling thread, which in between sleeps for a limited time, or takes what
//! comes in.

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

/// A waker of a thread that may be waiting for packets.
struct Notice {
    engine: Arc<Engine<UdpIo>>,
    woken: AtomicBool,
    drives: AtomicBool,
    thread: Thread,
}

impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, SeqCst);
        if thread::current().id() != self.thread.id() {
            self.thread.unpark();
            if self.drives.load(SeqCst) {
                self.engine.io().wake();
            }
        }
    }
}

/// Waits until `future` is done, and takes the packets that it waits for on this thread, if no
/// other one does. `None` for an engine: it is another process's, and nothing comes in.
pub(crate) fn block_on_driving<F: Future>(
    engine: Option<Arc<Engine<UdpIo>>>,
    future: F,
) -> F::Output {
    let Some(engine) = engine else { return pollster::block_on(future) };
    let notice = Arc::new(Notice {
        engine,
        woken: AtomicBool::new(false),
        drives: AtomicBool::new(false),
        thread: thread::current(),
    });
    let waker = Waker::from(notice.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        notice.drives.store(true, SeqCst);
        let driven = notice.engine.drive(None, || notice.woken.load(SeqCst));
        notice.drives.store(false, SeqCst);
        if driven != Driven::Done {
            // Whoever wakes it leaves a token, if that was just before.
            while !notice.woken.load(SeqCst) {
                thread::park();
            }
        }
        notice.woken.store(false, SeqCst);
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
