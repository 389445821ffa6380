//! `cbrst-testbed`, from its command line.

use crate::lifecycle::remains;
use crate::packets::*;
use cloudburst_testbed::Fabric;
use libtest_mimic::Failed;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::SockRef;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cbrst-testbed");

/// A fabric of this test, which is taken down at its end, whatever happens.
struct Name(String);

impl Name {
    fn new(test: &str) -> Self {
        Self(format!("p{}{test}", std::process::id()))
    }

    fn command(&self, args: &[&str]) -> Command {
        // The tests may have been started where signals are ignored, which child processes inherit.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM", PROGRAM]);
        command.arg(args[0]).args(["--name", &self.0]).args(&args[1..]).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Result<Output, Failed> {
        Ok(self.command(args).output()?)
    }

    fn run_well(&self, args: &[&str]) -> Result<String, Failed> {
        let output = self.run(args)?;
        let said = text(&output.stdout) + &text(&output.stderr);
        if output.status.success() { Ok(said) } else { Err(format!("{args:?}: {said}").into()) }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = self.run(&["down"]);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn up_and_down_are_idempotent() -> Result<(), Failed> {
    let name = Name::new("a");
    let up = ["up", "--hosts", "2", "--spines", "2", "--rate", "50mbit", "--loss", "1%"];
    assert!(name.run_well(&up)?.contains("is up: 2 hosts, 2 leaves, 2 spines"));
    assert!(name.run_well(&up)?.contains("is up already"));
    let other = name.run(&["up", "--hosts", "2"])?;
    assert_eq!(other.status.code(), Some(1));
    let said = text(&other.stderr);
    assert!(
        said.contains("rate 50000000, not 100000000") && said.contains("down --name"),
        "{said}"
    );
    assert_eq!(remains(&name.0).len(), 2 + 2 + 2 + 1);

    name.run_well(&["fail", "spine:2"])?;
    name.run_well(&["loss", "l1-s1", "2.5"])?;
    let json: serde_json::Value = serde_json::from_str(&name.run_well(&["status", "--json"])?)?;
    assert_eq!(json["topology"]["hosts"], 2);
    assert_eq!(json["hosts"][1]["paths"][1], "10.102.2.2");
    assert_eq!((&json["forwarding"], &json["failed"]["s2"]), (&true.into(), &"silent".into()));
    assert_eq!((&json["loss"]["l1-s1"], &json["loss"]["l2-s1"]), (&2.5.into(), &1.0.into()));
    assert_eq!(json["ports"].as_array().map(Vec::len), Some(2 * (2 + 2 * 2)));
    assert_eq!(json["ports"][0]["tiny"]["limit"], 128);
    let table = name.run_well(&["status"])?;
    assert!(table.contains("s2 fails silently") && table.contains("l1-s1 loses 2.5 %"), "{table}");
    assert!(table.contains("l2>s2") && table.contains("10.101.1.1 ... 10.102.1.1"), "{table}");
    assert!(name.run_well(&["exec", "h2", "--", "ip", "address"])?.contains("10.1.2.2/32"));
    let code = name.run(&["exec", "s1", "--", "sh", "-c", "exit 7"])?.status.code();
    assert_eq!(code, Some(7));
    name.run_well(&["heal"])?;

    let mut left = name.command(&["exec", "h1", "--", "sleep", "60"]).spawn()?;
    thread::sleep(Duration::from_millis(200));
    let down = name.run_well(&["down"])?;
    left.kill()?;
    left.wait()?;
    assert!(down.contains("6 namespaces removed"), "{down}");
    assert!(down.contains(&format!("process {} still runs", left.id())), "{down}");
    assert_eq!(remains(&name.0), [""; 0]);
    assert!(name.run_well(&["down"])?.contains("was not up"));
    let gone = Instant::now();
    while !forwarders(&name.0)?.is_empty() {
        assert!(gone.elapsed() < Duration::from_secs(5), "it decapsulates still");
        thread::sleep(Duration::from_millis(20));
    }
    let status = name.run(&["status"])?;
    assert!(text(&status.stderr).contains("is not up: build it with"));
    Ok(())
}

pub(crate) fn up_replaces_a_fabric_whose_process_has_ended() -> Result<(), Failed> {
    let name = Name::new("f");
    let up = ["up", "--hosts", "2", "--spines", "2", "--trim", "128:44"];
    name.run_well(&up)?;
    expect_forwarding(&name.0, true)?;
    let pid = || -> Result<Option<i32>, Failed> {
        let state = fs::read_to_string(format!("/run/cloudburst-testbed/{}.json", name.0))?;
        let state: serde_json::Value = serde_json::from_str(&state)?;
        Ok(state["forwarder"]["pid"].as_i64().map(|pid| pid as i32))
    };
    let first = pid()?.ok_or("nothing decapsulates")?;
    assert_eq!(forwarders(&name.0)?.len(), 1);
    kill(Pid::from_raw(first), Signal::SIGKILL)?;
    let begun = Instant::now();
    while !name.run_well(&["status"])?.contains("nor serves tiny queues of switches: its process") {
        assert!(begun.elapsed() < Duration::from_secs(5), "it lives");
    }
    expect_forwarding(&name.0, false)?;
    assert!(name.run_well(&up)?.contains("is up already"));
    assert_ne!(pid()?, Some(first));
    let status = name.run_well(&["status"])?;
    assert!(status.contains("trim to 128 bytes, with DSCP 44"), "{status}");
    assert!(!status.contains("nothing decapsulates"), "{status}");
    expect_forwarding(&name.0, true)?;

    Command::new("ip").args(["netns", "delete", &format!("{}-s2", name.0)]).status()?;
    assert!(name.run_well(&up)?.contains("is up: 2 hosts"));
    assert_eq!(remains(&name.0).len(), 2 + 2 + 2 + 1);
    let begun = Instant::now();
    while forwarders(&name.0)?.len() != 1 {
        assert!(begun.elapsed() < Duration::from_secs(5), "the one of the old namespaces lives");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Sends a packet with the fabric's DSCP from its first host to the second. Expects that it
/// arrives, or that it does not.
fn expect_forwarding(name: &str, expected: bool) -> Result<(), Failed> {
    let fabric = Fabric::attach(name)?;
    let from = fabric.host(1)?;
    let to = fabric.host(2)?;
    let sender = bound(&from, false, 0)?;
    let receiver = bound(&to, false, PORT)?;
    SockRef::from(&sender).set_tos_v4(43 << 2)?;
    sender.send_to(b"marked", (to.v4(), PORT))?;
    let arrived = if expected { arrivals(&receiver, 1) } else { survivors(&receiver)? };
    assert_eq!(arrived, usize::from(expected), "with the DSCP, through emulated queues");
    Ok(())
}

/// The processes that forward for a fabric.
fn forwarders(name: &str) -> Result<Vec<String>, Failed> {
    let processes = fs::read_dir("/proc")?.flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| text(&line).replace('\0', " "));
    Ok(lines.filter(|line| line.contains(&format!("forward --name {name} "))).collect())
}

pub(crate) fn a_signal_during_up_leaves_nothing_behind() -> Result<(), Failed> {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let name = Name::new("b");
        let mut up = name.command(&["up", "--hosts", "100", "--leaves", "8", "--spines", "8"]);
        let up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let begun = Instant::now();
        while remains(&name.0).len() < 50 {
            assert!(begun.elapsed() < Duration::from_secs(10), "it builds nothing");
            thread::yield_now();
        }
        kill(Pid::from_raw(up.id() as i32), signal)?;
        let output = up.wait_with_output()?;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert_eq!(said, "cbrst-testbed: interrupted; what had been built was taken down again\n");
        assert_eq!(remains(&name.0), [""; 0]);
    }
    Ok(())
}

/// Copies an executable, by another process: one that this process writes cannot be executed for as long as a child
/// that another test is just starting has it open, too.
fn install(from: &Path, to: &Path) -> Result<(), Failed> {
    let done = Command::new("install").args(["-m", "755"]).args([from, to]).status()?;
    assert!(done.success());
    Ok(())
}

pub(crate) fn a_failed_step_leaves_nothing_behind() -> Result<(), Failed> {
    let name = Name::new("c");
    let directory = std::env::temp_dir().join(&name.0);
    fs::create_dir_all(&directory)?;
    let script = directory.join("script");
    fs::write(&script, "#!/bin/sh\necho 'not today' >&2\nexit 1\n")?;
    install(&script, &directory.join("ethtool"))?;
    let path = format!("{}:{}", directory.display(), std::env::var("PATH")?);
    let output = name.command(&["up", "--hosts", "2"]).env("PATH", path).output();
    fs::remove_dir_all(&directory)?;
    let output = output?;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("ethtool in ") && said.contains("not today"), "{said}");
    assert_eq!(remains(&name.0), [""; 0]);
    Ok(())
}

pub(crate) fn without_root_the_error_is_one_line() -> Result<(), Failed> {
    let name = Name::new("d");
    // Other users may execute it.
    let copy = std::env::temp_dir().join(&name.0);
    install(Path::new(PROGRAM), &copy)?;
    let output =
        Command::new(&copy).args(["up", "--name", &name.0]).uid(65_534).gid(65_534).output();
    fs::remove_file(&copy)?;
    let output = output?;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("lacks CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN"), "{said}");
    Ok(())
}

pub(crate) fn the_error_names_invalid_arguments() -> Result<(), Failed> {
    let name = Name::new("e");
    name.run_well(&["up", "--hosts", "2", "--spines", "1"])?;
    for (args, expected) in [
        (&["up", "--spines", "0"][..], "spines 0: expected 1 to 64"),
        (&["up", "--trim", "44"], "expected bytes and a DSCP, such as 128:44"),
        (&["up", "--trim", "128:43"], "trim.dscp 43: expected different from other DSCPs"),
        (&["up", "--rate", "fast"], "expected bits per second, such as 100mbit"),
        (&["fail", "s2"], "s2: this fabric has s1 to s1"),
        (&["fail", "h1-s1"], "h1-s1: no such link"),
        (&["fail", "x1"], "node x1: expected h1, l1 or s1"),
        (&["loss", "l1-s1", "101"], "expected a percentage, 0 to 100"),
        (&["exec", "h3", "--", "true"], "h3: this fabric has h1 to h2"),
    ] {
        let output = name.run(args)?;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    let page = Command::new(PROGRAM).args(["--generate", "man"]).output()?;
    assert!(page.status.success(), "{}", text(&page.stderr));
    assert!(text(&page.stdout).contains("THE SUBCOMMAND UP"));
    let output = Command::new(PROGRAM).args(["up", "--name", "a-b"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("name \"a-b\": expected 1 to 32 lower-case letters"));
    Ok(())
}
