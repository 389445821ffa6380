//! A fabric ends with the program that built it.

use crate::small;
use cloudburst_testbed::{Fabric, Topology};
use libtest_mimic::Failed;
use std::io::{BufRead, BufReader};
use std::panic::{catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const VICTIM: &str = "CBRST_TESTBED_VICTIM";

/// The namespaces and the state file of a fabric.
pub(crate) fn remains(name: &str) -> Vec<String> {
    let listed = |dir: &str| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let entries = listed("/run/netns").chain(listed("/run/cloudburst-testbed"));
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|entry| entry.strip_prefix(name).is_some_and(|rest| rest.starts_with(['-', '.'])))
        .collect()
}

pub(crate) fn dropping_a_fabric_removes_it() -> Result<(), Failed> {
    let fabric = Fabric::up(&small())?;
    let other = Fabric::up(&small())?;
    let name = fabric.name().to_string();
    assert_ne!(name, other.name());
    assert_eq!(remains(&name).len(), 4 + 2 + 4 + 1);
    let sockets = fabric.host(1)?.run(|| std::net::UdpSocket::bind("0.0.0.0:0"))??;
    drop(fabric);
    assert_eq!(remains(&name), [""; 0]);
    let sent = sockets.send_to(b"nowhere", "10.1.2.3:7000");
    assert!(sent.is_err(), "a socket that outlives the fabric has no links");
    assert_eq!(remains(other.name()).len(), 4 + 2 + 4 + 1);
    let name = other.name().to_string();
    let removed = other.down()?;
    assert_eq!((removed.namespaces, removed.processes.len()), (10, 0));
    assert_eq!(remains(&name), [""; 0]);
    Ok(())
}

pub(crate) fn a_panic_takes_the_fabric_down() -> Result<(), Failed> {
    let caught = catch_unwind(|| {
        let fabric = Fabric::up(&small())?;
        let name = fabric.name().to_string();
        fabric.host(1)?.run::<()>(|| resume_unwind(Box::new(name)))
    });
    let payload = caught.err().ok_or("it did not panic")?;
    let name = *payload.downcast::<String>().map_err(|_| "another panic")?;
    assert!(name.starts_with("cbt"), "{name}");
    assert_eq!(remains(&name), [""; 0]);
    Ok(())
}

pub(crate) fn is_victim() -> bool {
    std::env::var_os(VICTIM).is_some()
}

pub(crate) fn wait_to_be_killed() -> Result<(), Failed> {
    let fabric = Fabric::up(&Topology { hosts: 2, spines: 1, ..small() })?;
    println!("{}", fabric.name());
    thread::sleep(Duration::from_secs(60));
    Ok(())
}

pub(crate) fn the_remains_of_a_killed_process_are_removed() -> Result<(), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut victim = command.env(VICTIM, "1").stdout(Stdio::piped()).spawn()?;
    let mut name = String::new();
    let stdout = victim.stdout.take().ok_or("no standard output")?;
    BufReader::new(stdout).read_line(&mut name)?;
    let name = name.trim();
    assert_eq!(remains(name).len(), 2 + 2 + 1 + 1, "{name}");
    let refused = Fabric::remove(name).err().map(|error| error.to_string()).unwrap_or_default();
    victim.kill()?;
    victim.wait()?;
    assert!(refused.contains("still runs"), "{refused}");
    let next = Fabric::up(&small())?;
    assert_eq!(remains(name), [""; 0]);
    assert!(Path::new(&format!("/run/netns/{}-h1", next.name())).exists());
    Ok(())
}
