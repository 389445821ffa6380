//! Checks the arguments that C programs pass.

use crate::status::Failure;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::slice;
use std::net::SocketAddr;

/// A variable of the caller, for a pointer that the caller must free. Its old value is never read.
type Out<'a, T> = &'a mut MaybeUninit<Option<Box<T>>>;

/// Stores NULL, so that a caller that ignores the status has nothing to free.
pub(crate) fn clear<T>(out: Option<Out<'_, T>>) -> Result<Out<'_, T>, Failure> {
    let out = present("out", out)?;
    out.write(None);
    Ok(out)
}

pub(crate) fn present<T>(name: &str, argument: Option<T>) -> Result<T, Failure> {
    argument.ok_or_else(|| Failure::invalid(format!("`{name}` is NULL")))
}

/// A string, or `None` for NULL.
///
/// # Safety
///
/// A non-NULL pointer points to a NUL-terminated string that stays unchanged for `'a`.
pub(crate) unsafe fn optional_text<'a>(
    name: &str,
    text: *const c_char,
) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not NULL, and the caller vouches for the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::invalid(format!("`{name}` is not UTF-8")))
}

/// A string.
///
/// # Safety
///
/// See [`optional_text`].
pub(crate) unsafe fn text<'a>(name: &str, text: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller vouches for the pointer.
    present(name, unsafe { optional_text(name, text) }?)
}

/// The bytes at `data`, which may be NULL if there are none.
///
/// # Safety
///
/// If `len` is not 0, `data` is NULL or points to `len` bytes, which stay unchanged for `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::invalid(format!("`data` is NULL, but `len` is {len}")));
    }
    if isize::try_from(len).is_err() {
        return Err(Failure::invalid(format!("`len` is {len}, more than fits into memory")));
    }
    // SAFETY: neither NULL nor too long, and the caller vouches for the rest.
    Ok(unsafe { slice::from_raw_parts(data.cast(), len) })
}

pub(crate) fn address(name: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::invalid(format!(
            "`{name}` is \"{text}\": expected an IP address and a port, such as 10.0.0.2:7000; \
             `cbrst_resolve` resolves names"
        ))
    })
}
