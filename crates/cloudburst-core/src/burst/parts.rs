//! The parts of an endpoint, each behind a lock.

use crate::error::{CallFailure, Outcome, Rejection};
use crate::id::{ConnectId, MessageId};
use crate::proto::coupling::{Halves, Parts};
use crate::proto::{CallId, CallTable, Receiver, RequestId, Sender};
use crate::time::Instant;
use crate::wire::Role;
use bytes::Bytes;
use core::ops::{Deref, DerefMut};
use foldhash::{HashMap, HashMapExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

/// Called once, on the thread that learns how a send ended.
pub type OnEnd = Box<dyn FnOnce(Outcome) + Send>;
/// Called once, on the thread that learns how a connect ended.
pub type OnConnect = Box<dyn FnOnce(Result<(), Rejection>) + Send>;
/// Called once, on the thread that learns how a call ended.
pub type OnAnswer = Box<dyn FnOnce(Result<Bytes, CallFailure>) + Send>;
/// Called once if the caller of a request no longer waits for the response while the application
/// has the request. Dropped if the request ends otherwise.
pub type OnWithdrawn = Box<dyn FnOnce() + Send>;

/// The parts and their locks, which are taken in the order of [`Parts`]: calling, sending,
/// receiver.
pub(super) struct LockedParts {
    calling: Mutex<Calling>,
    sending: Mutex<Sending>,
    receiver: Mutex<Receiver>,
    snapshot: Snapshot,
}

pub(super) struct Calling {
    pub(super) calls: CallTable,
    pub(super) on_answer: HashMap<CallId, OnAnswer>,
    pub(super) on_withdrawn: HashMap<RequestId, OnWithdrawn>,
}

pub(super) struct Sending {
    pub(super) sender: Sender,
    /// The callback of each send, with a clone of its payload, so that the last reference is never
    /// dropped under the lock: the owner of the payload may run any code.
    pub(super) on_end: HashMap<MessageId, (OnEnd, Bytes)>,
    pub(super) on_connect: HashMap<ConnectId, OnConnect>,
    /// When the sending thread wakes by itself; `None` if it waits to be woken.
    pub(super) planned: Option<Instant>,
}

/// The state of the receiver that is known without its lock, as of when the lock was last released.
#[derive(Debug, Default)]
struct Snapshot {
    has_output: AtomicBool,
    messages: AtomicUsize,
    requests: AtomicUsize,
}

pub(super) struct ReceiverGuard<'a> {
    guard: MutexGuard<'a, Receiver>,
    snapshot: &'a Snapshot,
}

impl Deref for ReceiverGuard<'_> {
    type Target = Receiver;

    fn deref(&self) -> &Receiver {
        &self.guard
    }
}

impl DerefMut for ReceiverGuard<'_> {
    fn deref_mut(&mut self) -> &mut Receiver {
        &mut self.guard
    }
}

impl Drop for ReceiverGuard<'_> {
    fn drop(&mut self) {
        // Updates the snapshot while the lock is still held, so that it is never older than the last
        // change, and only where it has changed, because a store costs as much as a lock.
        let Snapshot { has_output, messages, requests } = self.snapshot;
        if has_output.load(SeqCst) != self.guard.has_output() {
            has_output.store(self.guard.has_output(), SeqCst);
        }
        for (known, role) in [(messages, Role::Plain), (requests, Role::Request)] {
            let readable = self.guard.readable(role);
            if known.load(SeqCst) != readable {
                known.store(readable, SeqCst);
            }
        }
    }
}

pub(super) struct SenderGuard<'a>(MutexGuard<'a, Sending>);

impl Deref for SenderGuard<'_> {
    type Target = Sender;

    fn deref(&self) -> &Sender {
        &self.0.sender
    }
}

impl DerefMut for SenderGuard<'_> {
    fn deref_mut(&mut self) -> &mut Sender {
        &mut self.0.sender
    }
}

struct CallsGuard<'a>(MutexGuard<'a, Calling>);

impl Deref for CallsGuard<'_> {
    type Target = CallTable;

    fn deref(&self) -> &CallTable {
        &self.0.calls
    }
}

impl DerefMut for CallsGuard<'_> {
    fn deref_mut(&mut self) -> &mut CallTable {
        &mut self.0.calls
    }
}

impl LockedParts {
    pub(super) fn new(sender: Sender, receiver: Receiver, calls: CallTable) -> Self {
        Self {
            calling: Mutex::new(Calling {
                calls,
                on_answer: HashMap::new(),
                on_withdrawn: HashMap::new(),
            }),
            sending: Mutex::new(Sending {
                sender,
                on_end: HashMap::new(),
                on_connect: HashMap::new(),
                planned: None,
            }),
            receiver: Mutex::new(receiver),
            snapshot: Snapshot::default(),
        }
    }

    pub(super) fn lock_calling(&self) -> MutexGuard<'_, Calling> {
        lock(&self.calling)
    }

    pub(super) fn lock_sending(&self) -> MutexGuard<'_, Sending> {
        lock(&self.sending)
    }

    pub(super) fn lock_receiver(&self) -> ReceiverGuard<'_> {
        ReceiverGuard { guard: lock(&self.receiver), snapshot: &self.snapshot }
    }

    /// The parts for a batch of packets.
    pub(super) const fn batch(&self) -> BatchParts<'_> {
        BatchParts { parts: self, sender: None, receiver: None }
    }

    /// The receiver, if it has output.
    pub(super) fn lock_answering(&self) -> Option<ReceiverGuard<'_>> {
        self.snapshot.has_output.load(SeqCst).then(|| self.lock_receiver())
    }

    /// The number of messages of `role` in the application's queue.
    pub(super) fn readable(&self, role: Role) -> usize {
        match role {
            Role::Plain => self.snapshot.messages.load(SeqCst),
            Role::Request => self.snapshot.requests.load(SeqCst),
            Role::Response | Role::Withdrawal => 0,
        }
    }
}

impl Halves for &LockedParts {
    fn sender(&mut self) -> impl DerefMut<Target = Sender> {
        SenderGuard(self.lock_sending())
    }

    fn receiver(&mut self) -> impl DerefMut<Target = Receiver> {
        self.lock_receiver()
    }

    fn both(&mut self) -> (impl DerefMut<Target = Sender>, impl DerefMut<Target = Receiver>) {
        (SenderGuard(self.lock_sending()), self.lock_receiver())
    }
}

impl Parts for &LockedParts {
    fn calls(&mut self) -> impl DerefMut<Target = CallTable> {
        CallsGuard(self.lock_calling())
    }

    fn calls_and_sender(
        &mut self,
    ) -> (impl DerefMut<Target = CallTable>, impl DerefMut<Target = Sender>) {
        (CallsGuard(self.lock_calling()), SenderGuard(self.lock_sending()))
    }

    fn calls_and_receiver(
        &mut self,
    ) -> (impl DerefMut<Target = CallTable>, impl DerefMut<Target = Receiver>) {
        (CallsGuard(self.lock_calling()), self.lock_receiver())
    }

    fn all(
        &mut self,
    ) -> (
        impl DerefMut<Target = CallTable>,
        impl DerefMut<Target = Sender>,
        impl DerefMut<Target = Receiver>,
    ) {
        (CallsGuard(self.lock_calling()), SenderGuard(self.lock_sending()), self.lock_receiver())
    }

    fn answering(&mut self) -> Option<impl DerefMut<Target = Receiver>> {
        self.lock_answering()
    }
}

/// The halves of an endpoint. The half that was used last stays locked until the other is used, so
/// that a batch of packets takes one lock, not one for each packet.
pub(super) struct BatchParts<'a> {
    parts: &'a LockedParts,
    sender: Option<SenderGuard<'a>>,
    receiver: Option<ReceiverGuard<'a>>,
}

impl Halves for BatchParts<'_> {
    fn sender(&mut self) -> impl DerefMut<Target = Sender> {
        // Released first: the lock of the sender must not be taken while that of the receiver is held.
        self.receiver = None;
        let parts = self.parts;
        &mut **self.sender.get_or_insert_with(|| SenderGuard(parts.lock_sending()))
    }

    fn receiver(&mut self) -> impl DerefMut<Target = Receiver> {
        self.sender = None;
        let parts = self.parts;
        &mut **self.receiver.get_or_insert_with(|| parts.lock_receiver())
    }

    fn both(&mut self) -> (impl DerefMut<Target = Sender>, impl DerefMut<Target = Receiver>) {
        self.sender = None;
        self.receiver = None;
        (SenderGuard(self.parts.lock_sending()), self.parts.lock_receiver())
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("holders of this lock run state machines, which do not panic")
}
