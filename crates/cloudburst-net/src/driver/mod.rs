//! Who runs: which thread or task receives packets, who waits for what, and who wakes whom.
//!
//! | file | role |
//! |---|---|
//! | `inner` | the state that all clones of an endpoint share: the engine of the core, and the shutdown |
//! | `block_on` | a blocked caller runs its future, and receives packets while it waits |
//! | `reactor` | a task of a tokio runtime receives packets |
//! | `notifier` | notifies callers that wait for a message or a request |
//!
//! The threads of the engine, which receive and send when nobody else does, are in `cloudburst_core::burst`.

mod block_on;
mod inner;
mod notifier;
mod reactor;

pub(crate) use block_on::{block_on, block_on_for};
pub(crate) use inner::Inner;
pub(crate) use notifier::Notifier;
