//! The resource usage of this process, both ends together.

use crate::transport::{Result, text};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};
use std::fs;
use std::time::Duration;

/// The file with the id of the tracepoint at the start of each system call.
const SYSTEM_CALL: &str = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";

/// The usage of all threads since the process started.
pub(crate) struct Usage {
    /// User and system time; the time of interrupts counts for the interrupted process.
    pub(crate) cpu: Duration,
    /// Page faults without I/O.
    pub(crate) faults: u64,
}

impl Usage {
    pub(crate) fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(text)?;
        let time = usage.user_time() + usage.system_time();
        Ok(Self {
            cpu: Duration::from_micros(time.num_microseconds() as u64),
            faults: usage.minor_page_faults() as u64,
        })
    }
}

/// Counts the system calls of the existing threads, and of those that they start.
///
/// While it exists, every system call of every process is slower.
pub(crate) struct SystemCalls(Vec<Counter>);

impl SystemCalls {
    pub(crate) fn count() -> Result<Self> {
        let id = fs::read_to_string(SYSTEM_CALL);
        let id = id.map_err(|error| format!("{SYSTEM_CALL}: {error}"))?;
        let mut builder = Builder::new(Tracepoint::with_id(id.trim_end().parse().map_err(text)?));
        // The tracepoint is in the kernel.
        builder.include_kernel().include_hv().inherit(true).enabled(true);
        let mut counters = Vec::new();
        for thread in fs::read_dir("/proc/self/task").map_err(text)? {
            let thread = thread.map_err(text)?.file_name();
            let thread = thread.to_string_lossy().parse().map_err(text)?;
            counters.push(builder.observe_pid(thread).build().map_err(text)?);
        }
        Ok(Self(counters))
    }

    pub(crate) fn total(mut self) -> Result<u64> {
        self.0.iter_mut().map(Counter::read).sum::<std::io::Result<u64>>().map_err(text)
    }
}
