//! How many calls may be in flight.

use crate::error::CallError;
use crate::process::Process;
use crate::wakers::contained;
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

    /// Waits until one more call may be in flight, in the process of the endpoint.
    pub(super) async fn room(&self, process: &Process) -> Result<OwnedSemaphorePermit, CallError> {
        // Usually, there is room.
        match self.try_room() {
            Err(CallError::Full { .. }) => {
                let room = contained(self.permits.clone().acquire_owned());
                let room = process.wait(room).await.map_err(CallError::Request)?;
                room.map_err(|_| CallError::Closed)
            }
            other => other,
        }
    }

    pub(super) fn try_room(&self) -> Result<OwnedSemaphorePermit, CallError> {
        self.permits.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => CallError::Closed,
            TryAcquireError::NoPermits => CallError::Full { calls: self.limit },
        })
    }

    /// Admits no more calls.
    pub(crate) fn close(&self) {
        self.permits.close();
    }
}
