//! An interrupted transfer resumes with the bytes that have not arrived.

use crate::common::*;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SIZE: usize = 12_345_678;
/// The least number of bytes that are not sent again, of those that the receiver has when one end is stopped: all but a
/// window of chunks.
const LEAST: u64 = 2_000_000;
/// A link on which a chunk has 100 kB, and the whole file takes longer than it takes to stop an end.
const SLOW: [&str; 4] = ["--capacity", "8M", "--deadline", "1"];

fn source() -> (TempDir, PathBuf) {
    let (dir, mut paths) = files(&[("file", &noise(SIZE, 1))]);
    (dir, paths.remove(0))
}

/// A file of a gibibyte with four blocks of data, two of which an interrupted transfer gets through.
fn sparse() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let file = fs::File::create(&path).unwrap();
    for (seed, at) in (1..).zip([0, 999_990, 700_000_000, (1 << 30) - 4096]) {
        file.write_all_at(&noise(4096, seed), at).unwrap();
    }
    (dir, path)
}

/// Whether two files have the same bytes.
fn are_same(one: &Path, other: &Path) -> bool {
    let [mut one, mut other] = [one, other].map(|path| fs::File::open(path).unwrap());
    let [mut these, mut those] = [(); 2].map(|()| vec![0; 1 << 20]);
    loop {
        let got = one.read(&mut these).unwrap();
        other.read_exact(&mut those[..got]).unwrap();
        if these[..got] != those[..got] {
            return false;
        }
        if got == 0 {
            return other.read(&mut those).unwrap() == 0;
        }
    }
}

/// The last line of a sender that was interrupted.
const CONTINUE: &str = "run the same command again to continue";

/// A sender of the file that has delivered more than three megabytes.
fn half_way(receiver: &Receiver, path: &Path) -> Running {
    let sending = receiver.start_sender(&SLOW, &[path]);
    wait_until("part of the file has arrived", || {
        let parts = receiver.partial();
        parts.iter().any(|path| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 3_000_000))
    });
    sending
}

/// Sends the file and returns what both ends report.
fn finish(receiver: Receiver, args: &[&str], path: &Path) -> (Value, Value, TempDir) {
    let sent = receiver.send(&[args, &["--json"]].concat(), &[path]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let here: Value = serde_json::from_slice(&sent.stdout).unwrap();
    receiver.running.signal(Signal::SIGTERM);
    let received = receiver.running.end();
    let text = String::from_utf8(received.stdout).unwrap();
    let there = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(are_same(&receiver.dir.path().join("file"), path));
    assert_eq!(entries(receiver.dir.path()), ["file"], "no part is left");
    (here, there, receiver.dir)
}

/// How many bytes were not sent again, if both ends agree on that.
fn resumed((here, there, _): &(Value, Value, TempDir)) -> u64 {
    for end in [here, there] {
        assert_eq!(end["outcome"], "done", "{end}");
        let all = end["bytes"].as_u64().unwrap() + end["resumed"].as_u64().unwrap();
        assert_eq!(all, SIZE as u64, "{end}");
    }
    assert_eq!(here["bytes"], there["bytes"]);
    // At least one packet for 1,452 bytes, and for each of several frames; few are sent twice.
    let packets = here["packets"].as_u64().unwrap();
    let bytes = here["bytes"].as_u64().unwrap();
    assert!(packets <= bytes / 1000 + 100, "{packets} packets for {bytes} bytes");
    here["resumed"].as_u64().unwrap()
}

#[test]
fn a_killed_sender_resumes() {
    let (_dir, path) = source();
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut receiver = Receiver::start(&["--deadline", "1", "--json"]);
        let sending = half_way(&receiver, &path);
        sending.signal(signal);
        let printed = sending.end().stderr;
        assert_eq!(
            printed.lines().last() == Some(CONTINUE),
            signal == Signal::SIGTERM,
            "{printed}"
        );
        // The receiver notices a killed sender only by its silence, and the next sender waits for that.
        if signal == Signal::SIGTERM {
            receiver.running.line("is kept");
        }
        assert!(receiver.names().is_empty());
        assert!(resumed(&finish(receiver, &[], &path)) >= LEAST);
    }
}

#[test]
fn a_killed_receiver_resumes() {
    let (_dir, path) = source();
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let receiver = Receiver::start(&[]);
        let sending = half_way(&receiver, &path);
        receiver.running.signal(signal);
        let sent = sending.end();
        assert_eq!(sent.code, Some(1));
        assert_eq!(sent.stderr.lines().last(), Some(CONTINUE), "{}", sent.stderr);
        let Receiver { running, dir, .. } = receiver;
        running.end();
        let receiver = Receiver::start_in(dir, &["--json"]);
        assert!(resumed(&finish(receiver, &[], &path)) >= LEAST, "{signal}");
    }
}

/// A receiver that has some megabytes of the file.
fn interrupted(path: &Path) -> Receiver {
    let mut receiver = Receiver::start(&["--json"]);
    let sending = half_way(&receiver, path);
    sending.signal(Signal::SIGTERM);
    sending.end();
    receiver.running.line("is kept");
    receiver
}

#[test]
fn only_a_matching_prefix_is_resumed() {
    let (_dir, path) = source();
    for (changed, least, most) in [(0, 0, 0), (1_500_000, 1_000_000, 1_500_000)] {
        let receiver = interrupted(&path);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(b"changed", changed).unwrap();
        drop(file);
        let resumed = resumed(&finish(receiver, &[], &path));
        assert!((least..=most).contains(&resumed), "{resumed}");
        fs::write(&path, noise(SIZE, 1)).unwrap();
    }
}

#[test]
fn no_resume_at_either_end_sends_the_whole_file() {
    let (_dir, path) = source();
    let receiver = interrupted(&path);
    assert_eq!(resumed(&finish(receiver, &["--no-resume"], &path)), 0);
    let mut receiver = Receiver::start(&["--no-resume"]);
    let sending = half_way(&receiver, &path);
    sending.signal(Signal::SIGTERM);
    sending.end();
    receiver.running.line("the other side was stopped");
    assert!(receiver.partial().is_empty());
    let sending = receiver.start_sender(&[&SLOW[..], &["--no-resume"]].concat(), &[&path]);
    wait_until("part of the file has arrived", || !receiver.partial().is_empty());
    sending.signal(Signal::SIGTERM);
    let printed = sending.end().stderr;
    assert!(!printed.contains(CONTINUE), "{printed}");
    receiver.running.line("the other side was stopped");
    assert!(receiver.stop().1.is_empty());
}

#[test]
fn an_existing_identical_file_is_not_sent_again() {
    let (_dir, path) = source();
    let receiver = Receiver::start(&["--json"]);
    let dir = finish(receiver, &[], &path).2;
    let receiver = Receiver::start_in(dir, &["--json"]);
    let (here, there, dir) = finish(receiver, &[], &path);
    assert_eq!((&here["bytes"], &there["bytes"]), (&0.into(), &0.into()));
    assert_eq!(here["digest"], there["digest"]);
    let receiver = Receiver::start_in(dir, &[]);
    let printed = receiver.send(&[], &[&path]).stderr;
    assert!(printed.contains("file: already there: 12.35 MB compared by digest in "), "{printed}");
    let Receiver { mut running, dir, .. } = receiver;
    running.line(": already there: 12.35 MB compared by digest in ");
    running.signal(Signal::SIGTERM);
    running.end();
    fs::write(&path, noise(SIZE, 2)).unwrap();
    let receiver = Receiver::start_in(dir, &[]);
    let sent = receiver.send(&[], &[&path]);
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("has a file of this name and keeps it"), "{}", sent.stderr);
    assert!(!sent.stderr.contains(CONTINUE), "{}", sent.stderr);
    let dir = receiver.dir;
    drop(receiver.running);
    for entry in entries(dir.path()).iter().filter(|name| name.starts_with(".cbrst-")) {
        fs::remove_dir_all(dir.path().join(entry)).unwrap();
    }
    let receiver = Receiver::start_in(dir, &["--overwrite", "--json"]);
    assert_eq!(resumed(&finish(receiver, &[], &path)), 0);
}

#[test]
fn holes_are_kept_even_after_an_interruption() {
    let (_dir, path) = sparse();
    let receiver = interrupted(&path);
    let allocated = |path: &Path| fs::metadata(path).unwrap().blocks() * 512;
    let most = 2 * allocated(&path);
    assert!(most < 1 << 20, "this file system has holes");
    assert!(receiver.partial().iter().map(|part| allocated(part)).sum::<u64>() <= most);
    let (here, _, dir) = finish(receiver, &[], &path);
    assert!(here["resumed"].as_u64().unwrap() >= LEAST);
    assert!(allocated(&dir.path().join("file")) <= most);
}

#[test]
fn zeros_of_files_without_holes_are_written() {
    let (_dir, paths) = files(&[("file", &[0; 3_000_000])]);
    let receiver = Receiver::start(&["--json"]);
    let dir = finish(receiver, &[], &paths[0]).2;
    let allocated = |path: &Path| fs::metadata(path).unwrap().blocks();
    assert!(allocated(&dir.path().join("file")) >= allocated(&paths[0]));
}

#[test]
fn wrong_bytes_of_an_earlier_attempt_do_not_remain_in_holes() {
    let (_dir, path) = source();
    let receiver = interrupted(&path);
    fs::remove_file(&path).unwrap();
    fs::File::create(&path).unwrap().set_len(SIZE as u64).unwrap();
    let (here, _, dir) = finish(receiver, &[], &path);
    assert_eq!(here["resumed"], 0);
    assert!(fs::metadata(dir.path().join("file")).unwrap().blocks() < 100);
}

/// Starts another receiver in the same directory.
fn beside(receiver: &Receiver, listen: &str) -> Running {
    let args = ["--insecure", "--listen", listen, "--out"];
    Running::start(command(RECV, &args).arg(receiver.dir.path()))
}

#[test]
fn another_receiver_in_the_same_directory_does_not_stop_the_first() {
    let (_dir, paths) = files(&[("a", b"1"), ("b", b"2"), ("c", b"3")]);
    let receiver = Receiver::start(&[]);
    let second = beside(&receiver, &receiver.addr).end();
    assert!(second.stderr.contains("another program has the port"), "{}", second.stderr);
    let sent = receiver.send(&[], &[&paths[0]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let second = listening(beside(&receiver, "127.0.0.1:0")).0;
    second.signal(Signal::SIGTERM);
    second.end();
    let sent = receiver.send(&[], &[&paths[1]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    // Nor does its user.
    for entry in entries(receiver.dir.path()).iter().filter(|name| name.contains("partial")) {
        fs::remove_dir(receiver.dir.path().join(entry)).unwrap();
    }
    let sent = receiver.send(&[], &[&paths[2]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(receiver.names(), ["a", "b", "c"]);
    assert_eq!(receiver.stop().1, ["a", "b", "c"], "no directory is left");
}

#[test]
fn parts_that_cannot_be_kept_are_announced_once_with_the_remedy() {
    let (_dir, paths) = files(&[("a", b"1"), ("b", b"2")]);
    let name = format!(".cbrst-partial.{}", nix::unistd::geteuid());
    for (is_directory, remedy) in [(true, "chmod 700 "), (false, "remove it")] {
        let dir = tempfile::tempdir().unwrap();
        let parts = dir.path().join(&name);
        if is_directory {
            fs::create_dir(&parts).unwrap();
            fs::set_permissions(&parts, Permissions::from_mode(0o750)).unwrap();
        } else {
            fs::write(&parts, "").unwrap();
        }
        let mut receiver = Receiver::start_in(dir, &[]);
        let line = receiver.running.line("interrupted transfers begin again");
        assert!(line.contains(parts.to_str().unwrap()) && line.contains(remedy), "{line}");
        assert_eq!(receiver.send(&[], &[&paths[0], &paths[1]]).code, Some(0));
        let (ended, left) = receiver.stop();
        assert_eq!(ended.stderr.matches("begin again").count(), 1, "{}", ended.stderr);
        assert_eq!(left, [&*name, "a", "b"]);
    }
}
