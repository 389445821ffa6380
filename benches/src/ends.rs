//! Two hosts, and the CPUs on which the threads of each run.

use crate::Result;
use cloudburst_testbed::{End as Namespace, Wire};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::LazyLock;
use std::thread;

/// The calling thread, which in each system call is the process 0.
const SELF: Pid = Pid::from_raw(0);

/// The two ends of a transport. Each has a CPU of its own, if there are two.
#[derive(Debug)]
pub struct Ends {
    /// Its calls are made by the thread that created the ends.
    pub client: End,
    /// It answers them in threads of its own.
    pub server: End,
}

/// One end.
#[derive(Debug)]
pub struct End {
    /// `None`: the namespace of this process.
    namespace: Option<Namespace>,
    cpu: usize,
}

impl Ends {
    /// Places both ends on the loopback interface of this host. Pins the calling thread, which is the client's,
    /// and with it all threads that it will start.
    pub fn on_loopback() -> Result<Self> {
        Self::new(None, None)
    }

    /// Places the ends in two network namespaces that a wire joins, which loses `loss` percent of the packets
    /// in each direction. Pins the calling thread, which is the client's.
    pub fn on_a_wire(loss: u32) -> Result<Self> {
        let wire = Wire::up()?;
        if loss > 0 {
            wire.lose(loss)?;
        }
        Self::new(Some(wire.left), Some(wire.right))
    }

    fn new(client: Option<Namespace>, server: Option<Namespace>) -> Result<Self> {
        let cpus = cpus();
        let client = End { namespace: client, cpu: cpus[0] };
        let server = End { namespace: server, cpu: *cpus.get(1).unwrap_or(&cpus[0]) };
        pin(&[client.cpu])?;
        Ok(Self { client, server })
    }
}

impl End {
    /// Returns the address to bind sockets to.
    pub fn address(&self) -> Ipv4Addr {
        self.namespace.as_ref().map_or(Ipv4Addr::LOCALHOST, Namespace::address)
    }

    /// Runs `job` on this end's CPU. Sockets that it opens, and threads that it starts, belong to this end.
    ///
    /// # Panics
    ///
    /// If `job` panics.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let cpu = self.cpu;
        let pinned = move || {
            pin(&[cpu])?;
            job()
        };
        match &self.namespace {
            Some(namespace) => namespace.run(pinned),
            None => thread::spawn(pinned).join().expect("a job that panics has reported why"),
        }
    }
}

/// Returns the CPUs that this process might use when it started: one of each core, then the second hardware
/// threads.
pub fn cpus() -> &'static [usize] {
    &CPUS
}

// Asked once: a thread that is pinned may use one CPU only.
static CPUS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let allowed = sched_getaffinity(SELF).expect("a thread may read its own affinity");
    let mut cpus: Vec<usize> =
        (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu) == Ok(true)).collect();
    cpus.sort_by_key(|cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = fs::read_to_string(path).unwrap_or_default();
        let first = siblings.split(['-', ',', '\n']).next().and_then(|cpu| cpu.parse().ok());
        first.is_some_and(|first: usize| first != *cpu)
    });
    cpus
});

/// Pins the calling thread, and the threads that it starts.
pub fn pin(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu)?;
    }
    Ok(sched_setaffinity(SELF, &set)?)
}
