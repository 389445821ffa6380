//! The native part of the Python package `cloudburst`: everything that waits is an `Operation`, which calls
//! its caller's callable when it has ended.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | an endpoint, with a runtime of one thread that runs its operations |
//! | `request` | a request that has arrived |
//! | `operation` | operations under way, and how they notify Python |
//! | `inbox` | arrivals that an operation received, but its caller did not take |
//! | `process` | what only the process that made it may use |
//! | `arguments` | conversion and checks of what Python passes |
//! | `failure` | errors, as the exceptions of the package |
//!
//! Blocking calls, coroutines and threads that serve are written in Python, on top of this.

mod arguments;
mod endpoint;
mod failure;
mod inbox;
mod operation;
mod process;
mod request;

/// The module that the package imports as `cloudburst._native`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::endpoint::Endpoint;
    #[pymodule_export]
    use crate::operation::Operation;
    #[pymodule_export]
    use crate::request::Request;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    const DEFAULT_PRIORITY: u8 = cloudburst::SendOptions::DEFAULT_PRIORITY;
}
