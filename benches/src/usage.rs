//! What this process has used so far: all its threads, and so both ends together.

use crate::Result;
use crate::ends::cpus;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::fs;
use std::time::{Duration, Instant};

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

/// What others use of this machine: a ratio that is published needs a quiet one.
#[derive(Debug)]
pub struct Others {
    begun: Instant,
    own: Usage,
    all: Duration,
}

impl Others {
    /// Starts to watch them.
    pub fn watch() -> Result<Self> {
        Ok(Self { begun: Instant::now(), own: Usage::now()?, all: busy()? })
    }

    /// Returns the share of all CPUs that other processes, and other virtual machines, have used since then.
    pub fn share(&self) -> Result<f64> {
        let others = (busy()? - self.all).saturating_sub(Usage::since(self.own)?.cpu);
        Ok(others.as_secs_f64() / self.begun.elapsed().as_secs_f64() / cpus().len() as f64)
    }
}

/// Returns the time since boot in which CPUs were not idle.
fn busy() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat")?;
    let all = stat.lines().next().ok_or("/proc/stat is empty")?;
    // user, nice, system, idle, iowait, irq, softirq, steal, in hundredths of a second
    let times = all.split_whitespace().skip(1).map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let busy = times.iter().take(8).sum::<u64>() - times[3] - times[4];
    Ok(Duration::from_millis(10 * busy))
}
