//! The CPUs that the threads of the two ends run on.

use crate::transport::{Result, text};
use cloudburst_testbed::Wire;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread, which in each system call is the process 0.
const SELF: Pid = Pid::from_raw(0);

pub(crate) struct Placement {
    client: CpuSet,
    server: CpuSet,
}

impl Placement {
    /// Places both ends on all CPUs that this thread may use.
    pub(crate) fn anywhere() -> Result<Self> {
        let all = sched_getaffinity(SELF).map_err(text)?;
        Ok(Self { client: all, server: all })
    }

    /// Places each end on one CPU, the first two of these; `None` if there is only one.
    pub(crate) fn apart(&self) -> Option<Self> {
        let mut singles = (0..CpuSet::count()).filter(|&cpu| self.client.is_set(cpu) == Ok(true));
        let mut next = || {
            let mut single = CpuSet::new();
            single.set(singles.next()?).ok()?;
            Some(single)
        };
        Some(Self { client: next()?, server: next()? })
    }

    /// Builds a wire whose right end runs on the server's CPUs, with all threads started there. Pins the
    /// calling thread, and so the left end, to the client's CPUs: threads inherit the affinity of their
    /// creator.
    pub(crate) fn wire(&self) -> Result<Wire> {
        sched_setaffinity(SELF, &self.client).map_err(text)?;
        let wire = Wire::up().map_err(text)?;
        let server = self.server;
        wire.right.run(move || sched_setaffinity(SELF, &server)).map_err(text)?;
        Ok(wire)
    }
}
