//! Operations under way.

use crate::failure::Failure;
use crate::inbox::Arrival;
use crate::process::Owned;
use cloudburst::{Bytes, Message, Receipt};
use core::mem;
use core::task::{Context, Poll, Waker};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

type IntoPython = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The result of an operation.
pub(crate) enum Value {
    Nothing,
    Flag(bool),
    Bytes(Bytes),
    Address(SocketAddr),
    Receipt(Receipt),
    Message(Arrival<Message>),
    /// An object of Python, which a thread that holds the interpreter makes.
    Object(IntoPython),
}

impl Value {
    pub(crate) fn object(
        make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self::Object(Box::new(make))
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Nothing => Ok(py.None()),
            Self::Flag(flag) => flag.into_py_any(py),
            Self::Bytes(bytes) => PyBytes::new(py, &bytes).into_py_any(py),
            Self::Address(address) => address.to_string().into_py_any(py),
            Self::Receipt(receipt) => {
                let waited = receipt.waited.as_secs_f64();
                let completed_in = receipt.completed_in.as_secs_f64();
                (receipt.bytes, receipt.source_symbols, receipt.packets, waited, completed_in)
                    .into_py_any(py)
            }
            Self::Message(message) => {
                let message = message.into_inner();
                (message.peer.to_string(), PyBytes::new(py, &message.bytes)).into_py_any(py)
            }
            Self::Object(make) => make(py),
        }
    }
}

pub(crate) type Outcome = Result<Value, Failure>;

enum Slot {
    /// With the callable to call when it has ended. It is dropped by threads that hold the interpreter: others
    /// would take a lock of PyO3, at which a process that forks meanwhile hangs.
    UnderWay(Py<PyAny>),
    Ended(Outcome),
    /// The outcome was taken, or is no longer awaited.
    Over,
}

/// An operation under way, such as a send. When it has ended by itself, it calls the callable that it was
/// begun with, in a thread of the library or, if it has ended at once, in the one that began it.
#[pyclass(frozen, module = "cloudburst._native")]
// One mechanism for both kinds of endpoints: asyncio has its loop woken, and blocking methods wait
// for a lock of Python, so that signals interrupt them.
pub(crate) struct Operation(Owned<Begun>);

struct Begun {
    slot: Arc<Mutex<Slot>>,
    /// `None` if it ended at once.
    abort: Option<AbortHandle>,
}

impl Operation {
    /// Polls `future` once on this thread and, if it is pending, spawns it on `runtime`. If the endpoint is closed
    /// meanwhile, the operation fails with `closed`.
    pub(crate) fn begin(
        py: Python<'_>,
        runtime: &Handle,
        wake: Py<PyAny>,
        closed: impl Into<Failure>,
        future: impl Future<Output = Outcome> + Send + 'static,
    ) -> Self {
        let slot = Arc::new(Mutex::new(Slot::UnderWay(wake)));
        let ending = Ending { slot: slot.clone(), closed: Some(closed.into()) };
        let mut future = Box::pin(future);
        // Polled here first, so that a timeout of zero returns what has arrived already.
        let first = py.detach(|| {
            let _runtime = runtime.enter();
            future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        let abort = match first {
            Poll::Ready(outcome) => {
                ending.end(outcome);
                None
            }
            Poll::Pending => {
                Some(runtime.spawn(async move { ending.end(future.await) }).abort_handle())
            }
        };
        Self(Owned::new(Begun { slot, abort }))
    }
}

#[pymethods]
impl Operation {
    /// Returns the result, or raises an exception. Call it once, after the callable was called.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let slot = {
            let mut slot = lock(&self.0.get()?.slot);
            match *slot {
                Slot::UnderWay(_) => {
                    return Err(PyRuntimeError::new_err("the operation has not ended yet"));
                }
                _ => mem::replace(&mut *slot, Slot::Over),
            }
        };
        match slot {
            Slot::Ended(Ok(value)) => value.into_python(py),
            Slot::Ended(Err(failure)) => Err(failure.into_exception(py)),
            _ => Err(PyRuntimeError::new_err("the result was taken, or the operation cancelled")),
        }
    }

    /// Stops the operation, unless its result was taken. An arrival that it has received goes to the next
    /// receiver. Does nothing in a fork.
    fn cancel(&self) {
        if let Ok(begun) = self.0.get() {
            begun.cancel();
        }
    }
}

impl Begun {
    fn cancel(&self) {
        if let Some(abort) = &self.abort {
            abort.abort();
        }
        let slot = mem::replace(&mut *lock(&self.slot), Slot::Over);
        drop(slot);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Ends an operation, even if the runtime drops its task: a thread may be waiting.
struct Ending {
    slot: Arc<Mutex<Slot>>,
    /// The failure of an operation whose task is dropped. `None` once it was used.
    closed: Option<Failure>,
}

impl Ending {
    fn end(&self, outcome: Outcome) {
        let mut slot = lock(&self.slot);
        let wake = match mem::replace(&mut *slot, Slot::Over) {
            Slot::UnderWay(wake) => wake,
            before => {
                *slot = before;
                // Dropped after unlocking the slot, as this may wake the next receiver.
                drop(slot);
                return drop(outcome);
            }
        };
        *slot = Slot::Ended(outcome);
        drop(slot);
        // This fails if there is no interpreter any more.
        let _ = Python::try_attach(move |py| {
            if let Err(error) = wake.call0(py) {
                error.write_unraisable(py, Some(wake.bind(py)));
            }
        });
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(closed) = self.closed.take() {
            self.end(Err(closed));
        }
    }
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
