//! Messages out and in without blocking, for a loop on one thread.

use bytes::Bytes;
use cloudburst_net::{Closed, Endpoint, Message, Receipt, SendError, SendOptions};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

type Inbox = Pin<Box<dyn Future<Output = Result<Message, Closed>>>>;

/// An endpoint together with the sends under way. Whatever happens to either unparks the thread
/// that made the courier.
pub(crate) struct Courier<T> {
    endpoint: Endpoint,
    waker: Waker,
    inbox: Inbox,
    under_way: Vec<(T, cloudburst_net::Sending)>,
}

/// What happened.
pub(crate) enum News<T> {
    /// A message came.
    Message(Message),
    /// The send of this tag has ended.
    Ended(T, Result<Receipt, SendError>),
}

impl<T> Courier<T> {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let inbox = next_message(&endpoint);
        Self { endpoint, waker, inbox, under_way: Vec::new() }
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Begins to send.
    ///
    /// # Errors
    ///
    /// When the endpoint does not even take the message.
    pub(crate) fn send(
        &mut self,
        tag: T,
        peer: SocketAddr,
        bytes: Bytes,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let sending = self.endpoint.send(peer, bytes).options(options).begin()?;
        self.under_way.push((tag, sending));
        // It wakes nobody before it was polled: have the loop come round once more.
        self.waker.wake_by_ref();
        Ok(())
    }

    /// The next thing that happened; `None`: nothing more, and this thread will be unparked when
    /// there is.
    pub(crate) fn poll(&mut self) -> Option<News<T>> {
        let mut context = Context::from_waker(&self.waker);
        if let Poll::Ready(Ok(message)) = self.inbox.as_mut().poll(&mut context) {
            self.inbox = next_message(&self.endpoint);
            return Some(News::Message(message));
        }
        self.poll_sends()
    }

    /// The same for the sends alone: what came stays where it is, and its sender waits.
    pub(crate) fn poll_sends(&mut self) -> Option<News<T>> {
        let mut context = Context::from_waker(&self.waker);
        for at in 0..self.under_way.len() {
            if let Poll::Ready(result) = Pin::new(&mut self.under_way[at].1).poll(&mut context) {
                let (tag, _) = self.under_way.swap_remove(at);
                return Some(News::Ended(tag, result));
            }
        }
        None
    }

    /// The tags of the sends under way.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &T> {
        self.under_way.iter().map(|(tag, _)| tag)
    }

    /// Stops all sends at once.
    pub(crate) fn cancel_all(&mut self) {
        self.under_way.clear();
    }

    /// Waits until the sends under way have ended, or for `within`, then closes the endpoint.
    pub(crate) fn close(mut self, within: Duration) {
        let deadline = Instant::now() + within;
        while !self.under_way.is_empty() && Instant::now() < deadline {
            if self.poll().is_none() {
                wait_until(Some(deadline));
            }
        }
        self.cancel_all();
        // Peers that miss a STOP get it now.
        self.endpoint.blocking().shutdown(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Sleeps until the thread is unparked, or `at`.
pub(crate) fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => thread::park_timeout(at.saturating_duration_since(Instant::now())),
        None => thread::park(),
    }
}

fn next_message(endpoint: &Endpoint) -> Inbox {
    let endpoint = endpoint.clone();
    Box::pin(async move { endpoint.recv().await })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
