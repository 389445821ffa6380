//! The calls that wait for their responses, and the thread that ends them in time.

use super::frame::{ResponseFrame, Token};
use super::{CallCounters, Counts};
use crate::error::{CallError, SendError};
use crate::wakers::contained;
use bytes::Bytes;
use cloudburst_core::burst::contain;
use cloudburst_core::config::Config;
use cloudburst_core::error::Outcome;
use cloudburst_core::rng::Seed;
use core::time::Duration;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// Told how a call ended, once. It must not block.
pub(super) type Settle = Box<dyn FnOnce(Result<Bytes, CallError>) + Send>;

/// The calls of an endpoint that wait, by their tokens.
#[derive(Debug)]
pub(crate) struct CallTable {
    /// What tokens are derived from: who has seen some of them cannot tell others.
    seed: Seed,
    begun: AtomicU64,
    state: Mutex<State>,
    /// Signalled when the timer must look again.
    changed: Condvar,
    /// One permit for each call that may be in flight.
    room: Arc<Semaphore>,
    limit: usize,
    /// How long a call may take that does not say so itself, and a response at most.
    pub(super) patience: Duration,
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<Token, Waiting>,
    deadlines: BTreeSet<(Instant, Token)>,
    /// When the timer will look by itself; `None`: not before it is told.
    planned: Option<Instant>,
    timer: Option<JoinHandle<()>>,
    closed: bool,
}

struct Waiting {
    settle: Settle,
    deadline: Option<Instant>,
    /// The callee has the request.
    delivered: bool,
    /// The deadline has passed: how the send ends decides what the caller is told.
    due: bool,
}

impl CallTable {
    pub(crate) fn new(seed: Seed, config: &Config) -> Self {
        let limit = config.send_messages.min(Semaphore::MAX_PERMITS);
        Self {
            seed,
            begun: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            room: Arc::new(Semaphore::new(limit)),
            limit,
            patience: config.deadline,
            counts: Counts::default(),
        }
    }

    pub(crate) fn counters(&self) -> CallCounters {
        self.counts.read()
    }

    /// Waits until one more call may be in flight.
    pub(super) async fn room(&self) -> Result<OwnedSemaphorePermit, CallError> {
        // Mostly there is room.
        match self.try_room() {
            Err(CallError::Full { .. }) => {
                let room = contained(self.room.clone().acquire_owned()).await;
                room.map_err(|_| CallError::Closed)
            }
            other => other,
        }
    }

    pub(super) fn try_room(&self) -> Result<OwnedSemaphorePermit, CallError> {
        self.room.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => CallError::Closed,
            TryAcquireError::NoPermits => CallError::Full { calls: self.limit },
        })
    }

    /// Has a call wait under a new token.
    pub(super) fn enter(self: &Arc<Self>, settle: Settle) -> Result<Token, CallError> {
        let count = self.begun.fetch_add(1, Ordering::Relaxed);
        let [token @ .., _, _, _, _, _, _, _, _] = self.seed.derive("call token", count);
        let token = Token(u64::from_be_bytes(token));
        let mut state = self.lock();
        if state.closed {
            return Err(CallError::Closed);
        }
        if state.timer.is_none() {
            let this = self.clone();
            let timer = thread::Builder::new().name("cbrst-calls".into());
            let timer = timer.spawn(move || this.run_timer());
            state.timer = Some(timer.map_err(|error| CallError::NoTimer(error.kind()))?);
        }
        let waiting = Waiting { settle, deadline: None, delivered: false, due: false };
        state.waiting.insert(token, waiting);
        Ok(token)
    }

    /// The call's time runs from now on.
    pub(super) fn arm(&self, token: Token, patience: Duration) {
        // A deadline beyond what the clock can count is none.
        let Some(deadline) = Instant::now().checked_add(patience) else { return };
        let mut state = self.lock();
        // Its response may be there already.
        let Some(waiting) = state.waiting.get_mut(&token) else { return };
        waiting.deadline = Some(deadline);
        state.deadlines.insert((deadline, token));
        if state.planned.is_none_or(|planned| deadline < planned) {
            state.planned = Some(deadline);
            self.changed.notify_one();
        }
    }

    /// Nobody waits for the call any more. Returns whether it had not ended.
    pub(super) fn forget(&self, token: Token) -> bool {
        self.lock().remove(token).is_some()
    }

    /// The send of the request has ended.
    pub(super) fn on_sent(&self, token: Token, outcome: Outcome) {
        let error = match outcome {
            Outcome::Delivered(_) => {
                let mut state = self.lock();
                let Some(waiting) = state.waiting.get_mut(&token) else { return };
                waiting.delivered = true;
                if !waiting.due {
                    return;
                }
                CallError::Deadline
            }
            Outcome::Rejected(rejection) => CallError::Request(SendError::Rejected(rejection)),
            Outcome::Unknown(doubt) => CallError::Request(SendError::Unknown(doubt)),
        };
        self.settle(token, Err(error));
    }

    /// A response has come in, of whomever.
    pub(crate) fn on_response(&self, bytes: &Bytes) {
        let Some(response) = ResponseFrame::parse(bytes) else {
            return Counts::add(&self.counts.malformed);
        };
        let waiting = self.lock().remove(response.token);
        let Some(waiting) = waiting else { return Counts::add(&self.counts.responses_dropped) };
        // Before the caller can look.
        Counts::add(&self.counts.responses_received);
        (waiting.settle)(response.bytes.ok_or(CallError::Unanswered));
    }

    /// Ends a call, if it waits.
    fn settle(&self, token: Token, result: Result<Bytes, CallError>) {
        let waiting = self.lock().remove(token);
        // Without the lock: it may wake whoever comes by here.
        if let Some(waiting) = waiting {
            (waiting.settle)(result);
        }
    }

    /// Ends all calls, and takes no more.
    pub(crate) fn close(&self) {
        self.room.close();
        let mut state = self.lock();
        state.closed = true;
        state.deadlines.clear();
        let waiting = core::mem::take(&mut state.waiting);
        let timer = state.timer.take();
        self.changed.notify_one();
        drop(state);
        for waiting in waiting.into_values() {
            contain(|| (waiting.settle)(Err(CallError::Closed)));
        }
        if let Some(timer) = timer
            && timer.thread().id() != thread::current().id()
            && timer.join().is_err()
        {
            tracing::error!("the thread that watches the deadlines of calls panicked");
        }
    }

    fn run_timer(&self) {
        let mut state = self.lock();
        while !state.closed {
            let now = Instant::now();
            let mut overdue = Vec::new();
            while let Some(&(at, token)) = state.deadlines.first()
                && at <= now
            {
                state.deadlines.pop_first();
                let Some(waiting) = state.waiting.get_mut(&token) else { continue };
                (waiting.deadline, waiting.due) = (None, true);
                if waiting.delivered {
                    overdue.extend(state.waiting.remove(&token));
                }
            }
            if !overdue.is_empty() {
                drop(state);
                for waiting in overdue {
                    contain(|| (waiting.settle)(Err(CallError::Deadline)));
                }
                state = self.lock();
                continue;
            }
            state.planned = state.deadlines.first().map(|&(at, _)| at);
            state = match state.planned {
                Some(at) => {
                    let wait = at.saturating_duration_since(now);
                    let woken = self.changed.wait_timeout(state, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, token: Token) -> Option<Waiting> {
        let waiting = self.waiting.remove(&token)?;
        if let Some(deadline) = waiting.deadline {
            self.deadlines.remove(&(deadline, token));
        }
        Some(waiting)
    }
}

impl core::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Waiting").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
