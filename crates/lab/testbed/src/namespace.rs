//! Network namespaces, and jobs inside them.

use crate::Error;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

const DIRECTORY: &str = "/run/netns";

/// A named network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn new(name: String) -> Self {
        Self { name }
    }

    /// Returns its name, as listed by `ip netns`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `job` on a separate thread inside the namespace, and waits for it. Sockets that it opens,
    /// and threads and processes that it starts, belong to the namespace and stay in it.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    ///
    /// If `job` panics.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let inside = || self.enter().map(|()| job());
        thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs a tool inside the namespace with `input` as its standard input. Returns its output.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered, or the tool is missing or fails.
    pub fn run_tool(
        &self,
        tool: &'static str,
        args: &[&str],
        input: &str,
    ) -> Result<String, Error> {
        self.run(|| run(tool, args, input, &self.name))?
    }

    /// Returns a command that runs `program` inside the namespace.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path().display())).arg("--").arg(program);
        command
    }

    /// Moves the calling thread, but no other, into the namespace.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        let entered =
            File::open(self.path()).and_then(|file| Ok(setns(file, CloneFlags::CLONE_NEWNET)?));
        entered.map_err(Error::io(format!("cannot enter the network namespace {}", self.name)))
    }

    fn path(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.name)
    }
}

/// Returns the names of all network namespaces.
pub(crate) fn names() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Returns the processes in any of `namespaces`, except this one.
pub(crate) fn processes_in(namespaces: &[String]) -> Vec<i32> {
    let inode = |path: PathBuf| std::fs::metadata(path).ok().map(|file| file.ino());
    let inodes: Vec<_> =
        namespaces.iter().filter_map(|name| inode(Path::new(DIRECTORY).join(name))).collect();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_inside = |pid: &i32| {
        let its = inode(format!("/proc/{pid}/ns/net").into());
        its.is_some_and(|its| inodes.contains(&its)) && *pid != std::process::id() as i32
    };
    pids.filter(is_inside).collect()
}

/// Runs a program in the namespace of the calling thread, with `input` as its standard input.
pub(crate) fn run(
    tool: &'static str,
    args: &[&str],
    input: &str,
    place: &str,
) -> Result<String, Error> {
    let mut command = Command::new(tool);
    command.args(args).env("LC_ALL", "C").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C must reach only this process, which needs such programs to take the fabric down.
    command.process_group(0);
    let mut child = command.spawn().map_err(|source| Error::Missing { tool, source })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that has ended early reports why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(Error::io(tool))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let mut said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    // A batch names the line that failed: show it.
    let number = said.rsplit_once("Command failed -:").and_then(|(_, n)| n.parse::<usize>().ok());
    if let Some(line) = number.and_then(|number| input.lines().nth(number - 1)) {
        said = format!("{said}: {line}");
    }
    Err(Error::Tool { tool, place: place.into(), said })
}
