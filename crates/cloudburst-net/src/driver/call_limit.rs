//! The limit on calls in flight.

use crate::error::SendError;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// One permit for each call that may be in flight.
#[derive(Clone, Debug)]
pub(crate) struct CallLimit {
    permits: Arc<Semaphore>,
    limit: usize,
}

impl CallLimit {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(limit)), limit }
    }

    /// Waits until one more call may be in flight. Fails once the endpoint is closing.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, SendError> {
        self.permits.clone().acquire_owned().await.map_err(|_| SendError::Closing)
    }

    pub(crate) fn try_acquire(&self) -> Result<OwnedSemaphorePermit, SendError> {
        self.permits.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => SendError::Closing,
            TryAcquireError::NoPermits => SendError::TooManyCalls { calls: self.limit },
        })
    }

    /// Admits no more calls, and ends the waits for permits.
    pub(crate) fn close(&self) {
        self.permits.close();
    }
}
