//! `cbrst-testbed`: parses the arguments, and runs the command.

mod args;
mod status;

use crate::Error;
use crate::fabric::{Fabric, Removed};
use crate::signals::interrupted;
use crate::state::{Failure, Process};
use crate::topology::Node;
use args::{Arguments, Command, Up};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, ExitCode, Stdio};

const PROGRAM: &str = "cbrst-testbed";
/// The line that the forwarding process prints once it forwards.
const READY: &str = "ready";

/// The entry point of `cbrst-testbed`.
pub fn main() -> ExitCode {
    match cloudburst_program::parse::<Arguments>() {
        Ok(arguments) => cloudburst_program::exit(PROGRAM, run(arguments.command)),
        Err(not_run) => not_run.into(),
    }
}

fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Up(up) => raise(&up),
        Command::Down { fabric } => {
            let removed = Fabric::remove(&fabric.name)?;
            if removed == Removed::default() {
                return print(&format!("{} was not up", fabric.name));
            }
            for pid in &removed.processes {
                warn(&format!("{PROGRAM}: process {pid} still runs, but its network is gone"));
            }
            print(&format!("{} is down: {} namespaces removed", fabric.name, removed.namespaces))
        }
        Command::Status { json, fabric } => {
            let status = status::Status::of(&Fabric::attach(&fabric.name)?)?;
            print(&if json { status.json() } else { status.to_string() })
        }
        Command::Fail { target, down, fabric } => {
            let how = if down { Failure::Down } else { Failure::Silent };
            Fabric::attach(&fabric.name)?.fail(target, how)
        }
        Command::Heal { target, fabric } => Fabric::attach(&fabric.name)?.heal(target),
        Command::Loss { link, percent, fabric } => {
            Fabric::attach(&fabric.name)?.loss(link, percent.0)
        }
        Command::Exec { fabric, node, command } => {
            Err(exec(&Fabric::attach(&fabric.name)?, node, &command))
        }
        Command::Forward { fabric } => forward(&fabric.name),
    }
}

fn raise(up: &Up) -> Result<(), Error> {
    let interrupted = interrupted()?;
    let name = &up.fabric.name;
    let topology = up.topology();
    let raised = Fabric::up_to_stay(name, &topology, &interrupted, |fabric| {
        start_forwarding(fabric.name())
    })?;
    if raised.is_none() {
        return print(&format!("{name} is up already"));
    }
    print(&format!(
        "{name} is up: {} hosts, {} leaves, {} spines. Try: {PROGRAM} status{}",
        topology.hosts,
        topology.leaves,
        topology.spines,
        if name == "cbrst" { String::new() } else { format!(" --name {name}") },
    ))
}

/// Starts this program again, as a background process.
fn start_forwarding(name: &str) -> Result<Process, Error> {
    let doing =
        || Error::io("cannot start the process that decapsulates IP-in-IP and emulates queues");
    let program = std::env::current_exe().map_err(doing())?;
    let mut command = process::Command::new(program);
    command.args(["forward", "--name", name]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(doing())?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut said).map_err(doing())?;
    }
    match Process::of(child.id() as i32) {
        Some(process) if said.trim_end() == READY => Ok(process),
        _ => {
            let _ = child.kill();
            let _ = child.wait();
            Err(doing()(io::Error::other(said.trim_end().to_string())))
        }
    }
}

fn forward(name: &str) -> Result<(), Error> {
    // Signals that `up` blocks would be blocked here too, but `down` ends this process by SIGTERM.
    let _ = nix::sys::signal::SigSet::all().thread_unblock();
    // Detach from the terminal of `up`.
    let _ = nix::unistd::setsid();
    let done = Fabric::forward(name, || println!("{READY}"));
    if let Err(error) = &done {
        println!("{error}");
    }
    done
}

/// Replaces this process by the command. Returns only on failure.
fn exec(fabric: &Fabric, node: Node, command: &[OsString]) -> Error {
    let entered = fabric.namespace(node).and_then(|namespace| namespace.enter());
    match (entered, command) {
        (Err(error), _) => error,
        (Ok(()), [program, arguments @ ..]) => {
            let failed = process::Command::new(program).args(arguments).exec();
            Error::io(format!("cannot run {}", program.display()))(failed)
        }
        (Ok(()), []) => Error::Parameter {
            field: "COMMAND",
            value: String::new(),
            expected: "a program to run".into(),
        },
    }
}

fn print(text: &str) -> Result<(), Error> {
    cloudburst_program::print_line(text).map_err(Error::io("standard output"))
}

fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
