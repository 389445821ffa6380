//! Shutdown of an engine after messages and calls under way have finished, and its immediate stop.

use super::PacketIo;
use super::engine::Engine;
use super::shared::{contain, lock};
use super::state::{OnAnswer, OnConnect, OnEnd, OnWithdrawn, State};
use crate::id::{ConnectId, MessageId};
use crate::proto::{CallId, MAX_BACKOFF, RequestId};
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::time::Duration;
use foldhash::HashMap;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::thread;

/// How long no symbol may arrive before a closing endpoint gives up the messages that it is receiving:
/// twice the longest backoff of a sender that hears nothing.
const LINGER: Duration = MAX_BACKOFF.saturating_mul(2);
/// How many times a stopping endpoint sends as much as a thread with other work sends: enough for
/// an answer to each of a thousand peers.
const MAX_STOP_BATCHES: usize = 32;

impl<I: PacketIo> Engine<I> {
    /// Stops accepting new messages and connects, and requests that the application has not taken;
    /// peers are told so. Waits at most `within` for everything under way: sends, connects, calls,
    /// requests that the application has taken and not replied to, and messages that are being received.
    /// Then [stops](Self::stop). Returns whether everything, withdrawals of requests aside, had
    /// ended by then. If another call stopped the engine first, returns whether everything had
    /// ended when it did.
    ///
    /// `on_refusal` is called once nothing more is accepted.
    pub fn shutdown(&self, within: Duration, on_refusal: impl FnOnce()) -> bool {
        let deadline = self.shared.io.now() + within;
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.lock().endpoint.close(self.shared.io.now());
        on_refusal();
        self.shared.report();
        self.shared.pump();
        let drained = loop {
            // Refuses requests that could not be refused before, for lack of capacity.
            if self.readable(Role::Request) > 0 {
                self.shared.lock().endpoint.close(self.shared.io.now());
                self.shared.report();
                self.shared.pump();
            }
            let state = self.shared.lock();
            let endpoint = &state.endpoint;
            let left = deadline.saturating_since(self.shared.io.now());
            let over = left.is_zero() || self.shared.is_stopping();
            // An end that has not been reported yet is about to be reported by another thread.
            let reported = state.on_end.is_empty()
                && state.on_connect.is_empty()
                && state.on_answer.is_empty();
            let refused = endpoint.receiver.readable(Role::Request) == 0;
            let unfinished = endpoint.unfinished();
            let rest = refused && reported && endpoint.calls.open_requests() == 0;
            if over {
                // Nothing waits for the outcomes of withdrawals.
                break rest && unfinished == endpoint.sender.withdrawals();
            }
            if rest && unfinished == 0 {
                break true;
            }
            self.wait(state, left);
        };
        // If another thread has stopped the engine, everything looks ended because it was cut off:
        // the answer of that thread counts.
        let drained = *self.shared.drained.get_or_init(|| drained);
        // Nothing signals that symbols have ceased to arrive, so wait out the idle time. Nobody waits for
        // repeated STOPs: the last ones come with the end of the session.
        loop {
            let state = self.shared.lock();
            let receiver = &state.endpoint.receiver;
            let Some(last) = receiver.last_symbol().filter(|_| receiver.is_receiving()) else {
                break;
            };
            let now = self.shared.io.now();
            let wait = (last + LINGER).min(deadline).saturating_since(now);
            if wait.is_zero() || self.shared.is_stopping() {
                break;
            }
            self.wait(state, wait);
        }
        self.stop();
        drained
    }

    fn wait(&self, state: MutexGuard<'_, State>, limit: Duration) {
        drop(self.shared.ended.wait_timeout(state, limit).expect("its holders do not panic"));
    }

    /// Stops the threads and every burst at once. Tells peers, once and as far as the rate allows,
    /// that messages not yet delivered will not be, and callers that there will be no responses.
    /// Waits for each thread, unless another call already does or the thread is the calling one.
    pub fn stop(&self) {
        let mut state = self.shared.lock();
        let first = self.take_callbacks(&mut state);
        if self.shared.is_stopping() {
            drop(state);
        } else {
            state.endpoint.stop(self.shared.io.now());
            drop(state);
            // The callers of what waits in line learn that nothing of it was sent.
            self.shared.report();
            // Also sends the STOPs of messages that the application has taken.
            for _ in 0..MAX_STOP_BATCHES {
                self.shared.pump();
                let next = self.shared.lock().endpoint.poll_timeout();
                if next.is_none_or(|at| at > self.shared.io.now()) {
                    break;
                }
            }
        }
        let state = self.shared.lock();
        self.shared.stopping.store(true, Ordering::SeqCst);
        // With the lock, so that nobody sets it to a later time.
        self.shared.io.set_timer(Some(Instant::ZERO));
        drop(state);
        // Wakes a shutdown that runs in a callback, on one of the threads that are joined below: it
        // would wait for as long as it may.
        self.shared.notify_closing();
        self.shared.driving.stop();
        self.shared.io.wake();
        // Joined without the lock: a thread may call this function before it ends.
        let threads = core::mem::take(&mut *lock(&self.shared.threads));
        for thread in threads {
            let is_this = thread.thread().id() == thread::current().id();
            if !is_this && thread.join().is_err() {
                tracing::error!("a thread of the endpoint panicked");
            }
        }
        // From here on, nothing more ends.
        let last = self.take_callbacks(&mut self.shared.lock());
        self.shared.notify_closing();
        first.end();
        last.end();
    }

    /// Takes the callbacks of everything that has not ended, except of messages that wait in line.
    fn take_callbacks(&self, state: &mut State) -> Callbacks {
        let State { endpoint, on_end, on_connect, on_answer, on_withdrawn, .. } = state;
        let callbacks = Callbacks {
            sends: on_end.extract_if(|id, _| !endpoint.sender.is_waiting(*id)).collect(),
            connects: core::mem::take(on_connect),
            calls: core::mem::take(on_answer),
            requests: core::mem::take(on_withdrawn),
        };
        // Before another thread can see that nothing is left.
        self.shared.drained.get_or_init(|| callbacks.is_empty() && on_end.is_empty());
        callbacks
    }
}

/// The callbacks of everything that has not ended.
struct Callbacks {
    sends: HashMap<MessageId, (OnEnd, Bytes)>,
    connects: HashMap<ConnectId, OnConnect>,
    calls: HashMap<CallId, OnAnswer>,
    requests: HashMap<RequestId, OnWithdrawn>,
}

impl Callbacks {
    fn is_empty(&self) -> bool {
        let Self { sends, connects, calls, requests } = self;
        sends.is_empty() && connects.is_empty() && calls.is_empty() && requests.is_empty()
    }

    /// Drops those of sends, connects and calls, and tells the application that no caller waits for
    /// its responses. Must be called without locks, because callbacks may own anything.
    fn end(self) {
        for (on_end, bytes) in self.sends.into_values() {
            contain(|| drop(on_end));
            contain(|| drop(bytes));
        }
        self.connects.into_values().for_each(|on_connect| contain(|| drop(on_connect)));
        self.calls.into_values().for_each(|on_answer| contain(|| drop(on_answer)));
        self.requests.into_values().for_each(contain);
    }
}

impl<I: PacketIo> Drop for Engine<I> {
    fn drop(&mut self) {
        self.stop();
    }
}
