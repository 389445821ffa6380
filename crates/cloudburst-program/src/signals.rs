//! Handles SIGINT, SIGTERM and SIGHUP, so that they stop a program in an orderly way.

use nix::sys::signal::{SigSet, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io, thread};

/// Returns a flag that becomes true at the first SIGINT, SIGTERM or SIGHUP. These signals no longer end the process.
///
/// Must be called before other threads are started: see [`block_signals`].
///
/// # Errors
///
/// If the kernel refuses the signal mask, or the waiting thread cannot be started.
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

/// Blocks SIGINT, SIGTERM and SIGHUP, so that a thread can wait for them. Returns the blocked signals: those that were
/// ignored when the process started stay ignored.
///
/// Must be called before other threads are started: they inherit the signal mask, and so do child processes.
///
/// # Errors
///
/// If the kernel refuses the signal mask.
pub fn block_signals() -> io::Result<SigSet> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // `nohup`, and shells that start background jobs, ignore some.
        if !is_ignored(signal) {
            signals.add(signal);
        }
    }
    signals.thread_block()?;
    Ok(signals)
}

/// Whether the signal was ignored when the process started. This must be checked, since waiting for a blocked signal
/// returns even an ignored one.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) & (1 << (signal as i32 - 1)) != 0
}
