//! The parts of an endpoint behind locks.

use super::PacketIo;
use super::shared::{Calling, Sending, Shared, lock};
use crate::proto::coupling::Parts;
use crate::proto::{Calls, Receiver, Sender};
use crate::wire::Role;
use core::ops::{Deref, DerefMut};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// What is known of the receiver without its lock: as it was when the lock was released last.
#[derive(Debug, Default)]
pub(super) struct Glance {
    has_output: AtomicBool,
    messages: AtomicUsize,
    requests: AtomicUsize,
}

impl Glance {
    pub(super) fn readable(&self, role: Role) -> usize {
        match role {
            Role::Plain => self.messages.load(SeqCst),
            Role::Request => self.requests.load(SeqCst),
            Role::Response => 0,
        }
    }
}

pub(super) struct ReceiverGuard<'a> {
    guard: MutexGuard<'a, Receiver>,
    glance: &'a Glance,
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
        // While the lock is still held: so it is never older than the last change.
        self.glance.has_output.store(self.guard.has_output(), SeqCst);
        self.glance.messages.store(self.guard.readable(Role::Plain), SeqCst);
        self.glance.requests.store(self.guard.readable(Role::Request), SeqCst);
    }
}

struct SenderGuard<'a>(MutexGuard<'a, Sending>);

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
    type Target = Calls;

    fn deref(&self) -> &Calls {
        &self.0.calls
    }
}

impl DerefMut for CallsGuard<'_> {
    fn deref_mut(&mut self) -> &mut Calls {
        &mut self.0.calls
    }
}

impl<I: PacketIo> Shared<I> {
    pub(super) fn lock_receiver(&self) -> ReceiverGuard<'_> {
        ReceiverGuard { guard: lock(&self.receiver), glance: &self.glance }
    }
}

/// The locks are taken in the order that [`Parts`] says: calling, sending, receiver.
impl<I: PacketIo> Parts for &Shared<I> {
    fn calls(&mut self) -> impl DerefMut<Target = Calls> {
        CallsGuard(lock(&self.calling))
    }

    fn sender(&mut self) -> impl DerefMut<Target = Sender> {
        SenderGuard(lock(&self.sending))
    }

    fn receiver(&mut self) -> impl DerefMut<Target = Receiver> {
        self.lock_receiver()
    }

    fn calls_and_sender(
        &mut self,
    ) -> (impl DerefMut<Target = Calls>, impl DerefMut<Target = Sender>) {
        (CallsGuard(lock(&self.calling)), SenderGuard(lock(&self.sending)))
    }

    fn halves(&mut self) -> (impl DerefMut<Target = Sender>, impl DerefMut<Target = Receiver>) {
        (SenderGuard(lock(&self.sending)), self.lock_receiver())
    }

    fn answering(&mut self) -> Option<impl DerefMut<Target = Receiver>> {
        self.glance.has_output.load(SeqCst).then(|| self.lock_receiver())
    }
}
