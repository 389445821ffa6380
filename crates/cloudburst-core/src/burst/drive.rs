//! Which thread takes packets and serves timers: whoever waits for something.
//!
//! To wake another thread takes longer than all work on a packet, so the thread or task that waits for
//! a message or an outcome does the endpoint's work itself. Callers and tasks *visit* the endpoint. One
//! thread at a time has the *role* of taking packets and then serving timers; it gives the role back
//! before it runs code of the application or sends. Other callers follow: they sleep until they have
//! what they wait for, or until the one before them leaves.
//!
//! The threads of the endpoint stand in when nobody visits. The receiving thread looks now and then,
//! by time and not for each packet, whether visitors have left work undone. While the endpoint is
//! idle, it sleeps until a packet arrives or a timer expires, and then gives a visitor the time to
//! come first. If none has come for a while, the endpoint is *unattended*: the receiving thread then
//! serves packets at once, and starts the sending thread, which serves timers.

use super::PacketIo;
use super::shared::{Answers, MAX_SLEEP, Shared, lock, spawn};
use crate::time::Instant;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

/// How long visitors are given to come before a thread of the endpoint does their work.
// At half of this, looking takes 3 % of a call's time and keeps visitors off their processor; with more,
// senders wait longer for STOPs that a caller left pending.
const REST: Duration = Duration::from_micros(800);
/// Rests in a row without a visit, and without anything to do, after which the endpoint is idle.
const IDLE_AFTER: u32 = 2;
/// How often in a row the receiving thread finds work that no visitor came for, before the endpoint
/// is unattended.
const UNATTENDED_AFTER: u32 = 4;
/// After how many of these in a row the sending thread starts: while the only visitor is merely busy,
/// one thread suffices.
const SENDING_AFTER: u32 = 64;

#[expect(clippy::disallowed_methods, reason = "it wakes by time, whatever happens meanwhile")]
fn rest() {
    thread::sleep(REST);
}

/// How [`Engine::drive`](super::Engine::drive) ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driven {
    /// The event that the caller waited for has happened.
    Done,
    /// It did not happen in time.
    TimedOut,
    /// The engine was stopped.
    Stopped,
}

impl<I: PacketIo> Shared<I> {
    /// See [`Engine::drive`](super::Engine::drive).
    pub(super) fn drive(&self, until: Option<Instant>, mut done: impl FnMut() -> bool) -> Driven {
        let driven = self.drive_until(until, &mut done);
        self.hand_over();
        driven
    }

    fn drive_until(&self, until: Option<Instant>, done: &mut impl FnMut() -> bool) -> Driven {
        let mut polled = false;
        loop {
            if done() {
                return Driven::Done;
            }
            if self.is_stopping() {
                return Driven::Stopped;
            }
            let now = self.io.now();
            let is_over = until.is_some_and(|at| at <= now);
            if is_over && polled {
                return Driven::TimedOut;
            }
            polled = true;
            // This may report what the caller waits for, and a thread does not wake itself.
            self.flush();
            let limit = until.map_or(MAX_SLEEP, |at| at.saturating_since(now).min(MAX_SLEEP));
            match self.driving.visit() {
                Some(_) if done() => return Driven::Done,
                Some(role) => self.receive_for(role, limit, done),
                None if is_over => {}
                None => self.driving.follow(limit),
            }
        }
    }

    /// See [`Engine::take`](super::Engine::take).
    pub(super) fn take(&self) -> bool {
        if self.is_stopping() {
            return false;
        }
        // The thread that has the role may miss what is ready now, and this task is not woken for it again.
        self.driving.missed.store(true, SeqCst);
        let Some(role) = self.driving.visit() else { return false };
        self.driving.missed.store(false, SeqCst);
        let ready = self.io.wait(Duration::ZERO);
        let arrived_at = self.receive(role, ready, true, Answers::AfterApplication);
        self.hand_over();
        arrived_at.is_some()
    }

    /// Takes packets and serves timers in the place of a visitor. Returns whether another thread was
    /// not doing so already.
    pub(super) fn stand_in(&self) -> bool {
        let Some(role) = self.driving.take_role() else {
            // That thread may be asleep, unaware of what others have deferred.
            self.flush();
            return false;
        };
        let ready = self.io.wait(Duration::ZERO);
        self.receive(role, ready, true, Answers::Now);
        self.hand_over();
        true
    }

    /// Sleeps with the role until something is ready, for at most `limit`, unless `done`.
    pub(super) fn sleep(&self, limit: Duration, done: &mut impl FnMut() -> bool) -> I::Ready {
        self.driving.sleeps.store(true, SeqCst);
        // Checked once others can see that this thread sleeps. Only the thread that has the role uses up
        // a wake-up, so none is missed.
        let limit = if done() || self.is_stopping() { Duration::ZERO } else { limit };
        let ready = self.io.wait(limit);
        self.driving.sleeps.store(false, SeqCst);
        ready
    }

    fn hand_over(&self) {
        if self.driving.hand_over() {
            self.io.wake();
        }
    }

    /// See [`Engine::wake`](super::Engine::wake).
    pub(super) fn wake(&self) {
        if self.driving.sleeps.load(SeqCst) {
            self.io.wake();
        }
    }

    /// Leaves answers and messages to the next [`flush`](Self::flush). Returns whether it was not
    /// pending yet.
    pub(super) fn defer(&self) -> bool {
        let is_first = !self.pending_flush.swap(true, SeqCst);
        // The receiving thread flushes if no visitor does. Usually it only rests, and needs no wake-up.
        if self.driving.watches.load(SeqCst) {
            self.io.wake();
        }
        is_first
    }

    pub(super) fn run_receiving(self: &Arc<Self>) {
        let driving = &self.driving;
        let mut seen = driving.visits.load(SeqCst);
        // Rests in a row without a visit and without work; whether there was work before the last one;
        // and how often in a row there was still work after it.
        let mut idle = 0;
        let mut found = false;
        let mut alone = 0;
        while !self.is_stopping() {
            let attended = alone < UNATTENDED_AFTER;
            if attended {
                rest();
            }
            let visits = driving.visits.load(SeqCst);
            if visits != seen {
                seen = visits;
                idle = 0;
                found = false;
                alone = 0;
                driving.unattended.store(false, SeqCst);
                continue;
            }
            let pending = self.pending_flush.load(SeqCst);
            if !attended || idle >= IDLE_AFTER {
                self.watch();
                if attended || driving.visits.load(SeqCst) != seen {
                    found = true;
                    idle = 0;
                    continue;
                }
            } else if !pending && !self.io.is_ready() {
                found = false;
                idle += 1;
                continue;
            } else if !pending && !found {
                // It may have arrived just now.
                found = true;
                continue;
            }
            found = false;
            if self.stand_in() {
                alone = alone.saturating_add(1);
                self.on_alone(alone);
            } else if !attended {
                thread::yield_now();
            }
        }
    }

    /// Sleeps until there is work.
    fn watch(&self) {
        self.driving.watches.store(true, SeqCst);
        if !self.pending_flush.load(SeqCst) && !self.is_stopping() {
            self.io.watch();
        }
        self.driving.watches.store(false, SeqCst);
    }

    fn on_alone(self: &Arc<Self>, alone: u32) {
        if alone == UNATTENDED_AFTER {
            self.driving.unattended.store(true, SeqCst);
            self.driving.wake_sending();
        }
        if alone == SENDING_AFTER && self.driving.sending_thread.get().is_none() {
            let mut threads = lock(&self.threads);
            if self.is_stopping() {
                // Nobody would wait for it.
                return;
            }
            let shared = self.clone();
            match spawn("cbrst-send", move || shared.run_sending()) {
                Ok(handle) => {
                    let _ = self.driving.sending_thread.set(handle.thread().clone());
                    threads.push(handle);
                }
                Err(error) => tracing::warn!(%error, "the receiving thread sends as well"),
            }
        }
    }

    fn run_sending(&self) {
        while !self.is_stopping() {
            if !self.driving.unattended.load(SeqCst) {
                // No wake-up is lost: `unpark` before `park` makes it return at once.
                thread::park();
                continue;
            }
            self.io.watch_timer();
            if self.driving.unattended.load(SeqCst) && !self.stand_in() {
                thread::yield_now();
            }
        }
    }
}
