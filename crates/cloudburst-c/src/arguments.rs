//! Checks the arguments that C programs pass.

use crate::status::Failure;
use cloudburst::Peer;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::{ptr, slice};
use std::net::SocketAddr;

/// A variable of the caller, for a pointer that the caller must free. Its old value is never read.
type Out<'a, T> = &'a mut MaybeUninit<Option<Box<T>>>;

/// No structure will be longer than this.
const MAX_STRUCTURE: usize = 4_096;

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
    // SAFETY: bytes need no alignment, and the caller vouches for the rest.
    unsafe { array("data", data.cast(), "len", len) }
}

/// The `len` elements at `elements`, which may be NULL if there are none.
///
/// # Safety
///
/// If `len` is not 0, `elements` is NULL or points to `len` elements, which stay unchanged for `'a`.
pub(crate) unsafe fn array<'a, T>(
    name: &str,
    elements: *const T,
    len_name: &str,
    len: usize,
) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if elements.is_null() {
        return Err(Failure::invalid(format!("`{name}` is NULL, but `{len_name}` is {len}")));
    }
    if len.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        let text = format!("`{len_name}` is {len}, more than fits into memory");
        return Err(Failure::invalid(text));
    }
    // SAFETY: neither NULL nor too long, and the caller vouches for the rest.
    Ok(unsafe { slice::from_raw_parts(elements, len) })
}

/// The `len` elements at `elements`, to write to.
///
/// # Safety
///
/// See [`array`]; nobody else uses them for `'a`.
pub(crate) unsafe fn array_mut<'a, T>(
    name: &str,
    elements: *mut T,
    len_name: &str,
    len: usize,
) -> Result<&'a mut [T], Failure> {
    // SAFETY: the caller vouches for it.
    if unsafe { array(name, elements, len_name, len) }?.is_empty() {
        return Ok(&mut []);
    }
    // SAFETY: as for `array`, which has checked the pointer and the length, and nobody else uses them.
    Ok(unsafe { slice::from_raw_parts_mut(elements, len) })
}

pub(crate) fn address(name: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::invalid(format!(
            "`{name}` is \"{text}\": expected an IP address and a port, such as 10.0.0.2:7000; \
             `cbrst_resolve` resolves names"
        ))
    })
}

/// A peer: whatever is not an address is a name to look up.
///
/// # Safety
///
/// See [`optional_text`].
pub(crate) unsafe fn peer(name: &str, text: *const c_char) -> Result<Peer, Failure> {
    // SAFETY: the caller vouches for the string.
    unsafe { self::text(name, text) }.map(Peer::from)
}

/// The structure at `structure`, of which the caller knows the first bytes, as many as its first member `size` says.
/// What it does not know is zero.
///
/// # Safety
///
/// `structure` is NULL or points to as many bytes as the `size_t` that they begin with says. `T` is `repr(C)`, and
/// may be zero.
pub(crate) unsafe fn sized<T>(name: &str, structure: *const T) -> Result<T, Failure> {
    if structure.is_null() {
        return Err(Failure::invalid(format!("`{name}` is NULL")));
    }
    // SAFETY: it begins with its size.
    let size = unsafe { structure.cast::<usize>().read() };
    // A member that was never set may be anything.
    if !(size_of::<usize>()..=MAX_STRUCTURE).contains(&size) {
        return Err(Failure::invalid(format!("`{name}->size` is {size}: use its initializer")));
    }
    let known = size.min(size_of::<T>());
    // SAFETY: the caller vouches for `size` bytes, of which these are the last.
    let unknown = unsafe { slice::from_raw_parts(structure.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Failure::invalid(format!(
            "`{name}` sets members that version {} of the library does not have",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: both have at least as many bytes and do not overlap, and a `T` may have zero for the others.
    unsafe {
        ptr::copy_nonoverlapping(structure.cast::<u8>(), copy.as_mut_ptr().cast(), known);
        Ok(copy.assume_init())
    }
}
