//! What the clones of an endpoint share, and how it ends.

use crate::calls::CallTable;
use crate::error::SendError;
use crate::io::UdpIo;
use crate::path_map::{PathMap, PathMapError, Usable};
use crate::watch::Watch;
use async_channel::Receiver;
use cloudburst_core::burst::{Driven, Engine};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::Message;
use cloudburst_core::time::Instant;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::{io, mem, process};
use tokio::sync::{Notify, watch};

/// What the clones share. Sends under way refer to it weakly, engine threads not at all: so its
/// end is the end of the last clone.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Counted, so that a forked process can leave it alone, and for those who wait for sends.
    pub(crate) engine: Arc<Engine<UdpIo>>,
    pub(crate) messages: Receiver<Message>,
    /// Requests, and when each had arrived.
    pub(crate) requests: Receiver<(std::time::Instant, Message)>,
    pub(crate) calls: Arc<CallTable>,
    /// Notified, one waiter at a time, when a send has ended or has left room for another.
    pub(crate) room: Arc<Notify>,
    /// Whether it is closed, for those who may not keep this; dropped with it.
    pub(crate) over: watch::Sender<bool>,
    /// How closing went, once it has ended.
    closed: RwLock<Option<bool>>,
    pub(crate) process: Process,
    usable: Usable,
    /// Held while they change.
    paths: Mutex<Paths>,
}

/// The path map in use, as far as changing it depends on that.
#[derive(Debug)]
struct Paths {
    /// What the order is of.
    whole: PathMap,
    /// The file that the map is from, if it is.
    watch: Option<Watch>,
    /// How often the map was changed, which gives each watch a number of its own.
    changes: u64,
}

/// The process that built an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    /// # Errors
    ///
    /// [`SendError::Forked`] in a fork of it.
    pub(crate) fn check(self) -> Result<(), SendError> {
        match process::id() {
            here if here == self.0 => Ok(()),
            here => Err(SendError::Forked { built_in: self.0, here }),
        }
    }
}

impl Inner {
    pub(crate) fn new(
        engine: Engine<UdpIo>,
        messages: Receiver<Message>,
        requests: Receiver<(std::time::Instant, Message)>,
        calls: Arc<CallTable>,
        usable: Usable,
        paths: PathMap,
    ) -> Self {
        Self {
            requests,
            calls,
            usable,
            paths: Mutex::new(Paths { whole: paths, watch: None, changes: 0 }),
            engine: Arc::new(engine),
            messages,
            room: Arc::new(Notify::new()),
            over: watch::channel(false).0,
            closed: RwLock::new(None),
            process: Process(process::id()),
        }
    }

    /// Uses `map` from now on, and watches the file that it is from, if it is, and no other.
    pub(crate) fn set_paths(self: &Arc<Self>, map: PathMap) -> Result<(), PathMapError> {
        if self.is_forked() {
            return Err(PathMapError::Forked);
        }
        let mut paths = self.lock_paths();
        let number = paths.changes + 1;
        let watch = Watch::start(&map, number, Arc::downgrade(self));
        let watch = watch.map_err(|error| PathMapError::unwatched(&map, &error))?;
        self.replace(&mut paths, map)?;
        paths.watch = watch;
        Ok(())
    }

    /// Uses what the watched file says now, unless another map was set meanwhile.
    pub(crate) fn replace_watched_paths(
        &self,
        map: PathMap,
        number: u64,
    ) -> Result<(), PathMapError> {
        let mut paths = self.lock_paths();
        if paths.watch.as_ref().is_some_and(|watch| watch.number() == number) {
            self.replace(&mut paths, map)?;
        }
        Ok(())
    }

    fn replace(&self, paths: &mut Paths, map: PathMap) -> Result<(), PathMapError> {
        let resolved = self.usable.resolve(map, &paths.whole, self.engine.io())?;
        let whole = resolved.whole().clone();
        self.engine.set_path_map(Arc::new(resolved))?;
        paths.whole = whole;
        paths.changes += 1;
        Ok(())
    }

    fn lock_paths(&self) -> MutexGuard<'_, Paths> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`Engine::drive`]. Ends when a message has come or the endpoint is closed.
    pub(crate) fn drive_to_message(&self, until: Option<Instant>) -> Driven {
        let has_news = || !self.messages.is_empty() || self.messages.is_closed();
        if self.is_forked() { Driven::Stopped } else { self.engine.drive(until, has_news) }
    }

    /// The engine of an endpoint that may be gone. It does not keep the endpoint alive.
    pub(crate) fn engine_of(endpoint: &Weak<Self>) -> Option<Arc<Engine<UdpIo>>> {
        endpoint.upgrade()?.engine_here()
    }

    /// The engine, if its threads are this process's.
    pub(crate) fn engine_here(&self) -> Option<Arc<Engine<UdpIo>>> {
        (!self.is_forked()).then(|| Arc::clone(&self.engine))
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
        self.requests.close();
        self.room.notify_waiters();
        self.over.send_replace(true);
        self.lock_paths().watch = None;
        let drained = *closed.get_or_insert(drained);
        drop(closed);
        self.calls.close();
        drained
    }

    /// Watches the file of the map that the endpoint was built with, if it is from one.
    pub(crate) fn watch(self: &Arc<Self>, map: &PathMap) -> io::Result<()> {
        let mut paths = self.lock_paths();
        paths.watch = Watch::start(map, paths.changes, Arc::downgrade(self))?;
        Ok(())
    }

    pub(crate) fn check_process(&self) -> Result<(), SendError> {
        self.process.check()
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.check_process().is_err()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_forked() {
            // The threads are the parent's: here, waiting for them would never end, and they may
            // have held any lock when the process was forked. So all that has one stays.
            mem::forget((self.engine.clone(), self.calls.clone(), self.room.clone()));
            mem::forget((self.messages.clone(), self.requests.clone(), self.over.clone()));
            let paths = self.paths.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget(paths.watch.take());
        } else {
            self.calls.close();
            // Whoever waits for a send of it may hold the engine, too.
            self.engine.stop();
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
            requests: original.requests.clone(),
            calls: original.calls.clone(),
            room: original.room.clone(),
            over: watch::channel(false).0,
            closed: RwLock::new(None),
            process: Process(here.wrapping_add(1)),
            usable: original.usable,
            paths: Mutex::new(Paths { whole: PathMap::default(), watch: None, changes: 0 }),
        };
        // Who waits in the parent at the fork is not woken by the child.
        let over = fork.over.subscribe();
        let mut room = pin!(original.room.notified());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(room.as_mut().poll(&mut context), Poll::Pending);
        let fork = Endpoint::from(crate::Endpoint { inner: Arc::new(fork) });
        let forked = SendError::Forked { built_in: here.wrapping_add(1), here };
        assert_eq!(fork.send(fork.local_addr(), "hello"), Err(forked));
        assert_eq!((fork.recv(), fork.try_recv()), (Err(Closed), Err(Closed)));
        assert!(!fork.close(Duration::from_secs(60)));
        assert_eq!(fork.set_paths(PathMap::ecmp(1)), Err(PathMapError::Forked));
        drop(fork);
        assert_eq!(room.poll(&mut context), Poll::Pending);
        assert!(over.has_changed().is_ok(), "its end is not told");
        assert_eq!(Arc::strong_count(&original.engine), 2, "one is left behind on purpose");
    }

    #[test]
    fn a_watch_that_comes_late_does_not_overrule_the_caller() {
        let inner = Arc::new(inner());
        inner.set_paths(PathMap::ecmp(4)).unwrap();
        assert_eq!(inner.replace_watched_paths(PathMap::ecmp(2), 0), Ok(()));
        assert_eq!(inner.lock_paths().whole, PathMap::ecmp(4));
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
