//! Who runs: which thread or task receives packets, who waits for what, and who wakes whom.
//!
//! | file | role |
//! |---|---|
//! | `inner` | the state that all clones of an endpoint share: the engine of the core, and the shutdown |
//! | `block_on` | a blocked caller runs its future, and receives packets while it waits |
//! | `reactor` | a task of a tokio runtime receives packets |
//! | `waiters` | senders that wait until there is capacity for their messages |
//! | `deadlines` | a thread that wakes callers at their deadlines |
//! | `wakers` | contains the panics of callers' wakers |
//! | `process` | detects forks, in which none of the above threads exist |
//!
//! The threads of the engine, which receive and send when nobody else does, are in `cloudburst_core::burst`.

mod block_on;
mod deadlines;
mod inner;
mod process;
mod reactor;
mod waiters;
mod wakers;

pub(crate) use block_on::{block_on, block_on_for};
pub(crate) use inner::{Inner, Readable, tell};
pub(crate) use process::Process;
pub(crate) use waiters::Room;
pub(crate) use wakers::contained;
