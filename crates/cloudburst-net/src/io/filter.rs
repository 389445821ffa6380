//! System calls that a filter (seccomp) of the process may refuse.

use crate::error::BuildError;
use nix::errno::Errno;
use nix::poll::{PollTimeout, poll};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, recvmsg, sendmsg};
use std::io::IoSliceMut;

/// No descriptor: a call that the filter lets through fails by that alone, without an effect.
const NONE: i32 = -1;

/// Whether a filter refuses a call, or the system does not have it.
pub(super) const fn is_refusal(error: Errno) -> bool {
    matches!(error, Errno::ENOSYS | Errno::EPERM | Errno::EACCES)
}

/// Fails, naming the call, if it was refused. Other errors are not the filter's.
pub(super) fn pass<T>(result: Result<T, Errno>, call: &'static str) -> Result<(), BuildError> {
    match result {
        Err(error) if is_refusal(error) => Err(BuildError::refused(call)(error)),
        _ => Ok(()),
    }
}

/// Checks what every endpoint calls later, so that it is not built where it would be deaf or mute.
pub(super) fn check() -> Result<(), BuildError> {
    let sent = sendmsg::<SockaddrStorage>(NONE, &[], &[], MsgFlags::MSG_DONTWAIT, None);
    pass(sent, "sendmsg")?;
    pass(poll(&mut [], PollTimeout::ZERO), "poll")
}

/// The refusal of `recvmmsg`, if `recvmsg` must take its place.
pub(super) fn refuses_batches() -> Result<Option<Errno>, BuildError> {
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(1, None);
    let mut slices: [[IoSliceMut<'_>; 1]; 1] = [[IoSliceMut::new(&mut [])]];
    let batch = recvmmsg(NONE, &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None);
    let Some(refusal) = batch.map(drop).err().filter(|&error| is_refusal(error)) else {
        return Ok(None);
    };
    let single = recvmsg::<SockaddrStorage>(NONE, &mut [], None, MsgFlags::MSG_DONTWAIT);
    pass(single, "both recvmmsg and recvmsg")?;
    Ok(Some(refusal))
}
