//! Two network namespaces without names, joined by a veth pair that loses packets.
//!
//! A namespace without a name lives as long as the threads in it: whatever becomes of the test,
//! nothing is left behind.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, gettid};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Output};
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace, and the thread that holds it.
pub(crate) struct Namespace {
    pub(crate) address: IpAddr,
    /// The holder's thread id: `ip link` finds the namespace by it.
    thread: i32,
    jobs: Sender<Job>,
}

/// Two hosts on one lossy wire.
pub(crate) struct Fabric {
    pub(crate) left: Namespace,
    pub(crate) right: Namespace,
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
        Ok(Self { address: Ipv4Addr::new(10, 9, 0, host).into(), thread, jobs })
    }

    /// Runs `job` in the namespace. Sockets that it opens and processes that it starts belong
    /// there.
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

    fn script(&self, program: &'static str, script: String) -> Result<(), String> {
        let said = script.clone();
        let ran = self.run(move || Command::new(program).arg(script).output());
        check(&said, ran)
    }
}

impl Fabric {
    /// Whether this machine lets us build one; else why not.
    pub(crate) fn available() -> Result<(), String> {
        if !Uid::effective().is_root() {
            return Err("needs root".into());
        }
        for tool in ["ip", "nft", "ethtool"] {
            if Command::new(tool).arg("--version").output().is_err() {
                return Err(format!("needs `{tool}`: run scripts/setup"));
            }
        }
        Self::with_loss(0).map(drop)
    }

    /// A wire that loses `percent` of the packets, each way.
    pub(crate) fn with_loss(percent: u32) -> Result<Self, String> {
        let (left, right) = (Namespace::enter(1)?, Namespace::enter(2)?);
        left.command(&format!("ip link add wire type veth peer name wire netns {}", right.thread))?;
        for side in [&left, &right] {
            side.command("ip link set lo up")?;
            side.command(&format!("ip address add {}/24 dev wire", side.address))?;
            // With offloads, a batch of packets would be lost as a whole, or not at all; `gso off`
            // does not cover those of UDP.
            side.command("ethtool -K wire tso off gso off gro off tx-udp-segmentation off")?;
            side.command("ip link set wire up")?;
            if percent > 0 {
                let rules = format!(
                    "table inet loss {{ chain input {{ type filter hook input priority 0; \
                     meta l4proto udp numgen random mod 100 < {percent} counter drop; }}; }}"
                );
                side.script("nft", rules)?;
            }
        }
        Ok(Self { left, right })
    }

    /// Packets that the wire has lost on the way to `side`: proof that it does.
    pub(crate) fn lost(side: &Namespace) -> u64 {
        let listed = side.run(|| Command::new("nft").args(["list", "ruleset"]).output());
        let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default()
            .split("packets ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .unwrap_or(0)
    }
}

fn check(line: &str, ran: std::io::Result<Output>) -> Result<(), String> {
    let output = ran.map_err(|error| format!("`{line}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("`{line}`: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
