//! SIGINT, SIGTERM and SIGHUP, which stop a program in order.

use nix::sys::signal::{SigSet, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io, thread};

/// A flag that becomes true at the first SIGINT, SIGTERM or SIGHUP, which then do not end the process.
///
/// Must be called before other threads are started: see [`block_signals`].
///
/// # Errors
///
/// When the kernel refuses the signal mask, or the thread that waits cannot be started.
pub fn interrupted() -> io::Result<Arc<AtomicBool>> {
    let signals = block_signals()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        while signals.wait().is_ok() {
            flag.store(true, Ordering::SeqCst);
        }
    })?;
    Ok(interrupted)
}

/// Blocks SIGINT, SIGTERM and SIGHUP, for a thread to wait for. Returns those that are blocked: signals that the
/// process was started to ignore stay ignored.
///
/// Must be called before other threads are started: they inherit the signal mask, and so do child processes.
///
/// # Errors
///
/// When the kernel refuses the signal mask.
pub fn block_signals() -> io::Result<SigSet> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // `nohup`, and shells that start background jobs, have some ignored.
        if !is_ignored(signal) {
            signals.add(signal);
        }
    }
    signals.thread_block()?;
    Ok(signals)
}

/// Whether the process was started with the signal ignored: waiting for a blocked signal would return it all the
/// same.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) & (1 << (signal as i32 - 1)) != 0
}
