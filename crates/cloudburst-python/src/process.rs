//! Keeps objects to the process that made them.

use core::mem;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::process;

/// What only the process that made it may use.
// A fork copies the locks of the library, but not the threads that hold them or complete what others
// wait for: to use the copy there, or to drop it, could hang.
#[derive(Debug)]
pub(crate) struct Owned<T> {
    /// `None` only while this is dropped.
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: process::id() }
    }

    /// Fails in a fork of the process that made it.
    pub(crate) fn get(&self) -> PyResult<&T> {
        let here = process::id();
        self.value.as_ref().filter(|_| here == self.process).ok_or_else(|| {
            PyRuntimeError::new_err(format!(
                "the endpoint belongs to process {}, and this is its fork {here}: open endpoints after \
                 the fork",
                self.process
            ))
        })
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.get().is_err() {
            mem::forget(self.value.take());
        }
    }
}
