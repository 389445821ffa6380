//! Signals that stop the program while a fabric is built or used, after the current step.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns a flag that becomes true at the first SIGINT, SIGTERM or SIGHUP, for
/// [`Fabric::up_unless`](crate::Fabric::up_unless) and later steps. Call it before other threads are
/// started: see [`cloudburst_program::interrupted`].
///
/// # Errors
///
/// If a system call fails, or a thread cannot be started.
pub fn interrupted() -> Result<Arc<AtomicBool>, Error> {
    cloudburst_program::interrupted().map_err(Error::io("cannot wait for signals"))
}
