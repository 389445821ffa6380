//! The counters of an endpoint.

use crate::endpoint::Endpoint;
use crate::status::guard;
use cloudburst::Counters;
use core::ffi::c_char;
use std::ffi::CString;
use std::sync::LazyLock;

/// The names of all counters, in the order of their values.
static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
    let name =
        |(name, _)| CString::new::<String>(name).expect("the names of fields have no zero byte");
    Counters::default().fields().map(name).collect()
});

/// A counter of an endpoint.
#[repr(C)]
#[derive(Debug)]
pub struct Counter {
    /// The same name as in Rust, such as "sender.delivered" or "io.kernel_drops". Valid forever.
    pub name: *const c_char,
    /// Since the endpoint was opened. Only "sender.rate" is a present value, in bits per second.
    pub value: u64,
}

/// Writes the counters of an endpoint, of one moment, to the `len` elements at `counters`: as many as fit. Returns
/// the number of all counters, so that a call with a `len` of 0 says how many elements there should be. 0 if the
/// endpoint is NULL.
///
/// Their order and number are the same for all endpoints of a process, and may differ in another version.
///
/// # Safety
///
/// `counters` is NULL or points to `len` writable elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cbrst_counters(
    endpoint: Option<&Endpoint>,
    counters: *mut Counter,
    len: usize,
) -> usize {
    let mut all = 0;
    guard(|| {
        let Some(Endpoint { endpoint, .. }) = endpoint else { return Ok(()) };
        all = NAMES.len();
        let room = if counters.is_null() { 0 } else { len.min(all) };
        let values = endpoint.counters().fields().map(|(_, value)| value);
        for (at, (name, value)) in
            NAMES.iter().map(|name| name.as_ptr()).zip(values).take(room).enumerate()
        {
            // SAFETY: the caller vouches for `len` elements, and `at` is below. They need not be initialized.
            unsafe { counters.add(at).write(Counter { name, value }) };
        }
        Ok(())
    });
    all
}
