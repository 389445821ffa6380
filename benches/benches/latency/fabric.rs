//! Two network namespaces without names, joined by a veth pair.
//!
//! A namespace without a name lives as long as the threads in it: nothing is left behind.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, gettid};
use std::net::Ipv4Addr;
use std::process::{Command, Output};
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace, and the thread that holds it.
pub(crate) struct Namespace {
    pub(crate) address: Ipv4Addr,
    /// The holder's thread id: `ip link` finds the namespace by it.
    thread: i32,
    jobs: Sender<Job>,
}

/// Two hosts on one wire.
pub(crate) struct Fabric {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
}

impl Namespace {
    fn enter(host: u8) -> Result<Self, String> {
        let (jobs, inbox) = channel::<Job>();
        let (ready, thread) = channel();
        thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            if ready.send(entered).is_ok() && entered.is_ok() {
                inbox.into_iter().for_each(|job| job());
            }
        });
        let thread = thread.recv().map_err(|error| error.to_string())?;
        let thread = thread.map_err(|error| format!("no new network namespace: {error}"))?;
        Ok(Self { address: Ipv4Addr::new(10, 9, 0, host), thread, jobs })
    }

    /// Runs `job` in the namespace. Sockets that it opens, and threads and processes that it
    /// starts, belong there.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job: Job = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.send(job).expect("the holder thread runs as long as this value lives");
        result.recv().expect("a job that panics has said why")
    }

    fn command(&self, line: &str) -> Result<(), String> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let ran = self.run(move || Command::new(&words[0]).args(&words[1..]).output());
        check(line, ran)
    }
}

impl Fabric {
    /// Whether this machine lets us build one; else why not.
    pub(crate) fn available() -> Result<(), String> {
        if !Uid::effective().is_root() {
            return Err("it needs root, for network namespaces".into());
        }
        for tool in ["ip", "nft", "ethtool"] {
            if Command::new(tool).arg("--version").output().is_err() {
                return Err(format!("it needs `{tool}`: run scripts/setup"));
            }
        }
        Ok(())
    }

    /// A wire that loses nothing, with the offloads that a veth pair has unless told otherwise.
    pub(crate) fn clean() -> Result<Self, String> {
        let (client, server) = (Namespace::enter(1)?, Namespace::enter(2)?);
        let link = format!("ip link add wire type veth peer name wire netns {}", server.thread);
        client.command(&link)?;
        for side in [&client, &server] {
            side.command("ip link set lo up")?;
            side.command(&format!("ip address add {}/24 dev wire", side.address))?;
            side.command("ip link set wire up")?;
        }
        Ok(Self { client, server })
    }

    /// A wire that loses `percent` of the packets, each way.
    pub(crate) fn lossy(percent: u32) -> Result<Self, String> {
        let fabric = Self::clean()?;
        for side in [&fabric.client, &fabric.server] {
            // With offloads, a batch of packets would be lost as a whole, or not at all; `gso off`
            // does not cover those of UDP.
            side.command("ethtool -K wire tso off gso off gro off tx-udp-segmentation off")?;
            let rules = format!(
                "table inet loss {{ chain input {{ type filter hook input priority 0; \
                 meta l4proto {{ tcp, udp }} numgen random mod 100 < {percent} drop; }}; }}"
            );
            let script = rules.clone();
            check(&rules, side.run(move || Command::new("nft").arg(script).output()))?;
        }
        Ok(fabric)
    }
}

fn check(line: &str, ran: std::io::Result<Output>) -> Result<(), String> {
    let output = ran.map_err(|error| format!("`{line}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("`{line}`: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
