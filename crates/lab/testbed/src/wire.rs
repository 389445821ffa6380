//! Two hosts on one wire, for tests that need a network without switches.

use crate::error::Error;
use crate::namespace;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use std::net::Ipv4Addr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// Two network namespaces without names, linked by a veth pair: the interface `wire` of each.
///
/// A namespace without a name lives as long as the threads, processes and sockets in it, so nothing
/// is left behind, even if the program is killed. The wire is as fast as this machine, and has the
/// usual offloads. [`available`](crate::available) checks whether it can be built.
#[derive(Debug)]
pub struct Wire {
    /// 10.9.0.1.
    pub left: End,
    /// 10.9.0.2.
    pub right: End,
}

/// A host on a [`Wire`] or at a [`Gateway`](crate::Gateway): a namespace, and the thread that holds it.
pub struct End {
    address: Ipv4Addr,
    /// The thread by which `ip link` finds the namespace.
    holder: i32,
    jobs: Sender<Job>,
}

impl Wire {
    /// Builds a wire without loss.
    ///
    /// # Errors
    ///
    /// [`Error::Privilege`], [`Error::Missing`], [`Error::Tool`] or [`Error::Io`].
    pub fn up() -> Result<Self, Error> {
        let host = |number| End::enter(Ipv4Addr::new(10, 9, 0, number));
        let left = host(1)?;
        let right = host(2)?;
        left.join("wire", "wire", &right)?;
        for end in [&left, &right] {
            end.command("ip", "link set lo up")?;
            end.command("ip", &format!("address add {}/24 dev wire", end.address))?;
            end.command("ip", "link set wire up")?;
        }
        Ok(Self { left, right })
    }

    /// Makes it lose `percent` of the packets in each direction from now on, and disables offloads, so
    /// that each packet is carried singly.
    ///
    /// # Errors
    ///
    /// As [`up`](Self::up).
    pub fn lose(&self, percent: u32) -> Result<(), Error> {
        for end in [&self.left, &self.right] {
            // With offloads, a batch of packets would be lost as a whole or not at all. `gso off`
            // does not cover UDP.
            end.command("ethtool", "-K wire tso off gso off gro off tx-udp-segmentation off")?;
            let rules = format!(
                "table inet loss {{ chain input {{ type filter hook input priority 0; \
                 meta l4proto {{ tcp, udp }} numgen random mod 100 < {percent} counter drop; }}; }}"
            );
            end.command("nft", &rules)?;
        }
        Ok(())
    }
}

impl End {
    pub(crate) fn enter(address: Ipv4Addr) -> Result<Self, Error> {
        let (jobs, inbox) = channel::<Job>();
        let (ready, holder) = channel();
        thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            if ready.send(entered).is_ok() && entered.is_ok() {
                inbox.into_iter().for_each(|job| job());
            }
        });
        let entered = holder.recv().expect("the holder reports whether it entered before it ends");
        let holder = entered.map_err(|error| Error::io("a network namespace")(error.into()))?;
        Ok(Self { address, holder, jobs })
    }

    /// Links an interface here to one of `other` by a wire.
    pub fn join(&self, here: &str, there: &str, other: &Self) -> Result<(), Error> {
        let link = format!("link add {here} type veth peer name {there} netns {}", other.holder);
        self.command("ip", &link).map(drop)
    }

    /// Returns its address.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs `job` on this host. Sockets that it opens, and threads and processes that it starts,
    /// belong to its namespace.
    ///
    /// # Panics
    ///
    /// If `job` panics, and in every later call.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job: Job = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.send(job).expect("the holder runs as long as no job has panicked");
        result.recv().expect("a job that panics has reported why")
    }

    /// Runs a program on this host, with arguments separated by spaces. Returns its output.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] or [`Error::Tool`].
    pub fn command(&self, tool: &'static str, arguments: &str) -> Result<String, Error> {
        let arguments = arguments.to_owned();
        let place = self.address.to_string();
        self.run(move || {
            let arguments: Vec<&str> = arguments.split_whitespace().collect();
            namespace::run(tool, &arguments, "", &place)
        })
    }

    /// Returns the number of packets to this host that were lost by [`Wire::lose`].
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn lost(&self) -> Result<u64, Error> {
        self.counted()
    }

    /// Returns the packets of the first counter in this host's rules.
    pub(crate) fn counted(&self) -> Result<u64, Error> {
        let rules = self.command("nft", "list ruleset")?;
        let count = rules.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }
}

impl core::fmt::Debug for End {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("End").field("address", &self.address).finish_non_exhaustive()
    }
}
