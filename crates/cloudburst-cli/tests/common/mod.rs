//! The real programs, with every wait bounded, and nothing left running.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "all of it is for tests, which may panic")]

use core::time::Duration;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tempfile::TempDir;

/// Long enough for a busy machine; reached only by a test that fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Where nobody listens. Not a port that was free a moment ago: tests beside this one take such
/// ports.
pub(crate) const CLOSED: &str = "127.0.0.1:9";

pub(crate) const SEND: &str = env!("CARGO_BIN_EXE_cbrst-send");
pub(crate) const RECV: &str = env!("CARGO_BIN_EXE_cbrst-recv");
pub(crate) const DOCTOR: &str = env!("CARGO_BIN_EXE_cbrst-doctor");

/// A directory that does not exist, and so has no settings files.
const NO_CONFIG: &str = "/nonexistent";

/// A running program.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
    stdout: Option<JoinHandle<Vec<u8>>>,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// A command that runs `program` with the default disposition of the signals that stop it: `nohup`, and shells that start
/// background jobs, ignore some, and child processes inherit that.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,TERM,HUP", program])
        .args(args)
        .env_remove("CBRST_KEY")
        .env("XDG_CONFIG_HOME", NO_CONFIG)
        .stdin(Stdio::null());
    command
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (line, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|l| line.send(l)));
        let mut stdout = child.stdout.take().unwrap();
        let stdout = Some(thread::spawn(move || {
            let mut all = Vec::new();
            stdout.read_to_end(&mut all).unwrap();
            all
        }));
        Self { child, lines, seen: Vec::new(), stdout }
    }

    /// Waits for a line on standard error that contains `text`.
    pub(crate) fn line(&mut self, text: &str) -> String {
        self.line_but(text, "\n")
    }

    /// Waits for one that contains `text` and not `other`.
    pub(crate) fn line_but(&mut self, text: &str, other: &str) -> String {
        let is_it = |line: &str| line.contains(text) && !line.contains(other);
        let deadline = Instant::now() + PATIENCE;
        if let Some(seen) = self.seen.iter().find(|line| is_it(line)) {
            return seen.clone();
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if is_it(&line) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {text:?} ({error}), but {:#?}", self.seen),
            }
        }
    }

    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        let status = self.wait();
        let stdout = self.stdout.take().unwrap().join().unwrap();
        let mut stderr = self.seen.clone();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => stderr.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("standard error stays open"),
            }
        }
        Ended { code: status.code(), stdout, stderr: stderr.join("\n") }
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A receiver that made its own key, and the directory of its files.
pub(crate) struct Receiver {
    pub(crate) running: Running,
    pub(crate) addr: String,
    pub(crate) key: String,
    pub(crate) dir: TempDir,
}

impl Receiver {
    pub(crate) fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start_in(dir, args)
    }

    pub(crate) fn start_in(dir: TempDir, args: &[&str]) -> Self {
        Self::start_masked("022", dir, args)
    }

    /// Starts a receiver with a file mode creation mask.
    pub(crate) fn start_masked(mask: &str, dir: TempDir, args: &[&str]) -> Self {
        let script = format!("umask {mask}; exec \"$0\" \"$@\"");
        let mut all = vec!["-c", &script, RECV, "--listen", "127.0.0.1:0", "--out"];
        all.push(dir.path().to_str().unwrap());
        all.extend(args);
        let (running, addr, key) = listening(Running::start(&mut command("sh", &all)));
        Self { running, addr, key, dir }
    }

    /// Runs `cbrst-send [args] ADDR files` to its end.
    pub(crate) fn send(&self, args: &[&str], files: &[&Path]) -> Ended {
        self.start_sender(args, files).end()
    }

    pub(crate) fn start_sender(&self, args: &[&str], files: &[&Path]) -> Running {
        Running::start(&mut sender(&self.addr, &self.key, args, files))
    }

    /// The bytes of a file that was received.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.path().join(name)).unwrap()
    }

    /// The files in the directory that have their names.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = entries(self.dir.path());
        names.retain(|name| !name.starts_with(".cbrst-"));
        names
    }

    /// The incomplete files.
    pub(crate) fn partial(&self) -> Vec<PathBuf> {
        let mut directories = entries(self.dir.path());
        directories.retain(|name| name.starts_with(".cbrst-"));
        assert!(!directories.is_empty(), "one is there while the receiver runs");
        let files = |name: &String| {
            let directory = self.dir.path().join(name);
            let files = entries(&directory).into_iter().filter(|name| name != "lock");
            files.map(|name| directory.join(name)).collect::<Vec<_>>()
        };
        directories.iter().flat_map(files).collect()
    }

    /// Stops the receiver, and returns the files that it leaves.
    pub(crate) fn stop(self) -> (Ended, Vec<String>) {
        self.running.signal(Signal::SIGTERM);
        let ended = self.running.end();
        (ended, entries(self.dir.path()))
    }
}

/// Waits for the lines that tell where a receiver listens, and for which key.
pub(crate) fn listening(mut running: Running) -> (Running, String, String) {
    let listening = running.line("listening on ");
    let addr = listening.rsplit(' ').next().unwrap().to_owned();
    let hint = running.line("cbrst-send ");
    let key = hint.split_once("CBRST_KEY=").map_or("", |(_, rest)| &rest[..64]).to_owned();
    (running, addr, key)
}

/// A `cbrst-send` with the key in its environment, where there is one.
pub(crate) fn sender(addr: &str, key: &str, args: &[&str], files: &[&Path]) -> Command {
    let mut command = command(SEND, args);
    if !key.is_empty() {
        command.env("CBRST_KEY", key);
    }
    command.arg(addr).args(files);
    command
}

/// The same command, run by another program.
pub(crate) fn run_by(program: &str, args: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(program);
    outer.args(args).arg(command.get_program()).args(command.get_args());
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer
}

/// The same command, without these capabilities of root.
pub(crate) fn without(capabilities: &[&str], command: &Command) -> Command {
    if !nix::unistd::Uid::effective().is_root() {
        return run_by("env", &[], command);
    }
    let set = capabilities.iter().map(|name| format!("-{name}")).collect::<Vec<_>>().join(",");
    let args = [format!("--bounding-set={set}"), format!("--inh-caps={set}")];
    run_by("setpriv", &args.each_ref().map(String::as_str), command)
}

/// Polls until the condition holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "it never came true that {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Bytes that repeat nowhere.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(|_| next()).take(len).collect()
}

/// A directory with files in it.
pub(crate) fn files(contents: &[(&str, &[u8])]) -> (TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let write = |(name, bytes): &(&str, &[u8])| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let paths = contents.iter().map(write).collect();
    (dir, paths)
}

pub(crate) fn entries(dir: &Path) -> Vec<String> {
    let entry =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(dir).unwrap().map(entry).collect();
    names.sort();
    names
}
