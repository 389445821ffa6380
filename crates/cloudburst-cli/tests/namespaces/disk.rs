//! A disk of 1 MB, in a mount namespace of its own: both end with the receiver.

use crate::common::*;
use libtest_mimic::Failed;
use std::path::Path;
use std::process::Command;

/// A program in a mount namespace where `out` is a file system of 1 MB.
fn in_namespace(out: &str, args: &[&str]) -> Command {
    let script = r#"mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", out]).args(args);
    command
}

/// Whether a file system may be mounted here; else why not.
pub(crate) fn available() -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let out = dir.path().to_str().ok_or("the temporary directory is not UTF-8")?;
    let mounted = in_namespace(out, &["true"]).output();
    let output = mounted.map_err(|error| format!("needs `unshare`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(format!("no file system may be mounted here, needs root: {}", printed.trim()))
}

pub(crate) fn a_full_disk_is_named_and_nothing_half_written_remains() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().to_str().ok_or("the temporary directory is not UTF-8")?;
    let args = [RECV, "--listen", "127.0.0.1:0", "--out", out];
    let (running, addr, key) =
        listening(Running::start(in_namespace(out, &args).env_remove("CBRST_KEY")));
    let bytes = noise(3_000_000, 5);
    let (_dir, paths) = files(&[("large", &bytes), ("small", b"fits")]);
    let sent = Running::start(&mut sender(&addr, &key, &[], &[&paths[0], &paths[1]])).end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("disk is full") && sent.stderr.contains("make room"));
    let inside = format!("/proc/{}/root{out}", running.id());
    let mut names = entries(Path::new(&inside));
    names.retain(|name| !name.starts_with(".cbrst-"));
    assert_eq!(names, ["small"], "the room was freed, and the next file has it");
    Ok(())
}
