//! Closing an engine, which lets sends finish, and stopping it at once.

use super::PacketIo;
use super::engine::Engine;
use super::parts::lock;
use super::shared::contain;
use crate::proto::MAX_PAUSE;
use core::time::Duration;
use std::sync::atomic::Ordering;
use std::thread;

/// How long no symbol may arrive before a closing endpoint stops repeating its STOPs: twice the
/// longest pause of a sender that hears nothing.
const QUIET: Duration = MAX_PAUSE.saturating_mul(2);

impl<I: PacketIo> Engine<I> {
    /// Stops accepting new messages and connects, waits at most `within` for those under way and for
    /// peers that miss a STOP, and then stops. Returns whether all sends and connects had ended by
    /// then.
    pub fn close(&self, within: Duration) -> bool {
        let deadline = self.shared.io.now() + within;
        self.shared.parts.lock_receiver().close();
        self.shared.closing.store(true, Ordering::SeqCst);
        let mut sending = self.shared.parts.lock_sending();
        sending.sender.close();
        let drained = loop {
            let left = deadline.saturating_since(self.shared.io.now());
            let over = left.is_zero() || self.shared.is_stopping();
            // An end that has not been reported yet is about to be, by another thread.
            let reported = sending.on_end.is_empty() && sending.on_connect.is_empty();
            let drained = sending.sender.unfinished() == 0 && reported;
            if drained || over {
                break drained;
            }
            (sending, _) =
                self.shared.ended.wait_timeout(sending, left).expect("no thread panics with it");
        };
        // Nothing signals that symbols have ceased to arrive, so wait out the quiet time.
        loop {
            let last = self.shared.parts.lock_receiver().last_symbol();
            let Some(last) = last else { break };
            let now = self.shared.io.now();
            let wait = (last + QUIET).min(deadline).saturating_since(now);
            if wait.is_zero() || self.shared.is_stopping() {
                break;
            }
            (sending, _) =
                self.shared.ended.wait_timeout(sending, wait).expect("no thread panics with it");
        }
        drop(sending);
        self.stop();
        drained
    }

    /// Stops the threads and every burst at once. Waits for each thread unless another call already
    /// does, or the thread is the caller itself.
    pub fn stop(&self) {
        // The application has the messages that it took; their senders should learn so.
        self.shared.flush();
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake_sending();
        self.shared.driving.wake();
        self.shared.io.wake();
        // Without the lock: a thread may call this before it ends.
        let threads = core::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let is_this = thread.thread().id() == thread::current().id();
            if !is_this && thread.join().is_err() {
                tracing::error!("a thread of the endpoint panicked");
            }
        }
        // Nothing ends any more. Callbacks are dropped without the locks, because they may own
        // anything.
        let mut sending = self.shared.parts.lock_sending();
        let sends = core::mem::take(&mut sending.on_end);
        let connects = core::mem::take(&mut sending.on_connect);
        drop(sending);
        let calls = core::mem::take(&mut self.shared.parts.lock_calling().on_answer);
        self.shared.ended.notify_all();
        sends.into_values().for_each(|on_end| contain(|| drop(on_end)));
        connects.into_values().for_each(|on_connect| contain(|| drop(on_connect)));
        calls.into_values().for_each(|on_answer| contain(|| drop(on_answer)));
    }
}

impl<I: PacketIo> Drop for Engine<I> {
    fn drop(&mut self) {
        self.stop();
    }
}
