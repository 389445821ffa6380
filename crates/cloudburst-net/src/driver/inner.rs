//! The state that the clones of an endpoint share, and its shutdown.

use super::notifier::Notifier;
use crate::error::{BuildError, SendError};
use crate::io::{UdpIo, canonical};
use crate::path_map::{PathMap, PathMapError};
use crate::paths::{Paths, Resolver};
use crate::qlog::Qlog;
use bytes::Bytes;
use cloudburst_core::burst::{Engine, Flush, OnAnswer};
use cloudburst_core::config::Config;
use cloudburst_core::error::Outcome;
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::{self, Prepared, SendOptions};
use cloudburst_core::wire::Role;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
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
    /// The default deadline of messages, and the longest one of responses.
    pub(crate) default_deadline: Duration,
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
    /// Starts the engine.
    pub(crate) fn start(
        protocol: proto::Transceiver,
        io: UdpIo,
        config: &Config,
        resolver: Resolver,
        paths: PathMap,
        qlog: Option<Qlog>,
    ) -> Result<Self, BuildError> {
        let notifier = Arc::new(Notifier::default());
        let engine = Engine::start(protocol, io, notifier.clone().on_readable())
            .map_err(BuildError::refused("a thread"))?;
        Ok(Self {
            engine: Arc::new(engine),
            notifier,
            default_deadline: config.deadline,
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

    /// Begins to burst a message, or lets it wait in line. `on_end` is called when the send has ended; it must
    /// not block.
    pub(crate) fn start_send(
        self: &Arc<Self>,
        peer: SocketAddr,
        role: Role,
        bytes: Bytes,
        options: &SendOptions,
        on_end: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<MessageId, SendError> {
        let runtime = self.join_runtime();
        let flush = flush(runtime.as_ref());
        let on_end = Box::new(on_end);
        let (id, deferred) =
            self.engine.send(canonical(peer), role, bytes, options, flush, on_end)?;
        if let Some(runtime) = runtime.filter(|_| deferred) {
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
    ) -> Result<(), SendError> {
        let runtime = self.join_runtime();
        let flush = flush(runtime.as_ref());
        let deferred = self.engine.call(canonical(peer), call, options, flush, on_answer)?;
        if let Some(runtime) = runtime.filter(|_| deferred) {
            self.flush_in(&runtime);
        }
        Ok(())
    }

    /// Flushes after the tasks of the runtime that were woken together with this one have run, so that what
    /// they send shares trains: under load, 0.10 trains and 0.09 answers for each message of 5 KB, instead of
    /// one of each.
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
            // At once, and not when everything has ended: the successor gets all new peers.
            self.engine.io().close_shared();
            self.notifier.requests.notify_waiters();
        });
        self.closed.send_replace(true);
        self.notifier.messages.notify_waiters();
        self.notifier.requests.notify_waiters();
        self.paths.unwatch();
        drained
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

/// Under load, tasks flush when those that were woken together have run.
const fn flush(runtime: Option<&Handle>) -> Flush {
    if runtime.is_some() { Flush::ByCaller } else { Flush::ByDriver }
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
        // Not left to `Drop`: a caller that waits for one of its sends may hold the engine, too.
        self.engine.stop();
    }
}
