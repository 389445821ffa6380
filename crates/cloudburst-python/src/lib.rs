//! The native part of the Python package `cloudburst`: everything that waits is an `Operation`, which calls a
//! callable of its caller when it has ended.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | an endpoint, with a runtime of one thread that runs its operations |
//! | `request` | a request that has arrived |
//! | `operation` | what is under way, and how it tells Python |
//! | `inbox` | arrivals that an operation took, and nobody took from the operation |
//! | `failure` | errors, as the exceptions of the package |
//!
//! What blocks, what is awaited, and what threads serve is written in Python, on top of this.

mod endpoint;
mod failure;
mod inbox;
mod operation;
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
}
