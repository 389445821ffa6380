//! What the lock of an engine guards.

use crate::error::{CallFailure, Outcome, Rejection};
use crate::id::{ConnectId, MessageId};
use crate::proto::{CallId, Event, RequestId, Transceiver};
use crate::time::Instant;
use bytes::Bytes;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;

/// Called once, on the thread that learns how a send ended.
pub type OnEnd = Box<dyn FnOnce(Outcome) + Send>;
/// Called once, on the thread that learns how a connect ended.
pub type OnConnect = Box<dyn FnOnce(Result<(), Rejection>) + Send>;
/// Called once, on the thread that learns how a call ended.
pub type OnAnswer = Box<dyn FnOnce(Result<Bytes, CallFailure>) + Send>;
/// Called once if the caller of a request no longer waits for the response while the application
/// has the request. Dropped if the request ends otherwise.
pub type OnWithdrawn = Box<dyn FnOnce() + Send>;

/// The endpoint, with the callbacks of what has not ended. They run without the lock, and are
/// dropped without it, because they may own anything.
pub(super) struct State {
    pub(super) endpoint: Transceiver,
    /// The callback of each send, with a clone of its payload, so that the last reference is never
    /// dropped under the lock: the owner of the payload may run any code.
    pub(super) on_end: HashMap<MessageId, (OnEnd, Bytes)>,
    pub(super) on_connect: HashMap<ConnectId, OnConnect>,
    pub(super) on_answer: HashMap<CallId, OnAnswer>,
    pub(super) on_withdrawn: HashMap<RequestId, OnWithdrawn>,
    /// Events to report before those that the endpoint still has.
    pub(super) events: VecDeque<Event>,
    /// When the timer of the sockets expires. It may expire for nothing: it is set when something is
    /// due earlier, and not when nothing is due any more.
    // Keeping it exact would take one more system call per round trip.
    pub(super) timer: Option<Instant>,
}

impl State {
    pub(super) fn new(endpoint: Transceiver) -> Self {
        Self {
            endpoint,
            on_end: HashMap::new(),
            on_connect: HashMap::new(),
            on_answer: HashMap::new(),
            on_withdrawn: HashMap::new(),
            events: VecDeque::new(),
            timer: None,
        }
    }
}
