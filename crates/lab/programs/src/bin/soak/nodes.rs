//! The hosts, and the processes on them.

use crate::check::{Checker, Memory};
use crate::record::{Key, Record};
use cloudburst_testbed::{Error, Star};
use core::time::Duration;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub const PORT: u16 = 7000;
/// The node whose address the router translates, and its last byte behind the router.
pub const TRANSLATED: u8 = 7;
const PIPE: i32 = 1 << 20;
/// That of all links, unless it is lowered.
pub const MTU: u32 = 9_000;

/// What a node is for. Node N is on host N.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    pub node: u8,
    pub serves: bool,
    /// Never killed or restarted: its memory is watched.
    pub stays: bool,
    /// Its processes share a port.
    pub reuse_port: bool,
    pub paths: &'static str,
}

const fn role(node: u8, serves: bool, stays: bool, reuse_port: bool, paths: &'static str) -> Role {
    Role { node, serves, stays, reuse_port, paths }
}

pub const ROLES: [Role; 7] = [
    role(1, true, true, false, "ecmp:4"),
    role(2, true, false, false, "ecmp:1"),
    role(3, true, false, true, "ecmp:4"),
    role(4, false, true, false, "ecmp:4"),
    role(5, false, false, false, "ecmp:16"),
    role(6, false, false, false, "ecmp:1"),
    role(TRANSLATED, false, false, false, "ecmp:4"),
];
/// The host that sends junk. No process is there.
pub const ATTACKER: u8 = ROLES.len() as u8 + 1;

/// A process that runs.
#[derive(Debug)]
pub struct Process {
    pub life: u32,
    child: Child,
    reader: JoinHandle<()>,
    clock: File,
    /// Nanoseconds that its clock is behind.
    behind: u64,
}

#[derive(Debug)]
pub struct Nodes {
    pub star: Star,
    checker: Arc<Mutex<Checker>>,
    processes: Vec<Vec<Process>>,
    directory: PathBuf,
    preload: Option<PathBuf>,
    began: Instant,
    began_us: u64,
    rate: u32,
    lives: u32,
}

impl Nodes {
    pub fn up(directory: &Path, rate: u32, patience: Duration) -> Result<Self, Error> {
        let star = Star::up(ATTACKER)?;
        let checker = Arc::new(Mutex::new(Checker::new(patience)));
        let preload = compile(directory);
        if preload.is_none() {
            println!("soak: no clock stands still: it needs cc");
        }
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // A router does not tell senders that their packets are too long.
        let filter = "table inet silent { chain out { type filter hook output priority 0; \
                      icmp type destination-unreachable icmp code frag-needed drop; }; }";
        star.router.command("nft", filter)?;
        for (host, number) in star.hosts.iter().zip(1..) {
            host.command("ip", &format!("link set wire mtu {MTU}"))?;
            let port = Star::port(number);
            star.router.command("ip", &format!("link set {port} mtu {MTU}"))?;
        }
        Ok(Self {
            star,
            checker,
            processes: ROLES.map(|_| Vec::new()).into(),
            directory: directory.into(),
            preload,
            began: Instant::now(),
            began_us: since_epoch.as_micros() as u64,
            rate,
            lives: 0,
        })
    }

    pub fn checker(&self) -> MutexGuard<'_, Checker> {
        self.checker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the beginning.
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    pub const fn has_clock(&self) -> bool {
        self.preload.is_some()
    }

    pub fn of(&mut self, node: u8) -> &mut Vec<Process> {
        &mut self.processes[usize::from(node) - 1]
    }

    /// Starts a process on the host of `node`.
    pub fn start(&mut self, node: u8) -> io::Result<()> {
        self.lives += 1;
        let life = self.lives;
        let Role { serves, reuse_port, paths, .. } = ROLES[usize::from(node) - 1];
        let clock = self.directory.join(format!("clock-{life}"));
        fs::write(&clock, [0; 8])?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("node");
        let port = if serves { PORT } else { 0 };
        for (option, value) in [
            ("--node", node.to_string()),
            ("--life", life.to_string()),
            ("--began", self.began_us.to_string()),
            ("--bind", format!("0.0.0.0:{port}")),
            ("--paths", paths.to_owned()),
            ("--rate", self.rate.to_string()),
        ] {
            command.arg(option).arg(value);
        }
        if reuse_port {
            command.arg("--reuse-port");
        }
        if !serves {
            for server in ROLES.iter().filter(|role| role.serves) {
                for number in [2, 3] {
                    let address = Star::address(server.node, number);
                    command.arg("--peer").arg(format!("{}={address}:{PORT}", server.node));
                }
            }
        }
        if let Some(preload) = &self.preload {
            command.env("LD_PRELOAD", preload).env("SOAK_CLOCK", &clock);
        }
        // Ctrl-C must reach only this process, which ends the others.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = self.star.hosts[usize::from(node) - 1].run(move || command.spawn())?;
        let mut records = child.stdout.take().expect("it is piped");
        // A larger one only lets a process run on for longer while this one is not running.
        let _ = fcntl(&records, FcntlArg::F_SETPIPE_SZ(PIPE));
        let checker = self.checker.clone();
        self.checker().on_started(life, node);
        let reader = thread::spawn(move || {
            while let Ok(Some(record)) = Record::read(&mut records) {
                checker.lock().unwrap_or_else(PoisonError::into_inner).on_record(life, record);
            }
        });
        let clock = File::options().write(true).open(clock)?;
        self.of(node).push(Process { life, child, reader, clock, behind: 0 });
        Ok(())
    }

    /// Ends all processes that still run.
    pub fn kill_all(&mut self) {
        for node in ROLES.map(|role| role.node) {
            while let Some(process) = self.of(node).pop() {
                self.checker().on_killed(process.life);
                process.kill();
            }
        }
    }

    /// Reports processes that have ended by themselves, and starts them again.
    pub fn check_alive(&mut self) -> io::Result<()> {
        for node in ROLES.map(|role| role.node) {
            let ended = self.of(node).iter_mut().position(|process| process.has_ended());
            if let Some(at) = ended {
                let process = self.of(node).remove(at);
                let life = process.life;
                let status = process.wait();
                let mut checker = self.checker();
                checker.on_killed(life);
                let key = Key { life, number: u32::MAX };
                checker.violate(key, &format!("the process has ended by itself: {status:?}"));
                drop(checker);
                self.start(node)?;
            }
        }
        Ok(())
    }

    pub fn sample_memory(&self) {
        for process in self.processes.iter().flatten() {
            if let Some(memory) = process.memory() {
                self.checker().on_memory(process.life, memory);
            }
        }
    }

    /// Adds or deletes address `number` of the host of `node`.
    pub fn address(&self, node: u8, what: &str, number: u8) -> Result<(), Error> {
        let host = &self.star.hosts[usize::from(node) - 1];
        let address = Star::address(node, number);
        host.command("ip", &format!("address {what} {address}/32 dev wire"))?;
        // The system deletes the routes of an interface with its last address.
        host.command("ip", "route replace default via 10.9.0.1 dev wire onlink").map(drop)
    }
}

impl Process {
    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends it a command.
    pub fn tell(&mut self, command: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            // If it has ended, its status says so.
            let _ = writeln!(stdin, "{command}");
        }
    }

    /// Waits until it has ended, for at most `within`.
    pub fn ends(&mut self, within: Duration) -> bool {
        let until = Instant::now() + within;
        while !self.has_ended() {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Waits until it has ended and all its records are read.
    pub fn wait(mut self) -> Option<ExitStatus> {
        let status = self.child.wait().ok();
        let _ = self.reader.join();
        status
    }

    pub fn kill(mut self) -> Option<ExitStatus> {
        let _ = self.child.kill();
        self.wait()
    }

    /// Stops it. Returns whether it has stopped.
    pub fn stop(&self) -> bool {
        let _ = kill(self.pid(), Signal::SIGSTOP);
        let state = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
            stat.rsplit_once(')')?.1.split_whitespace().next().map(|state| state == "T")
        };
        (0..100).any(|_| {
            thread::sleep(Duration::from_millis(1));
            state() == Some(true)
        })
    }

    /// Lets it continue, with a clock that is `behind` by as much more.
    pub fn resume(&mut self, behind: Duration) -> io::Result<()> {
        self.behind += behind.as_nanos() as u64;
        std::os::unix::fs::FileExt::write_all_at(&self.clock, &self.behind.to_ne_bytes(), 0)?;
        Ok(kill(self.pid(), Signal::SIGCONT)?)
    }

    fn memory(&self) -> Option<Memory> {
        let pid = self.child.id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
        Some(Memory { resident: field("VmRSS:")?, descriptors, threads: field("Threads:")? })
    }
}

/// Compiles what lets clocks stand still, if there is a compiler.
fn compile(directory: &Path) -> Option<PathBuf> {
    let source = directory.join("clock.c");
    let object = directory.join("clock.so");
    fs::write(&source, include_str!("clock.c")).ok()?;
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source).arg("-ldl");
    cc.status().is_ok_and(|status| status.success()).then_some(object)
}

/// The address by which the router lets others know the translated node.
pub fn translated(number: u8) -> Ipv4Addr {
    Star::address(TRANSLATED, number)
}
