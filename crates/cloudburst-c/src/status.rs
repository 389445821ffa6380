//! How functions report failures.

use cloudburst::SendError;
use core::ffi::{CStr, c_char};
use std::cell::RefCell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a function. The numbers are stable.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Fewer than the reasons of `SendError`: one for each thing that a caller can do next. The reason
// in detail is text.
pub enum Status {
    /// Success. A message that was sent is in the queue of the receiver's application; a call has been
    /// answered.
    CbrstOk = 0,
    /// An argument is NULL or invalid. Nothing was done.
    CbrstInvalidArgument = 1,
    /// The endpoint was not opened: the system refuses it, or an option is out of range.
    CbrstNotOpened = 2,
    /// The message was certainly not delivered and never will be: it is safe to send it again, here or
    /// elsewhere.
    CbrstNotDelivered = 3,
    /// The message was certainly not delivered, because too much is under way here; or the overloaded callee
    /// refused the request, and has not acted on it. Send less, or later.
    CbrstBusy = 4,
    /// The deadline passed, and the message was certainly not delivered; or nothing arrived in time.
    CbrstTimedOut = 5,
    /// The message may have been delivered, or not.
    CbrstIndeterminate = 6,
    /// The deadline passed. The message may have been delivered, or not.
    CbrstIndeterminateTimedOut = 7,
    /// The deadline passed, and the receiver was full when it last answered. The message may have been
    /// delivered, or not.
    CbrstIndeterminateBusy = 8,
    /// The endpoint was shut down, and nothing more arrives.
    CbrstClosed = 9,
    /// The library failed because of a bug. A message may have been delivered.
    CbrstBug = 10,
    /// No address is known for the name of a peer: the look-up failed, or there was no time. Nothing was sent.
    CbrstNoAddress = 11,
}

use Status::*;

/// Whether a deadline or a time limit has passed: more time may help.
#[unsafe(no_mangle)]
pub const extern "C" fn cbrst_is_timeout(status: i32) -> bool {
    status == CbrstTimedOut as i32
        || status == CbrstIndeterminateTimedOut as i32
        || status == CbrstIndeterminateBusy as i32
}

/// Whether one end was full: send less, or later.
#[unsafe(no_mangle)]
pub const extern "C" fn cbrst_is_busy(status: i32) -> bool {
    status == CbrstBusy as i32 || status == CbrstIndeterminateBusy as i32
}

/// Whether the receiver may have the message or the request: sending it again may deliver it twice. If
/// this is false for what a send or a call returned, and it is not CBRST_OK, the message was certainly not
/// delivered.
#[unsafe(no_mangle)]
pub const extern "C" fn cbrst_may_have_been_delivered(status: i32) -> bool {
    status == CbrstIndeterminate as i32
        || status == CbrstIndeterminateTimedOut as i32
        || status == CbrstIndeterminateBusy as i32
        || status == CbrstBug as i32
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// The error text of the last function that failed in this thread: who is to blame, what was expected and
/// what was found, and what to do. Never NULL. Valid until the next failure in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn cbrst_last_error() -> *const c_char {
    // A thread that is ending no longer has one.
    LAST_ERROR.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The version of the library, such as "0.1.0". Valid forever.
#[unsafe(no_mangle)]
pub const extern "C" fn cbrst_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zero byte"),
        };
    VERSION.as_ptr()
}

/// Why a function has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl ToString) -> Self {
        Self { status, text: text.to_string() }
    }

    pub(crate) fn invalid(text: impl ToString) -> Self {
        Self::new(CbrstInvalidArgument, text)
    }

    fn of(timeout: bool, busy: bool, delivered: bool, text: impl ToString) -> Self {
        let status = match (timeout, busy, delivered) {
            (_, true, true) => CbrstIndeterminateBusy,
            (true, false, true) => CbrstIndeterminateTimedOut,
            (false, false, true) => CbrstIndeterminate,
            (_, true, false) => CbrstBusy,
            (true, false, false) => CbrstTimedOut,
            (false, false, false) => CbrstNotDelivered,
        };
        Self::new(status, text)
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        if matches!(error, SendError::NoAddress { .. }) {
            return Self::new(CbrstNoAddress, error);
        }
        let delivered = error.may_have_been_delivered();
        Self::of(error.is_timeout(), error.is_busy(), delivered, error)
    }
}

/// Runs the body of an exported function. Panics end here: they must not unwind into C.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return CbrstOk,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(CbrstBug, "the library panicked: a bug, see standard error"),
    };
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    let _ = LAST_ERROR.try_with(|last| last.replace(text));
    failure.status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error() -> String {
        // SAFETY: it points to a string that ends, and nothing fails before it is copied.
        unsafe { CStr::from_ptr(cbrst_last_error()) }.to_str().unwrap().into()
    }

    #[test]
    fn a_panic_is_a_status() {
        assert_eq!(guard(|| panic!("on purpose")), CbrstBug);
        assert!(last_error().contains("panicked"));
        assert!(cbrst_may_have_been_delivered(CbrstBug as i32));
    }

    #[test]
    fn the_last_error_is_that_of_this_thread_and_survives_a_success() {
        assert_eq!(last_error(), "");
        assert_eq!(guard(|| Err(Failure::invalid("zero \0 inside"))), CbrstInvalidArgument);
        assert_eq!(guard(|| Ok(())), CbrstOk);
        assert_eq!(last_error(), "zero   inside");
        assert_eq!(std::thread::spawn(last_error).join().unwrap(), "");
    }

    #[test]
    fn the_predicates_of_a_status_are_those_of_its_error() {
        for bits in 0..8 {
            let [timeout, busy, delivered] = [1, 2, 4].map(|bit| bits & bit != 0);
            let status = Failure::of(timeout, busy, delivered, "").status as i32;
            assert_eq!(cbrst_is_busy(status), busy, "{bits}");
            assert_eq!(cbrst_may_have_been_delivered(status), delivered, "{bits}");
            // A busy receiver that may have the message was busy until the deadline passed.
            let timeout = if busy { delivered } else { timeout };
            assert_eq!(cbrst_is_timeout(status), timeout, "{bits}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_package() {
        // SAFETY: it points to a string that ends and stays.
        let version = unsafe { CStr::from_ptr(cbrst_version()) };
        assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }
}
