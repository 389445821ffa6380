//! Signals that stop the program while a fabric is built or used: the current step is the last.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that becomes true at the first SIGINT, SIGTERM or SIGHUP, for
/// [`Fabric::up_unless`](crate::Fabric::up_unless) and for whatever follows. To be called before there are other
/// threads: see [`cloudburst_program::interrupted`].
///
/// # Errors
///
/// When the kernel refuses, or a thread cannot be started.
pub fn interrupted() -> Result<Arc<AtomicBool>, Error> {
    cloudburst_program::interrupted().map_err(Error::io("cannot wait for signals"))
}
