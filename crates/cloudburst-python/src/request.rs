//! A request that has arrived.

use crate::arguments::{options, payload};
use crate::operation::{Operation, Value};
use crate::process::Owned;
use cloudburst::{Closed, RequestParts, SendError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::runtime::Handle;

/// A request that has arrived. Its caller is told at once if it is dropped without a reply.
#[pyclass(frozen, module = "cloudburst._native")]
#[derive(Debug)]
pub(crate) struct Request(Owned<Arrived>);

#[derive(Debug)]
struct Arrived {
    parts: RequestParts,
    /// `None` once it is answered.
    request: Mutex<Option<cloudburst::Request>>,
    runtime: Handle,
}

impl Request {
    pub(crate) fn new(request: cloudburst::Request, runtime: Handle) -> Self {
        let parts = request.parts();
        Self(Owned::new(Arrived { parts, request: Mutex::new(Some(request)), runtime }))
    }
}

impl Arrived {
    fn take(&self) -> Option<cloudburst::Request> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the request to answer it.
    fn open(&self) -> PyResult<cloudburst::Request> {
        self.take().ok_or_else(|| PyRuntimeError::new_err("it was answered already"))
    }
}

#[pymethods]
impl Request {
    /// The caller's address.
    fn peer(&self) -> PyResult<String> {
        Ok(self.0.get()?.parts.peer.to_string())
    }

    /// A copy of the bytes.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.get()?.parts.bytes))
    }

    /// The seconds for which the caller still waits.
    fn time_left(&self) -> PyResult<f64> {
        let deadline = self.0.get()?.parts.deadline;
        Ok(deadline.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Whether the response is no longer awaited.
    fn is_cancelled(&self) -> PyResult<bool> {
        Ok(self.0.get()?.parts.is_cancelled())
    }

    /// Begins an operation that ends when the response is no longer awaited.
    fn cancelled(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Operation> {
        let Arrived { parts, runtime, .. } = self.0.get()?;
        let parts = parts.clone();
        Ok(Operation::begin(py, runtime, wake, Closed, async move {
            parts.cancelled().await;
            Ok(Value::Nothing)
        }))
    }

    /// Sends the response.
    fn reply(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        priority: u8,
        wake: Py<PyAny>,
    ) -> PyResult<Operation> {
        let arrived = self.0.get()?;
        let options = options(timeout, priority)?;
        let bytes = payload(data)?;
        let reply = arrived.open()?.reply(bytes).options(options);
        let reply = async move { Ok(Value::Receipt(reply.await?)) };
        Ok(Operation::begin(py, &arrived.runtime, wake, SendError::Closed, reply))
    }

    /// Tells the caller that the application is overloaded and has not acted on the request.
    fn refuse(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Operation> {
        let arrived = self.0.get()?;
        let refusal = arrived.open()?.refuse();
        let refusal = async move { Ok(Value::Receipt(refusal.await?)) };
        Ok(Operation::begin(py, &arrived.runtime, wake, SendError::Closed, refusal))
    }

    /// Tells the caller that there is no answer, unless the request is answered already. Does nothing in a fork.
    fn close(&self) {
        if let Ok(arrived) = self.0.get() {
            drop(arrived.take());
        }
    }
}
