//! Converts and checks the arguments that Python passes.

use cloudburst::{Bytes, Security, SendOptions};
use core::time::Duration;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use std::net::SocketAddr;

pub(crate) fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        PyValueError::new_err(format!(
            "{text:?} is not an address: expected an IP address and a port, such as '10.0.0.2:7000'; \
             `resolve` resolves names"
        ))
    })
}

/// A copy of the bytes of any object with the buffer protocol, whatever its elements are.
pub(crate) fn payload(data: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Bytes::copy_from_slice(bytes.as_bytes()));
    }
    // What is not contiguous becomes so, in C order.
    let bytes = PyMemoryView::from(data)?.call_method0("tobytes")?;
    Ok(Bytes::copy_from_slice(bytes.cast::<PyBytes>()?.as_bytes()))
}

/// The keys of an endpoint, or none on a trusted network.
pub(crate) fn security(key: Option<[u8; 32]>, also_accept: Vec<[u8; 32]>) -> Security {
    let security = key.map_or_else(Security::trusted_network, Security::pre_shared);
    also_accept.into_iter().fold(security, Security::also_accept)
}

pub(crate) fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("{name} is {seconds}: expected 0 or more seconds"))
    })
}

pub(crate) fn deadline(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    timeout.map(|timeout| seconds("timeout", timeout)).transpose()
}

/// The settings of a message.
pub(crate) fn options(timeout: Option<f64>, priority: u8) -> PyResult<SendOptions> {
    if priority > SendOptions::MAX_PRIORITY {
        return Err(PyValueError::new_err(format!("priority is {priority}: expected 0 to 7")));
    }
    let mut options = SendOptions::default().priority(priority);
    options.deadline = deadline(timeout)?;
    Ok(options)
}
