//! Converts and checks the arguments that Python passes.

use cloudburst::SendOptions;
use core::time::Duration;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::net::SocketAddr;

pub(crate) fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        PyValueError::new_err(format!(
            "{text:?} is not an address: expected an IP address and a port, such as '10.0.0.2:7000'; \
             `resolve` resolves names"
        ))
    })
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
