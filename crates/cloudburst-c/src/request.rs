//! Received requests, and their responses.

use crate::arguments::{self, present};
use crate::message::Message;
use crate::status::{Status, guard};
use cloudburst::{Bytes, SendOptions};
use core::ffi::c_void;
use std::time::Instant;

/// A request that has arrived. Answer it with `cbrst_reply`, refuse it with `cbrst_refuse`, or free it with
/// `cbrst_request_free`.
#[derive(Debug)]
pub struct Request {
    message: Message,
    request: cloudburst::Request,
    /// Those of the handle that received it.
    options: SendOptions,
}

impl Request {
    pub(crate) fn new(request: cloudburst::Request, options: SendOptions) -> Self {
        Self { message: Message::new(request.peer(), request.bytes().clone()), request, options }
    }
}

/// The bytes and the sender of a request. NULL for NULL. It belongs to the request: do not free it, and do
/// not use it once the request is answered or freed.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_request_message(request: Option<&Request>) -> Option<&Message> {
    request.map(|request| &request.message)
}

/// The number of milliseconds for which the caller still waits; 0 if the deadline has passed, the caller has
/// given up, or the endpoint is closed. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_request_time_left_ms(request: Option<&Request>) -> u64 {
    let left = |request: &Request| {
        let deadline = request.request.deadline();
        let left = deadline.saturating_duration_since(Instant::now()).as_millis();
        if request.request.is_cancelled() { 0 } else { u64::try_from(left).unwrap_or(u64::MAX) }
    };
    request.map_or(0, left)
}

/// Answers a request with `len` bytes, and waits until the caller's endpoint has the answer. An empty answer
/// tells the caller that the application has handled the request.
///
/// Frees the request, even on failure.
///
/// # Safety
///
/// `request` comes from `cbrst_recv_request`, and was neither answered nor freed. `data` points to `len` bytes,
/// or `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_reply(
    request: Option<Box<Request>>,
    data: *const c_void,
    len: usize,
) -> Status {
    guard(|| {
        let Request { request, options, .. } = *present("request", request)?;
        // SAFETY: the caller vouches for data and length.
        let bytes = unsafe { arguments::bytes(data, len) }?;
        request.reply(Bytes::copy_from_slice(bytes)).options(options).wait()?;
        Ok(())
    })
}

/// Tells the caller that the application is overloaded and has not acted on the request, and waits until the
/// caller's endpoint knows. The call returns CBRST_BUSY: it is safe to repeat it, here later or elsewhere.
///
/// Frees the request, even on failure.
///
/// # Safety
///
/// `request` comes from `cbrst_recv_request`, and was neither answered nor freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_refuse(request: Option<Box<Request>>) -> Status {
    guard(|| {
        let Request { request, options, .. } = *present("request", request)?;
        request.refuse().options(options).wait()?;
        Ok(())
    })
}

/// Frees a request without an answer. Its caller is told that there is none. Does nothing with NULL.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_request_free(request: Option<Box<Request>>) {
    guard(|| {
        drop(request);
        Ok(())
    });
}
