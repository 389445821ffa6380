//! Messages out and in without blocking, for a loop on one thread.

use bytes::Bytes;
use cloudburst_net::{Endpoint, Message, Operation, Receipt, Receive, SendError, SendOptions};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

/// An endpoint together with its sends in flight. [`woken`](Self::woken) receives a token when a message arrives or a
/// send ends.
pub(crate) struct Courier<T> {
    endpoint: Endpoint,
    waker: Arc<LoopWaker>,
    woken: Receiver<()>,
    inbox: Operation<Receive<Message>>,
    under_way: Vec<(T, cloudburst_net::Sending)>,
}

/// An event of the endpoint.
pub(crate) enum Event<T> {
    /// A message has arrived.
    Message(Message),
    /// The send with this tag has ended.
    Ended(T, Result<Receipt, SendError>),
}

impl<T> Courier<T> {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        // One token, however many wake: the loop polls everything.
        let (wake, woken) = bounded(1);
        let inbox = endpoint.recv();
        Self { endpoint, waker: Arc::new(LoopWaker(wake)), woken, inbox, under_way: Vec::new() }
    }

    /// The channel that wakes the loop: after a token, [`poll`](Self::poll) until it returns `None`.
    pub(crate) const fn woken(&self) -> &Receiver<()> {
        &self.woken
    }

    /// Returns what wakes the same loop from other threads.
    pub(crate) fn waker(&self) -> Arc<LoopWaker> {
        self.waker.clone()
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Begins to send.
    ///
    /// # Errors
    ///
    /// If the endpoint does not accept the message.
    pub(crate) fn send(
        &mut self,
        tag: T,
        peer: SocketAddr,
        bytes: Bytes,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let sending = self.endpoint.send(peer, bytes).options(options).begin()?;
        self.under_way.push((tag, sending));
        // A future wakes no one before its first poll: have the loop poll it.
        self.waker.wake_loop();
        Ok(())
    }

    /// Returns the next event. `None` if there is none: [`woken`](Self::woken) receives a token when there is.
    pub(crate) fn poll(&mut self) -> Option<Event<T>> {
        let waker = Waker::from(self.waker.clone());
        let mut context = Context::from_waker(&waker);
        if let Poll::Ready(Ok(message)) = Pin::new(&mut self.inbox).poll(&mut context) {
            self.inbox = self.endpoint.recv();
            return Some(Event::Message(message));
        }
        self.poll_sends()
    }

    /// As [`poll`](Self::poll), but for sends only: messages stay in the endpoint, whose peers wait for capacity.
    pub(crate) fn poll_sends(&mut self) -> Option<Event<T>> {
        let waker = Waker::from(self.waker.clone());
        let mut context = Context::from_waker(&waker);
        for at in 0..self.under_way.len() {
            if let Poll::Ready(result) = Pin::new(&mut self.under_way[at].1).poll(&mut context) {
                let (tag, _) = self.under_way.swap_remove(at);
                return Some(Event::Ended(tag, result));
            }
        }
        None
    }

    /// The tags of the sends in flight.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &T> {
        self.under_way.iter().map(|(tag, _)| tag)
    }

    /// Stops all sends at once.
    pub(crate) fn cancel_all(&mut self) {
        self.under_way.clear();
    }

    /// Waits until all sends have ended, for at most `within`, then closes the endpoint.
    pub(crate) fn close(mut self, within: Duration) {
        let deadline = Instant::now() + within;
        while !self.under_way.is_empty() && Instant::now() < deadline {
            if self.poll().is_none() {
                let _ = self.woken.recv_deadline(deadline);
            }
        }
        self.cancel_all();
        // Closing repeats STOPs that peers have missed.
        self.endpoint.blocking_shutdown(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Wakes the loop of a [`Courier`].
pub(crate) struct LoopWaker(Sender<()>);

impl LoopWaker {
    pub(crate) fn wake_loop(&self) {
        // A full channel wakes the loop, too.
        let _ = self.0.try_send(());
    }
}

impl Wake for LoopWaker {
    fn wake(self: Arc<Self>) {
        self.wake_loop();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_loop();
    }
}
