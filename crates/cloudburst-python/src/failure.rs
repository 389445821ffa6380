//! Converts errors to Python exceptions.

use cloudburst::{BuildError, Closed, SendError};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::io;

/// Why an operation failed. The package turns this into an exception.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A send or a call.
    Send(SendError),
    /// The endpoint is closed, and nothing more arrives.
    Closed,
    /// The system's resolver knows no address.
    Resolve(io::Error),
}

impl Failure {
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        let exception = match self {
            Self::Resolve(error) => no_address(py, &error, error.raw_os_error()),
            Self::Send(error @ SendError::NoAddress { .. }) => no_address(py, &error, None),
            Self::Closed => errors(py).and_then(|errors| errors.getattr("Closed")?.call0()),
            Self::Send(error) => {
                let traits = (
                    error.to_string(),
                    error.is_timeout(),
                    error.is_busy(),
                    error.is_closed(),
                    error.may_have_been_delivered(),
                );
                errors(py).and_then(|errors| errors.getattr("failure")?.call1(traits))
            }
        };
        exception.map_or_else(|error| error, PyErr::from_value)
    }
}

fn errors(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("cloudburst._errors")
}

fn no_address<'py>(
    py: Python<'py>,
    error: &dyn ToString,
    number: Option<i32>,
) -> PyResult<Bound<'py, PyAny>> {
    errors(py)?.getattr("no_address")?.call1((error.to_string(), number))
}

impl From<Closed> for Failure {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

/// `OSError` if the system refuses the endpoint, `ValueError` if an argument is to blame.
pub(crate) fn not_opened(error: &BuildError) -> PyErr {
    match error.os_error() {
        Some(source) => os_error(source, error),
        None => PyValueError::new_err(error.to_string()),
    }
}

/// Python chooses the subclass by the error number.
fn os_error(error: &io::Error, text: &dyn ToString) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text.to_string())),
        None => PyOSError::new_err(text.to_string()),
    }
}
