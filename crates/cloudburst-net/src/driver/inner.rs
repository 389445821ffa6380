//! The state that the clones of an endpoint share, and its shutdown.

use super::call_limit::CallLimit;
use super::exact_timers::with_exact_timers;
use super::notifier::Notifier;
use super::timer::Timer;
use super::waiters::Waiters;
use crate::error::{BuildError, SendError};
use crate::io::{UdpIo, canonical};
use crate::path_map::{PathMap, PathMapError};
use crate::paths::{Paths, Resolver};
use crate::qlog::Qlog;
use crate::settings::left;
use bytes::Bytes;
use cloudburst_core::burst::{Engine, OnAnswer, OnEnd};
use cloudburst_core::config::Config;
use cloudburst_core::error::{Outcome, StartError};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::{self, Prepared, SendOptions};
use cloudburst_core::wire::Role;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::{io, time};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;
use tokio::task::yield_now;

/// The state that all clones share. Sends under way refer to it weakly, and the threads of the engine not at
/// all, so it ends with the last clone.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Reference-counted, so that callers that wait for sends can hold it.
    pub(crate) engine: Arc<Engine<UdpIo>>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) call_limit: CallLimit,
    /// The default deadline of messages, and the longest one of responses.
    pub(crate) default_deadline: Duration,
    /// Senders that wait for capacity.
    pub(crate) waiters: Arc<Waiters>,
    timer: Timer,
    /// Whether the endpoint is closed, for tasks that must not keep this alive; dropped with it.
    pub(crate) closed: watch::Sender<bool>,
    /// Whether a shutdown has begun, so that it takes no more requests.
    closing: AtomicBool,
    /// Whether a task of a tokio runtime receives the packets.
    pub(crate) has_reactor: AtomicBool,
    pub(crate) paths: Arc<Paths>,
    /// Ends with this.
    _qlog: Option<Qlog>,
}

impl Inner {
    /// Starts the threads of the engine.
    pub(crate) fn start(
        protocol: proto::Transceiver,
        io: UdpIo,
        config: &Config,
        resolver: Resolver,
        paths: PathMap,
        qlog: Option<Qlog>,
    ) -> Result<Self, BuildError> {
        let notifier = Arc::new(Notifier::default());
        let waiters = Arc::new(Waiters::default());
        let on_event = notifier.clone().on_event(waiters.clone());
        let engine = with_exact_timers(|| Engine::start(protocol, io, on_event))
            .map_err(BuildError::refused("a thread"))?;
        Ok(Self {
            engine: Arc::new(engine),
            notifier,
            call_limit: CallLimit::new(config.limits().send_messages),
            default_deadline: config.deadline,
            waiters,
            timer: Timer::default(),
            closed: watch::channel(false).0,
            closing: AtomicBool::new(false),
            has_reactor: AtomicBool::new(false),
            paths: Arc::new(Paths::new(resolver, paths)),
            _qlog: qlog,
        })
    }

    /// Watches the file of the path map that the endpoint was built with, if it has one.
    pub(crate) fn watch_paths(&self, map: &PathMap) -> io::Result<()> {
        self.paths.watch(map, &self.engine)
    }

    pub(crate) fn set_paths(&self, map: PathMap) -> Result<(), PathMapError> {
        self.paths.set(map, &self.engine)
    }

    /// The engine of an endpoint that may be gone. This does not keep the endpoint alive.
    pub(crate) fn engine_of(endpoint: &Weak<Self>) -> Option<Arc<Engine<UdpIo>>> {
        Some(endpoint.upgrade()?.engine.clone())
    }

    /// Begins to burst a message. `on_end` is called when the send has ended; it must not block.
    pub(crate) fn start_send(
        self: &Arc<Self>,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<MessageId, SendError> {
        let options = options.wait(false);
        self.send(canonical(peer), role, bytes, &options, Box::new(on_end)).map_err(SendError::from)
    }

    /// Tries to begin a send until the endpoint has capacity for it or its deadline passes. `begin` gets
    /// `options` with what is left of the deadline.
    pub(crate) async fn retry_while_full<T>(
        &self,
        options: SendOptions,
        mut begin: impl FnMut(&SendOptions) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        let is_full = |begun: &Result<T, SendError>| matches!(begun, Err(SendError::Full { .. }));
        let mut begun = begin(&options);
        if is_full(&begun) {
            let until = self.deadline_of(&options);
            // Joined before the retry, so that it learns of capacity that becomes free right after.
            let waiter = self.waiters.join();
            begun = begin(&options);
            while is_full(&begun) {
                self.until_deadline(until, waiter.wait()).await?;
                begun = begin(&left(options, until));
            }
        }
        begun
    }

    /// See [`Engine::send`].
    fn send(
        self: &Arc<Self>,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: OnEnd,
    ) -> Result<MessageId, StartError> {
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
    ) -> Result<(), StartError> {
        let options = &options.wait(false);
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

    pub(crate) fn shutdown(&self, within: Duration) -> bool {
        let drained = self.engine.shutdown(within, || {
            self.closing.store(true, SeqCst);
            self.notifier.requests.notify_waiters();
            // Nothing of what waits for capacity was sent. Replies are still accepted: they wait again.
            self.waiters.wake_all();
            self.call_limit.close();
        });
        self.closed.send_replace(true);
        self.notifier.messages.notify_waiters();
        self.notifier.requests.notify_waiters();
        self.waiters.wake_all();
        self.paths.unwatch();
        self.timer.stop();
        drained
    }

    /// When an operation with `options` that begins now must have ended; `None` if that is beyond the range
    /// of the clock.
    pub(crate) fn deadline_of(&self, options: &SendOptions) -> Option<time::Instant> {
        time::Instant::now().checked_add(options.deadline.unwrap_or(self.default_deadline))
    }

    /// Waits for `future`, at most until the deadline.
    ///
    /// # Errors
    ///
    /// [`SendError::NotStarted`] if the deadline passes first.
    pub(crate) async fn until_deadline<F: Future>(
        &self,
        until: Option<time::Instant>,
        future: F,
    ) -> Result<F::Output, SendError> {
        let Some(until) = until else { return Ok(future.await) };
        let mut future = pin!(future);
        let mut late = pin!(self.timer.sleep_until(until));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => late.as_mut().poll(context).map(|()| Err(SendError::NotStarted)),
        })
        .await
    }

    /// Whether the endpoint is closed, so that nothing more arrives.
    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Whether the endpoint takes no more requests.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closed() || self.closing.load(SeqCst)
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
        self.call_limit.close();
        self.timer.stop();
        // Not left to `Drop`: a caller that waits for one of its sends may hold the engine, too.
        self.engine.stop();
    }
}
