//! An endpoint, and the thread that runs its operations.

use crate::arguments::{address, deadline, options, payload, seconds, security};
use crate::failure::{Failure, not_opened};
use crate::inbox::Inbox;
use crate::operation::{Operation, Outcome, Value};
use crate::process::Owned;
use crate::request::Request;
use cloudburst::{
    Bytes, Closed, Config, ConfigError, Message, PathMap, PathMapError, Peer, SendError,
};
use core::time::Duration;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Handle, Runtime};

/// An endpoint. Methods that wait return an operation, which calls `wake` when it has ended.
#[pyclass(frozen, module = "cloudburst._native")]
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `None` once it is closed.
    open: Owned<Mutex<Option<Open>>>,
    local_address: SocketAddr,
}

#[derive(Debug)]
struct Open {
    endpoint: cloudburst::Endpoint,
    /// Runs operations in one thread. `None` only while this is dropped.
    runtime: Option<Runtime>,
    messages: Arc<Inbox<Message>>,
    requests: Arc<Inbox<cloudburst::Request>>,
}

impl Open {
    fn new(endpoint: cloudburst::Endpoint) -> PyResult<Self> {
        let runtime = Builder::new_multi_thread()
            // One thread is enough to wake Python, which runs one thread at a time.
            .worker_threads(1)
            .thread_name("cbrst-python")
            .enable_io()
            .build()?;
        let messages = Inbox::new();
        let requests = Inbox::new();
        Ok(Self { endpoint, runtime: Some(runtime), messages, requests })
    }
}

impl Drop for Open {
    /// Does not wait for the thread: it may be waiting for the interpreter, which the caller holds.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Endpoint {
    /// Begins an operation that runs `future` with the endpoint. If the endpoint is closed meanwhile, the
    /// operation fails with `closed`.
    fn begin<F: Future<Output = Outcome> + Send + 'static>(
        &self,
        py: Python<'_>,
        wake: Py<PyAny>,
        closed: impl Into<Failure>,
        future: impl FnOnce(&Open, cloudburst::Endpoint) -> F,
    ) -> PyResult<Operation> {
        let (runtime, future) = self.with(py, |open| {
            let runtime = open.runtime.as_ref().map(|runtime| runtime.handle().clone());
            runtime.map(|runtime| (runtime, future(open, open.endpoint.clone())))
        })?;
        Ok(Operation::begin(py, &runtime, wake, closed, future))
    }

    /// Fails if the endpoint is closed.
    fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&Open) -> Option<T>) -> PyResult<T> {
        // Unlocked before Python code runs: meanwhile another thread may wait for the lock while it holds the
        // interpreter.
        let done = {
            let open = self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner);
            open.as_ref().and_then(act)
        };
        done.ok_or_else(|| Failure::Closed.into_exception(py))
    }
}

#[pymethods]
impl Endpoint {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        bind: &str,
        key: Option<[u8; 32]>,
        paths: Option<&str>,
        capacity: Option<u64>,
        fabric: Option<&str>,
        mtu: Option<usize>,
        deadline: Option<f64>,
        keep_alive: Option<f64>,
        known_as: Vec<String>,
        also_accept: Vec<[u8; 32]>,
    ) -> PyResult<Self> {
        let security = security(key, also_accept);
        let mut builder = cloudburst::Endpoint::builder().bind(address(bind)?).security(security);
        if let Some(paths) = paths {
            let invalid = |error: PathMapError| PyValueError::new_err(error.to_string());
            builder = builder.paths(paths.parse::<PathMap>().map_err(invalid)?);
        }
        if let Some(keep_alive) = keep_alive {
            builder = builder.keep_alive(seconds("keep_alive", keep_alive)?);
        }
        let mut config = Config::default();
        if let Some(capacity) = capacity {
            config.capacity = capacity.into();
        }
        if let Some(mtu) = mtu {
            config.mtu = mtu;
        }
        if let Some(deadline) = deadline {
            config.deadline = seconds("deadline", deadline)?;
        }
        if let Some(fabric) = fabric {
            let invalid = |error: ConfigError| PyValueError::new_err(error.to_string());
            config.fabric = fabric.parse().map_err(invalid)?;
        }
        let known_as = known_as.iter().map(|known| address(known)).collect::<PyResult<Vec<_>>>()?;
        let builder = builder.known_as(known_as).config(config);
        let endpoint = py.detach(|| builder.build()).map_err(|error| not_opened(&error))?;
        let local_address = endpoint.local_addr();
        Ok(Self { open: Owned::new(Mutex::new(Some(Open::new(endpoint)?))), local_address })
    }

    /// The address that peers send to.
    fn local_address(&self) -> String {
        self.local_address.to_string()
    }

    /// Changes the keys while the endpoint is in use.
    fn set_security(
        &self,
        py: Python<'_>,
        key: [u8; 32],
        also_accept: Vec<[u8; 32]>,
    ) -> PyResult<()> {
        let endpoint = self.with(py, |open| Some(open.endpoint.clone()))?;
        py.detach(|| endpoint.set_security(security(Some(key), also_accept)));
        Ok(())
    }

    /// The counters by name.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let endpoint = self.with(py, |open| Some(open.endpoint.clone()))?;
        let counters = py.detach(|| endpoint.counters());
        let named = PyDict::new(py);
        for (name, value) in counters.fields() {
            named.set_item(name, value)?;
        }
        Ok(named)
    }

    /// Resolves a name with a port to an address.
    fn resolve(&self, py: Python<'_>, name: String, wake: Py<PyAny>) -> PyResult<Operation> {
        self.begin(py, wake, Closed, |_, endpoint| async move {
            let found = endpoint.resolve(name).await;
            found.map(Value::Address).map_err(Failure::Resolve)
        })
    }

    /// Opens a session.
    fn connect(
        &self,
        py: Python<'_>,
        peer: &str,
        timeout: Option<f64>,
        wake: Py<PyAny>,
    ) -> PyResult<Operation> {
        let peer = Peer::from(peer);
        let deadline = deadline(timeout)?;
        self.begin(py, wake, Closed, |_, endpoint| async move {
            let connect = endpoint.connect(peer);
            match deadline {
                Some(deadline) => connect.deadline(deadline).await?,
                None => connect.await?,
            }
            Ok(Value::Nothing)
        })
    }

    /// Sends a message.
    fn send(
        &self,
        py: Python<'_>,
        peer: &str,
        data: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        priority: u8,
        wake: Py<PyAny>,
    ) -> PyResult<Operation> {
        let peer = Peer::from(peer);
        let options = options(timeout, priority)?;
        let bytes = payload(data)?;
        self.begin(py, wake, SendError::Closed, |_, endpoint| async move {
            Ok(Value::Receipt(endpoint.send(peer, bytes).options(options).await?))
        })
    }

    /// Receives a message.
    fn recv(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Operation> {
        self.begin(py, wake, Closed, |open, endpoint| {
            let inbox = open.messages.clone();
            async move { Ok(Value::Message(inbox.next(endpoint.recv()).await?)) }
        })
    }

    /// Sends a request, and waits for its response.
    fn call(
        &self,
        py: Python<'_>,
        peer: &str,
        data: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        priority: u8,
        wake: Py<PyAny>,
    ) -> PyResult<Operation> {
        let peer = Peer::from(peer);
        let options = options(timeout, priority)?;
        let bytes = payload(data)?;
        self.begin(py, wake, SendError::Closed, |_, endpoint| async move {
            Ok(Value::Bytes(endpoint.call(peer, bytes).options(options).await?))
        })
    }

    /// Sends requests at once, and waits for their responses.
    fn call_many(
        &self,
        py: Python<'_>,
        requests: Vec<(String, Bound<'_, PyAny>)>,
        timeout: Option<f64>,
        priority: u8,
        wake: Py<PyAny>,
    ) -> PyResult<Operation> {
        let options = options(timeout, priority)?;
        let requests = requests.iter().map(|(peer, data)| Ok((address(peer)?, payload(data)?)));
        let requests = requests.collect::<PyResult<Vec<(SocketAddr, Bytes)>>>()?;
        self.begin(py, wake, SendError::Closed, |_, endpoint| async move {
            let results = endpoint.call_many(requests).options(options).await;
            Ok(Value::object(move |py| {
                let object = |result| match result {
                    Ok(bytes) => Value::Bytes(bytes).into_python(py),
                    Err(error) => Failure::from(error).into_exception(py).into_py_any(py),
                };
                let objects = results.into_iter().map(object).collect::<PyResult<Vec<_>>>()?;
                PyList::new(py, objects)?.into_py_any(py)
            }))
        })
    }

    /// Receives a request.
    fn recv_request(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Operation> {
        self.begin(py, wake, Closed, |open, endpoint| {
            let inbox = open.requests.clone();
            async move {
                let request = inbox.next(endpoint.recv_request()).await?;
                let runtime = Handle::current();
                Ok(Value::object(move |py| {
                    Request::new(request.into_inner(), runtime).into_py_any(py)
                }))
            }
        })
    }

    /// Shuts the endpoint down. Returns whether everything under way ended in time.
    fn shutdown(&self, py: Python<'_>, within: f64, wake: Py<PyAny>) -> PyResult<Operation> {
        let within = seconds("within", within)?;
        self.begin(py, wake, Closed, |open, endpoint| {
            let requests = open.requests.clone();
            async move {
                // No receiver takes them any more. Their callers may try again elsewhere.
                for request in requests.close() {
                    drop(tokio::spawn(request.refuse().into_future()));
                }
                Ok(Value::Flag(endpoint.shutdown(within).await))
            }
        })
    }

    /// Stops at once. Afterwards, no thread of the endpoint is left, unless one does not end within a second.
    /// Does nothing in a fork.
    fn close(&self, py: Python<'_>) {
        let Ok(open) = self.open.get() else { return };
        let open = open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut open) = open else { return };
        if let Some(runtime) = open.runtime.take() {
            // Its thread may be waiting for the interpreter.
            py.detach(|| runtime.shutdown_timeout(Duration::from_secs(1)));
        }
        py.detach(|| drop(open));
    }
}
