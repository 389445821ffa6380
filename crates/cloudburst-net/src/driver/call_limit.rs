//! The limit on calls in flight.

use super::process::Process;
use super::wakers::contained;
use crate::error::SendError;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// One permit for each call that may be in flight.
#[derive(Clone, Debug)]
pub(crate) struct CallLimit {
    permits: Arc<Semaphore>,
    limit: usize,
}

/// A permit for one call, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    permit: Option<OwnedSemaphorePermit>,
    process: Process,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.process.check().is_err()
            && let Some(permit) = self.permit.take()
        {
            // Returning it takes a lock, which another thread may have held at the fork.
            permit.forget();
        }
    }
}

impl CallLimit {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(limit)), limit }
    }

    /// Waits until one more call may be in flight. Fails in a fork, and once the endpoint is closing.
    pub(crate) async fn acquire(&self, process: &Process) -> Result<Permit, SendError> {
        // Usually, a permit is free.
        match self.try_acquire(process) {
            Err(SendError::TooManyCalls { .. }) => {
                let permit = contained(self.permits.clone().acquire_owned());
                let permit = process.wait(permit).await?.map_err(|_| SendError::Closing)?;
                Ok(Permit { permit: Some(permit), process: process.clone() })
            }
            other => other,
        }
    }

    pub(crate) fn try_acquire(&self, process: &Process) -> Result<Permit, SendError> {
        match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Ok(Permit { permit: Some(permit), process: process.clone() }),
            Err(TryAcquireError::Closed) => Err(SendError::Closing),
            Err(TryAcquireError::NoPermits) => Err(SendError::TooManyCalls { calls: self.limit }),
        }
    }

    /// Admits no more calls, and ends the waits for permits.
    pub(crate) fn close(&self) {
        self.permits.close();
    }
}
