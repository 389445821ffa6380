//! Identifies transfers, and decides which thread gives a file its name.

use crate::protocol::{Reason, TransferId};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Identifies a transfer, by peer as well, so that no peer can act on the transfers of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) peer: SocketAddr,
    pub(super) transfer: TransferId,
}

/// A file that was stored under its name, or was not.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) key: Key,
    pub(super) result: Result<PathBuf, Reason>,
}

/// The right to decide whether a file gets its name. The first thread that claims it has it: the one that stores the
/// file, to give it the name, or the receiver's loop, to give the file up.
#[derive(Clone, Debug, Default)]
pub(super) struct CommitRight(Arc<AtomicBool>);

impl CommitRight {
    /// Claims the right. Returns whether no other thread claimed it before.
    pub(super) fn claim(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}
