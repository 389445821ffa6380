//! A request that has arrived.

use crate::arguments::{check_process, options};
use crate::operation::{Operation, Value};
use cloudburst::{Bytes, Closed, RequestParts, SendError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::runtime::Handle;

/// A request that has arrived. Its caller is told at once if it is dropped without a reply.
#[pyclass(frozen, module = "cloudburst._native")]
#[derive(Debug)]
pub(crate) struct Request {
    parts: RequestParts,
    /// `None` once it is answered.
    request: Mutex<Option<cloudburst::Request>>,
    runtime: Handle,
    /// The process that received it. A fork has the runtime, but not its thread.
    process: u32,
}

impl Request {
    pub(crate) fn new(request: cloudburst::Request, runtime: Handle) -> Self {
        let parts = request.parts();
        let process = process::id();
        Self { parts, request: Mutex::new(Some(request)), runtime, process }
    }

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
    fn peer(&self) -> String {
        self.parts.peer.to_string()
    }

    /// A copy of the bytes.
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.parts.bytes)
    }

    /// The seconds for which the caller still waits.
    fn time_left(&self) -> f64 {
        self.parts.deadline.saturating_duration_since(Instant::now()).as_secs_f64()
    }

    /// Whether the response is no longer awaited.
    fn is_cancelled(&self) -> bool {
        self.parts.is_cancelled()
    }

    /// Begins an operation that ends when the response is no longer awaited.
    fn cancelled(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Operation> {
        check_process(self.process)?;
        let parts = self.parts.clone();
        Ok(Operation::begin(py, &self.runtime, wake, Closed, async move {
            parts.cancelled().await;
            Ok(Value::Nothing)
        }))
    }

    /// Sends the response.
    fn reply(
        &self,
        py: Python<'_>,
        data: PyBackedBytes,
        timeout: Option<f64>,
        priority: u8,
        wake: Py<PyAny>,
    ) -> PyResult<Operation> {
        check_process(self.process)?;
        let options = options(timeout, priority)?;
        let reply = self.open()?.reply(Bytes::copy_from_slice(&data)).options(options);
        let reply = async move { Ok(Value::Receipt(reply.await?)) };
        Ok(Operation::begin(py, &self.runtime, wake, SendError::Closed, reply))
    }

    /// Tells the caller that the application is overloaded and has not acted on the request.
    fn refuse(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Operation> {
        check_process(self.process)?;
        let refusal = self.open()?.refuse();
        let refusal = async move { Ok(Value::Receipt(refusal.await?)) };
        Ok(Operation::begin(py, &self.runtime, wake, SendError::Closed, refusal))
    }

    /// Tells the caller that there is no answer, unless the request is answered already.
    fn close(&self) {
        drop(self.take());
    }
}
