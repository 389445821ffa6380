//! What the clones of an endpoint share, and how it ends.

use crate::error::SendError;
use crate::io::UdpIo;
use crate::path_map::{PathMap, PathMapError, Usable};
use crate::watch::Watch;
use async_channel::Receiver;
use cloudburst_core::burst::Engine;
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::Message;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::{io, mem, process};
use tokio::sync::Notify;

/// What the clones share. Sends under way refer to it weakly, engine threads not at all: so its
/// end is the end of the last clone.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Shared with nobody; counted, so that a forked process can leave it alone.
    pub(crate) engine: Arc<Engine<UdpIo>>,
    pub(crate) messages: Receiver<Message>,
    /// Notified, one waiter at a time, when a send has ended or has left room for another.
    pub(crate) room: Arc<Notify>,
    /// How closing went, once it has ended.
    closed: RwLock<Option<bool>>,
    process: u32,
    usable: Usable,
    /// The file that the path map is from, if it is.
    watch: Mutex<Option<Watch>>,
}

impl Inner {
    pub(crate) fn new(engine: Engine<UdpIo>, messages: Receiver<Message>, usable: Usable) -> Self {
        Self {
            usable,
            watch: Mutex::new(None),
            engine: Arc::new(engine),
            messages,
            room: Arc::new(Notify::new()),
            closed: RwLock::new(None),
            process: process::id(),
        }
    }

    /// Uses `map` from now on.
    pub(crate) fn replace_paths(&self, map: PathMap) -> Result<(), PathMapError> {
        let resolved = self.usable.resolve(map, self.engine.io())?;
        Ok(self.engine.set_path_map(Arc::new(resolved))?)
    }

    /// Watches the file of `map`, if it has one, and no other.
    pub(crate) fn watch(self: &Arc<Self>, map: &PathMap) -> io::Result<()> {
        let watch = Watch::start(map, Arc::downgrade(self))?;
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
        Ok(())
    }

    pub(crate) fn cancel(&self, id: MessageId) {
        if !self.is_forked() {
            self.unless_closed(|engine| engine.cancel(id));
        }
    }

    /// Runs `act` before closing ends, or not at all. Never waits, because `act` may wake a task
    /// that comes by here as well.
    pub(crate) fn unless_closed(&self, act: impl FnOnce(&Engine<UdpIo>)) {
        // Where this fails, closing is waiting for the lock: the engine has stopped.
        let Ok(closed) = self.closed.try_read() else { return };
        if closed.is_none() {
            act(&self.engine);
        }
    }

    pub(crate) fn close(&self, within: Duration) -> bool {
        if self.is_forked() {
            return false;
        }
        let drained = self.engine.close(within);
        let mut closed = self.closed.write().unwrap_or_else(PoisonError::into_inner);
        self.messages.close();
        self.room.notify_waiters();
        *closed.get_or_insert(drained)
    }

    pub(crate) fn check_process(&self) -> Result<(), SendError> {
        match process::id() {
            here if here == self.process => Ok(()),
            here => Err(SendError::Forked { built_in: self.process, here }),
        }
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.check_process().is_err()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_forked() {
            // The engine's threads are the parent's: here, waiting for them would never end.
            mem::forget(Arc::clone(&self.engine));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::Endpoint;
    use crate::error::Closed;
    use cloudburst_core::config::Security;
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    fn inner() -> Inner {
        let security = Security::pre_shared([7; 32]);
        let loopback = "127.0.0.1:0".parse().unwrap();
        let builder = crate::Endpoint::builder().bind(loopback).security(security);
        Arc::into_inner(builder.build().unwrap().inner).unwrap()
    }

    #[test]
    fn a_fork_of_the_process_can_neither_send_nor_receive_nor_hang() {
        let original = inner();
        let here = process::id();
        // What a fork would see.
        let fork = Inner {
            engine: original.engine.clone(),
            messages: original.messages.clone(),
            room: original.room.clone(),
            closed: RwLock::new(None),
            process: here.wrapping_add(1),
            usable: original.usable,
            watch: Mutex::new(None),
        };
        let fork = Endpoint::from(crate::Endpoint { inner: Arc::new(fork) });
        let forked = SendError::Forked { built_in: here.wrapping_add(1), here };
        assert_eq!(fork.send(fork.local_addr(), "hello"), Err(forked));
        assert_eq!((fork.recv(), fork.try_recv()), (Err(Closed), Err(Closed)));
        assert!(!fork.close(Duration::from_secs(60)));
        drop(fork);
        assert_eq!(Arc::strong_count(&original.engine), 2, "one is left behind on purpose");
    }

    #[test]
    fn room_that_is_left_before_anybody_waits_for_it_is_not_lost() {
        let inner = inner();
        let waiting = inner.room.notified();
        inner.room.notify_one();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(pin!(waiting).poll(&mut context), Poll::Ready(()));
    }
}
