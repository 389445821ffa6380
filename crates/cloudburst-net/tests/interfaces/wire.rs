//! Two network namespaces without names, joined by a veth pair.
//!
//! A namespace without a name lives as long as the threads and sockets in it: whatever becomes of
//! the test, nothing is left behind.

use crate::common::{KEY, PATIENCE};
use cloudburst_net::{Builder, Endpoint, PathMap, Security, blocking};
use libtest_mimic::Failed;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, gettid};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// A host: a namespace, and the thread that holds it.
pub(crate) struct Host {
    pub(crate) address: IpAddr,
    /// `ip link` finds the namespace by it.
    thread: i32,
    jobs: Sender<Job>,
}

/// Two hosts on one wire, which is the interface `wire` of each.
pub(crate) struct Wire {
    pub(crate) left: Host,
    pub(crate) right: Host,
}

impl Host {
    fn enter(number: u8) -> Result<Self, Failed> {
        let (jobs, inbox) = channel::<Job>();
        let (ready, thread) = channel();
        thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            if ready.send(entered).is_ok() && entered.is_ok() {
                inbox.into_iter().for_each(|job| job());
            }
        });
        let thread = thread.recv()?.map_err(|error| format!("no network namespace: {error}"))?;
        Ok(Self { address: Ipv4Addr::new(10, 9, 0, number).into(), thread, jobs })
    }

    /// Runs `job` there. Sockets that it opens and threads that it starts belong there.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job: Job = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.send(job).expect("the holder thread runs as long as this value lives");
        result.recv().expect("a job that panics has said why")
    }

    /// Runs a command there; words are separated by blanks.
    pub(crate) fn command(&self, line: &str) -> Result<(), Failed> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let ran = self.run(move || Command::new(&words[0]).args(&words[1..]).output());
        let output = ran.map_err(|error| format!("`{line}`: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("`{line}`: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
    }

    /// An endpoint there, with further settings. It may send 100 Mb/s unless these say otherwise.
    pub(crate) fn endpoint(
        &self,
        settings: impl FnOnce(Builder) -> Builder,
    ) -> Result<blocking::Endpoint, Failed> {
        let builder = Endpoint::builder()
            .bind(SocketAddr::new(self.address, 0))
            .paths(PathMap::ecmp(4))
            .capacity(100_000_000)
            .security(Security::pre_shared(KEY));
        let builder = settings(builder);
        Ok(self.run(|| builder.build())?.blocking())
    }
}

impl Wire {
    /// Whether this machine lets us build one; else why not.
    pub(crate) fn available() -> Result<(), Failed> {
        if !Uid::effective().is_root() {
            return Err("needs root".into());
        }
        for (tool, flag) in [("ip", "-V"), ("tc", "-V"), ("nft", "--version")] {
            if Command::new(tool).arg(flag).output().is_err() {
                return Err(format!("needs `{tool}`: run scripts/setup").into());
            }
        }
        Self::up().map(drop)
    }

    pub(crate) fn up() -> Result<Self, Failed> {
        let (left, right) = (Host::enter(1)?, Host::enter(2)?);
        left.command(&format!("ip link add wire type veth peer name wire netns {}", right.thread))?;
        for host in [&left, &right] {
            host.command(&format!("ip address add {}/24 dev wire", host.address))?;
            host.command("ip link set wire up")?;
        }
        Ok(Self { left, right })
    }
}

/// Receives the message `bytes` and no other.
pub(crate) fn expect(receiver: &blocking::Endpoint, bytes: &[u8]) -> Result<(), Failed> {
    let message = receiver.recv_timeout(PATIENCE)?.ok_or("delivered, and not there")?;
    assert!(message.bytes == bytes, "another message of {} bytes", message.bytes.len());
    assert_eq!(receiver.try_recv(), Ok(None));
    Ok(())
}
