//! Arrivals whose receiver gave up just as they arrived: they go to the next receiver.
//!
//! In `asyncio.wait_for(endpoint.recv(), 1)`, for example, the receiver is cancelled in one thread while a message
//! arrives in another. The crate `pyo3-async-runtimes` has no way to give it back, so that it would be lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The arrivals that came back, and the receivers that wait for them.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    /// `None` once no receiver takes them any more.
    returned: Mutex<Option<VecDeque<T>>>,
    came_back: Notify,
}

/// An arrival that goes back to its inbox unless it is taken out.
#[derive(Debug)]
pub(crate) struct Arrival<T> {
    item: Option<T>,
    inbox: Arc<Inbox<T>>,
}

impl<T> Inbox<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { returned: Mutex::new(Some(VecDeque::new())), came_back: Notify::new() })
    }

    /// Takes an arrival that came back or, if there is none, the next one from `receive`.
    pub(crate) async fn next<E>(
        self: Arc<Self>,
        receive: impl Future<Output = Result<T, E>>,
    ) -> Result<Arrival<T>, E> {
        let item = tokio::select! {
            // Arrivals that came back go first, also if the endpoint is closed.
            biased;
            item = self.take() => item,
            item = receive => item?,
        };
        Ok(Arrival { item: Some(item), inbox: self })
    }

    async fn take(&self) -> T {
        loop {
            let came_back = self.came_back.notified();
            if let Some(item) = self.lock().as_mut().and_then(VecDeque::pop_front) {
                return item;
            }
            came_back.await;
        }
    }

    /// Takes the arrivals that receivers have returned. The inbox drops those that are returned later.
    pub(crate) fn close(&self) -> VecDeque<T> {
        self.lock().take().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<T>>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Arrival<T> {
    pub(crate) fn into_inner(mut self) -> T {
        self.item.take().expect("only this and dropping `self` take it")
    }
}

impl<T> Drop for Arrival<T> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            let mut returned = self.inbox.lock();
            let Some(items) = returned.as_mut() else {
                // Dropped after unlocking: a request tells its caller.
                drop(returned);
                return drop(item);
            };
            items.push_back(item);
            drop(returned);
            self.inbox.came_back.notify_one();
        }
    }
}
