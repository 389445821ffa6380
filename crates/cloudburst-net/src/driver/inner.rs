//! The state that the clones of an endpoint share, and its shutdown.

use super::deadlines::Deadlines;
use super::process::Process;
use super::waiters::Room;
use crate::calls::CallLimit;
use crate::error::{Closed, SendError};
use crate::io::UdpIo;
use crate::path_map::{PathMap, PathMapError};
use crate::paths::{Usable, Watch};
use crate::qlog::Qlog;
use bytes::Bytes;
use cloudburst_core::burst::{Driven, Engine, News, OnAnswer, OnEnd};
use cloudburst_core::config::Config;
use cloudburst_core::error::SendError as Refusal;
use cloudburst_core::id::MessageId;
use cloudburst_core::naming::Naming;
use cloudburst_core::proto::{Calls, Prepared, SendOptions};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Role;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{io, mem, time};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, watch};
use tokio::task::yield_now;

/// The state that all clones share. Sends under way refer to it weakly, and engine threads not at
/// all, so it ends with the last clone.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Reference-counted, so that a fork can leak it, and so that callers that wait for sends can hold it.
    pub(crate) engine: Arc<Engine<UdpIo>>,
    pub(crate) readable: Arc<Readable>,
    pub(crate) call_limit: CallLimit,
    /// The default deadline of messages, and the longest one of responses.
    pub(crate) patience: Duration,
    pub(crate) room: Arc<Room>,
    deadlines: Deadlines,
    /// Whether the endpoint is closed, for tasks that must not keep this alive; dropped with it.
    pub(crate) over: watch::Sender<bool>,
    /// Whether it takes no more requests.
    closing: AtomicBool,
    pub(crate) process: Process,
    /// Whether a task of a tokio runtime takes the packets.
    pub(crate) driven: AtomicBool,
    usable: Usable,
    /// Held while the paths change.
    paths: Mutex<Paths>,
    qlog: Option<Qlog>,
}

/// Notifies callers that wait for something to read.
#[derive(Debug, Default)]
pub(crate) struct Readable {
    pub(crate) messages: Notify,
    pub(crate) requests: Notify,
}

impl Readable {
    fn of(&self, role: Role) -> Option<&Notify> {
        match role {
            Role::Plain => Some(&self.messages),
            Role::Request => Some(&self.requests),
            Role::Response | Role::Withdrawal => None,
        }
    }
}

/// The engine's callback for news.
pub(crate) fn tell(readable: Arc<Readable>, room: Arc<Room>) -> impl Fn(News) + Send + Sync {
    move |news| match news {
        News::Readable(role) => {
            // Wakes all of them: one may be a stream that is not being polled. Each registers before it looks
            // into the queue, so that it misses nothing.
            if let Some(notify) = readable.of(role) {
                notify.notify_waiters();
            }
        }
        News::Room => room.left(),
    }
}

/// The state of the current path map that changing it depends on.
#[derive(Debug)]
struct Paths {
    /// The map that the order fits.
    whole: PathMap,
    /// The file that the map comes from, if any.
    watch: Option<Watch>,
    /// How often the map was changed, which gives each watch a number of its own.
    changes: u64,
}

impl Inner {
    pub(crate) fn new(
        engine: Engine<UdpIo>,
        readable: Arc<Readable>,
        room: Arc<Room>,
        config: &Config,
        usable: Usable,
        paths: PathMap,
        qlog: Option<Qlog>,
    ) -> Self {
        Self {
            readable,
            call_limit: CallLimit::new(config.send_messages),
            patience: config.deadline,
            usable,
            qlog,
            paths: Mutex::new(Paths { whole: paths, watch: None, changes: 0 }),
            engine: Arc::new(engine),
            room,
            deadlines: Deadlines::default(),
            over: watch::channel(false).0,
            closing: AtomicBool::new(false),
            process: Process::this(),
            driven: AtomicBool::new(false),
        }
    }

    /// Replaces the paths with `map`, and watches the file of `map`, if any, instead of that of the previous
    /// map.
    pub(crate) fn set_paths(self: &Arc<Self>, map: PathMap) -> Result<(), PathMapError> {
        if self.is_forked() {
            return Err(PathMapError::Forked);
        }
        let mut paths = self.lock_paths();
        let number = paths.changes + 1;
        let watch = self.start_watch(&map, number);
        let watch = watch.map_err(|error| map.unwatched(&error))?;
        self.replace(&mut paths, map)?;
        paths.watch = watch;
        Ok(())
    }

    fn start_watch(self: &Arc<Self>, map: &PathMap, number: u64) -> io::Result<Option<Watch>> {
        let endpoint = Arc::downgrade(self);
        let replace = move |map| endpoint.upgrade()?.replace_watched_paths(map, number);
        Watch::start(map, number, replace)
    }

    /// Applies the new contents of the watched file. Does nothing if another map was set meanwhile (`None`).
    pub(crate) fn replace_watched_paths(
        &self,
        map: PathMap,
        number: u64,
    ) -> Option<Result<(), PathMapError>> {
        let mut paths = self.lock_paths();
        let is_watched = paths.watch.as_ref().is_some_and(|watch| watch.number() == number);
        is_watched.then(|| self.replace(&mut paths, map))
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

    /// See [`Engine::drive`]. Ends when a message has arrived or the endpoint is closed.
    pub(crate) fn drive_to_message(&self, until: Option<Instant>) -> Driven {
        let has_news = || self.engine.readable(Role::Plain) > 0 || *self.over.borrow();
        if self.is_forked() { Driven::Stopped } else { self.engine.drive(until, has_news) }
    }

    /// The engine of an endpoint that may be gone. This does not keep the endpoint alive.
    pub(crate) fn engine_of(endpoint: &Weak<Self>) -> Option<Arc<Engine<UdpIo>>> {
        endpoint.upgrade()?.engine_here().cloned()
    }

    /// The engine, if its threads belong to this process: in a fork, a thread that held one of its locks does
    /// not exist.
    pub(crate) fn engine_here(&self) -> Option<&Arc<Engine<UdpIo>>> {
        (!self.is_forked()).then_some(&self.engine)
    }

    /// See [`Engine::send`].
    pub(crate) fn send(
        self: &Arc<Self>,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: OnEnd,
    ) -> Result<MessageId, Refusal> {
        let Some(runtime) = self.join_runtime() else {
            return self.engine.send(peer, role, bytes, options, on_end);
        };
        let (id, put_off) = self.engine.send_before_flush(peer, role, bytes, options, on_end)?;
        // Under load, a message waits until the tasks that were woken together have run, and shares
        // a train with theirs: 0.10 trains and 0.09 answers for each message of 5 KB, instead of
        // one of each.
        if put_off {
            self.flush_in(&runtime);
        }
        Ok(id)
    }

    /// See [`Engine::call`].
    pub(crate) fn call(
        self: &Arc<Self>,
        peer: SocketAddr,
        call: &Prepared,
        options: &SendOptions,
        on_answer: OnAnswer,
    ) -> Result<(), Refusal> {
        let Some(runtime) = self.join_runtime() else {
            return self.engine.call(peer, call, options, on_answer);
        };
        if self.engine.call_before_flush(peer, call, options, on_answer)? {
            self.flush_in(&runtime);
        }
        Ok(())
    }

    /// Flushes after the tasks of the runtime that were woken together with this one have run, so that what
    /// they send shares trains.
    fn flush_in(self: &Arc<Self>, runtime: &Handle) {
        // If the runtime ends first, dropping the task flushes.
        let flush = FlushOnDrop(Arc::downgrade(self));
        let is_current_thread = runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
        drop(runtime.spawn(async move {
            let _flush = flush;
            // On a multi-threaded runtime, a task that is spawned runs before all others of its thread.
            if !is_current_thread {
                yield_now().await;
            }
        }));
    }

    pub(crate) fn cancel(&self, id: MessageId) {
        if let Some(engine) = self.engine_here() {
            engine.cancel(id);
        }
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Calls)) {
        if let Some(engine) = self.engine_here() {
            engine.calls(count);
        }
    }

    pub(crate) fn shutdown(&self, within: Duration) -> bool {
        if self.is_forked() {
            return false;
        }
        let drained = self.engine.shutdown(within, || {
            self.closing.store(true, SeqCst);
            self.readable.requests.notify_waiters();
            // Nothing of what waits for room was sent. Replies are still accepted: they wait again.
            self.room.wake_all();
            self.call_limit.close();
        });
        self.over.send_replace(true);
        self.readable.messages.notify_waiters();
        self.readable.requests.notify_waiters();
        self.room.wake_all();
        self.lock_paths().watch = None;
        self.deadlines.stop();
        drained
    }

    /// When an operation with `options` that begins now must have ended; `None` if that is beyond the range
    /// of the clock.
    pub(crate) fn end_of(&self, options: &SendOptions) -> Option<time::Instant> {
        time::Instant::now().checked_add(options.deadline.unwrap_or(self.patience))
    }

    /// Waits for `future`, at most until the deadline.
    ///
    /// # Errors
    ///
    /// [`SendError::NotStarted`] if the deadline passes first.
    pub(crate) async fn within<F: Future>(
        &self,
        until: Option<time::Instant>,
        future: F,
    ) -> Result<F::Output, SendError> {
        let Some(until) = until else { return Ok(future.await) };
        let mut future = pin!(future);
        let mut late = pin!(self.process.wait(self.deadlines.reached(until)));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => late
                .as_mut()
                .poll(context)
                .map(|late| Err(late.err().unwrap_or(SendError::NotStarted))),
        })
        .await
    }

    /// Watches the file of the map that the endpoint was built with, if it has one.
    pub(crate) fn watch(self: &Arc<Self>, map: &PathMap) -> io::Result<()> {
        let mut paths = self.lock_paths();
        paths.watch = self.start_watch(map, paths.changes)?;
        Ok(())
    }

    /// Whether the endpoint is closed, so that nothing more arrives.
    ///
    /// # Errors
    ///
    /// Fails in a fork, where the state of the endpoint is not visible.
    pub(crate) fn is_closed(&self) -> Result<bool, Closed> {
        if self.is_forked() { Err(Closed) } else { Ok(*self.over.borrow()) }
    }

    /// Whether the endpoint takes no more requests.
    ///
    /// # Errors
    ///
    /// See [`is_closed`](Self::is_closed).
    pub(crate) fn is_closing(&self) -> Result<bool, Closed> {
        Ok(self.is_closed()? || self.closing.load(SeqCst))
    }

    /// Whether `address` is this endpoint's own. In a fork, a thread of the parent may hold the lock of the
    /// addresses.
    pub(crate) fn naming(&self, address: SocketAddr) -> Naming {
        if self.is_forked() { Naming::Foreign } else { self.usable.addresses.naming(address) }
    }

    pub(crate) fn check_process(&self) -> Result<(), SendError> {
        self.process.check()
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.check_process().is_err()
    }
}

struct FlushOnDrop(Weak<Inner>);

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        if let Some(engine) = Inner::engine_of(&self.0) {
            engine.flush();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_forked() {
            // The threads belong to the parent. Waiting for them here would never end, and they may have held
            // any lock at the fork, so everything that has a lock is leaked.
            mem::forget((self.engine.clone(), self.call_limit.clone(), self.room.clone()));
            mem::forget((self.readable.clone(), self.over.clone(), self.deadlines.clone()));
            let paths = self.paths.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget(paths.watch.take());
            mem::forget(self.qlog.take());
        } else {
            self.call_limit.close();
            self.deadlines.stop();
            // Not left to `Drop`: a caller that waits for one of its sends may hold the engine, too.
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
    use core::task::{Context, Waker};

    fn inner() -> Inner {
        let security = Security::pre_shared([7; 32]);
        let loopback = "127.0.0.1:0".parse().unwrap();
        let builder = crate::Endpoint::builder().bind(loopback).security(security);
        Arc::into_inner(builder.build().unwrap().inner).unwrap()
    }

    #[test]
    fn a_fork_of_the_process_can_neither_send_nor_receive_nor_hang() {
        let original = inner();
        let here = std::process::id();
        // What a fork would see.
        let fork = Inner {
            engine: original.engine.clone(),
            readable: original.readable.clone(),
            call_limit: original.call_limit.clone(),
            patience: original.patience,
            room: original.room.clone(),
            deadlines: original.deadlines.clone(),
            over: watch::channel(false).0,
            closing: AtomicBool::new(false),
            process: Process::other(here.wrapping_add(1)),
            driven: AtomicBool::new(false),
            usable: original.usable.clone(),
            paths: Mutex::new(Paths { whole: PathMap::default(), watch: None, changes: 0 }),
            qlog: None,
        };
        // The child wakes no task that waits in the parent at the fork.
        let over = fork.over.subscribe();
        let place = original.room.enter(Process::this());
        let mut room = pin!(place.pass());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(room.as_mut().poll(&mut context), Poll::Pending);
        let fork = Endpoint::from(crate::Endpoint { inner: Arc::new(fork) });
        let forked = SendError::Forked { built_in: here.wrapping_add(1), here };
        assert_eq!(fork.send(fork.local_addr(), "hello"), Err(forked));
        assert_eq!((fork.recv(), fork.try_recv()), (Err(Closed), Err(Closed)));
        assert!(!fork.shutdown(Duration::from_secs(60)));
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
        assert_eq!(inner.replace_watched_paths(PathMap::ecmp(2), 0), None);
        assert_eq!(inner.lock_paths().whole, PathMap::ecmp(4));
    }
}
