//! Calls: requests to peers, and their responses.

use crate::arguments::{self, clear, present};
use crate::endpoint::Endpoint;
use crate::message::Message;
use crate::status::{Failure, Status, guard};
use cloudburst::Bytes;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use std::net::SocketAddr;

/// Sends a request of `len` bytes to `peer`, an address or a name, waits for its response, and stores the response
/// in `*out`.
///
/// # Safety
///
/// `peer` points to a NUL-terminated string. `data` points to `len` bytes, or `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_call(
    endpoint: Option<&Endpoint>,
    peer: *const c_char,
    data: *const c_void,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<Message>>>>,
) -> Status {
    guard(|| {
        let out = clear(out)?;
        let Endpoint { endpoint, options } = present("endpoint", endpoint)?;
        // SAFETY: the caller vouches for the string, and for data and length.
        let (peer, bytes) =
            unsafe { (arguments::text("peer", peer)?, arguments::bytes(data, len)?) };
        let request = Bytes::copy_from_slice(bytes);
        let response = endpoint.call(peer, request).options(*options).wait()?;
        out.write(Some(Box::new(Message::new(peer, response))));
        Ok(())
    })
}

/// One of the calls of `cbrst_call_many`: a request, and its result.
#[repr(C)]
#[derive(Debug)]
pub struct Exchange {
    /// The address of the peer. Not a name: resolve it before.
    pub peer: *const c_char,
    /// The request.
    pub data: *const c_void,
    /// The number of bytes of the request.
    pub len: usize,
    /// Set by cbrst_call_many: what `cbrst_call` would have returned.
    pub status: MaybeUninit<Status>,
    /// Set by cbrst_call_many: the response if the status is CBRST_OK, which the caller frees; otherwise NULL.
    pub response: MaybeUninit<Option<Box<Message>>>,
}

/// Sends `len` requests at once, each to its peer, and waits until all calls have ended: by the deadline of the
/// handle. Returns CBRST_OK if all have a response. Otherwise returns the status of the first one that has none, which
/// `cbrst_last_error` describes; others may have responses.
///
/// Calls do not wait for capacity: one for which there is none ends as CBRST_BUSY.
///
/// # Safety
///
/// `calls` points to `len` structures, whose strings are NUL-terminated and whose `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_call_many(
    endpoint: Option<&Endpoint>,
    calls: *mut Exchange,
    len: usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the array, and uses it in no other thread meanwhile.
        let calls = unsafe { arguments::array_mut("calls", calls, "len", len) }?;
        // Whatever happens, a caller finds a status and nothing to free.
        for call in &mut *calls {
            call.status.write(Status::CbrstInvalidArgument);
            call.response.write(None);
        }
        let Endpoint { endpoint, options } = present("endpoint", endpoint)?;
        // SAFETY: the caller vouches for what the structures point to.
        let requests = calls.iter().map(|call| unsafe { request(call) });
        let requests = requests.collect::<Result<Vec<_>, _>>()?;
        let peers: Vec<SocketAddr> = requests.iter().map(|(peer, _)| *peer).collect();
        let results = endpoint.call_many(requests).options(*options).wait();
        let mut first = Ok(());
        for ((call, peer), result) in calls.iter_mut().zip(peers).zip(results) {
            match result {
                Ok(response) => {
                    call.status.write(Status::CbrstOk);
                    call.response.write(Some(Box::new(Message::new(peer, response))));
                }
                Err(error) => {
                    let failure = Failure::from(error);
                    call.status.write(failure.status);
                    first = first.and(Err(failure));
                }
            }
        }
        first
    })
}

/// # Safety
///
/// The string is NUL-terminated, and `data` points to `len` bytes.
unsafe fn request(call: &Exchange) -> Result<(SocketAddr, Bytes), Failure> {
    // SAFETY: the caller vouches for both.
    let (peer, bytes) =
        unsafe { (arguments::text("peer", call.peer)?, arguments::bytes(call.data, call.len)?) };
    Ok((arguments::address("peer", peer)?, Bytes::copy_from_slice(bytes)))
}
