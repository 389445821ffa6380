//! What this process has used so far: all its threads, and so both ends together.

use crate::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::time::Duration;

/// A snapshot, from which an earlier one can be subtracted.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// User and system time. The time of interrupts counts for the interrupted process.
    pub cpu: Duration,
    /// Page faults without I/O.
    pub faults: u64,
    /// Voluntary and involuntary.
    pub context_switches: u64,
}

impl Usage {
    /// The usage since the process started.
    pub fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let time = usage.user_time() + usage.system_time();
        let switches = usage.voluntary_context_switches() + usage.involuntary_context_switches();
        Ok(Self {
            cpu: Duration::from_micros(time.num_microseconds().unsigned_abs()),
            faults: usage.minor_page_faults().unsigned_abs(),
            context_switches: switches.unsigned_abs(),
        })
    }

    /// The usage since an earlier snapshot.
    pub fn since(earlier: Self) -> Result<Self> {
        let now = Self::now()?;
        Ok(Self {
            cpu: now.cpu.saturating_sub(earlier.cpu),
            faults: now.faults - earlier.faults,
            context_switches: now.context_switches - earlier.context_switches,
        })
    }
}

/// Returns the maximum of resident memory so far, in KiB.
pub fn peak_memory() -> Result<u64> {
    Ok(getrusage(UsageWho::RUSAGE_SELF)?.max_rss().unsigned_abs())
}
