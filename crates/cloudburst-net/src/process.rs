//! Which process an endpoint belongs to.

use crate::error::SendError;
use std::process;

/// The process that built an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Self {
        Self(process::id())
    }

    /// The value that another process would have.
    #[cfg(test)]
    pub(crate) const fn other(number: u32) -> Self {
        Self(number)
    }

    /// Checks that this is the process that built the endpoint.
    ///
    /// # Errors
    ///
    /// [`SendError::Forked`] in a fork of it.
    pub(crate) fn check(self) -> Result<(), SendError> {
        match process::id() {
            here if here == self.0 => Ok(()),
            here => Err(SendError::Forked { built_in: self.0, here }),
        }
    }
}
