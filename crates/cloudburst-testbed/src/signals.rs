//! Ctrl-C and its kin while a fabric is built or used: the step that runs is the last.

use crate::Error;
use nix::sys::signal::{SigSet, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io, thread};

/// What becomes true once somebody wants the program to stop, by SIGINT, SIGTERM or SIGHUP, for
/// [`Fabric::up_unless`](crate::Fabric::up_unless) and for whatever follows. To be called before
/// there are other threads: they inherit the signal mask, and so do programs that are started.
///
/// # Errors
///
/// When the kernel refuses, or a thread cannot be started.
pub fn interrupted() -> Result<Arc<AtomicBool>, Error> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // `nohup` and shells that start background jobs ignore some on our behalf.
        if !is_ignored(signal) {
            signals.add(signal);
        }
    }
    signals.thread_block().map_err(|error| Error::io("signals")(io::Error::from(error)))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    let waiting = thread::Builder::new().name("signals".into()).spawn(move || {
        while signals.wait().is_ok() {
            flag.store(true, Ordering::SeqCst);
        }
    });
    waiting.map_err(Error::io("cannot start a thread"))?;
    Ok(interrupted)
}

/// Whether whoever started this process had it ignore the signal: waiting for one that is blocked
/// would return it all the same.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) & (1 << (signal as i32 - 1)) != 0
}
