//! An end stops, is stopped, or falls silent: the other end notices, and nothing is left behind.

use crate::common::*;
use nix::sys::signal::Signal;
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, Instant};

/// A transfer that has begun and will not end by itself: its input stays open.
fn hanging(receiver: &Receiver, args: &[&str]) -> (Running, ChildStdin) {
    let mut command = sender(&receiver.addr, &receiver.key, args, &[Path::new("-")]);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = running.stdin();
    stdin.write_all(&noise(2_500_000, 6)).unwrap();
    wait_until("part of the file has arrived", || {
        let partial = receiver.partial();
        partial.iter().any(|path| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0))
    });
    (running, stdin)
}

#[test]
fn a_sender_that_is_killed_leaves_nothing_at_the_receiver() {
    let mut receiver = Receiver::start(&["--deadline", "1"]);
    let (sending, _stdin) = hanging(&receiver, &[]);
    sending.signal(Signal::SIGKILL);
    receiver.running.line("heard nothing for 1 s");
    wait_until("the part is removed", || receiver.partial().is_empty());
    let (ended, left) = receiver.stop();
    assert_eq!(ended.code, Some(130));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn once_ends_with_1_when_its_sender_is_killed() {
    let receiver = Receiver::start(&["--deadline", "1", "--once"]);
    let (sending, _stdin) = hanging(&receiver, &[]);
    sending.signal(Signal::SIGKILL);
    let Receiver { running, dir, .. } = receiver;
    assert_eq!(running.end().code, Some(1));
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn a_sender_that_is_stopped_ends_its_transfer_at_once() {
    // A patience so long that only a failing test would wait it out.
    let mut receiver = Receiver::start(&["--deadline", "300"]);
    let (sending, _stdin) = hanging(&receiver, &["--deadline", "300"]);
    sending.signal(Signal::SIGTERM);
    let ended = sending.end();
    assert_eq!(ended.code, Some(130));
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
    receiver.running.line("the other side was stopped");
    assert!(receiver.partial().is_empty());
    assert!(receiver.names().is_empty());
}

#[test]
fn a_receiver_that_is_stopped_removes_its_parts_and_tells_its_senders() {
    let receiver = Receiver::start(&[]);
    let (sending, _stdin) = hanging(&receiver, &["--deadline", "300"]);
    let (ended, left) = receiver.stop();
    assert_eq!(ended.code, Some(130));
    assert!(left.is_empty(), "{left:?}");
    let sent = sending.end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("the other side was stopped"), "{}", sent.stderr);
}

#[test]
fn ctrl_c_at_the_receiver_removes_its_parts() {
    let receiver = Receiver::start(&[]);
    let (_sending, _stdin) = hanging(&receiver, &[]);
    receiver.running.signal(Signal::SIGINT);
    let Receiver { running, dir, .. } = receiver;
    assert_eq!(running.end().code, Some(130));
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn a_receiver_keeps_ignoring_the_signals_that_nohup_and_background_jobs_ignore() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--ignore-signal=INT,HUP", RECV, "--listen", "127.0.0.1:0", "--out"];
    let mut command = command("env", &args);
    let (running, addr, key) = listening(Running::start(command.arg(dir.path())));
    let receiver = Receiver { running, addr, key, dir };
    receiver.running.signal(Signal::SIGINT);
    receiver.running.signal(Signal::SIGHUP);
    let (_dir, paths) = files(&[("a", b"abc")]);
    assert_eq!(receiver.send(&[], &[&paths[0]]).code, Some(0));
    let (ended, left) = receiver.stop();
    assert_eq!(ended.code, Some(130), "SIGTERM is not ignored: {}", ended.stderr);
    assert_eq!(left, ["a"]);
}

#[test]
fn a_receiver_that_is_killed_is_noticed_by_its_sender() {
    let receiver = Receiver::start(&[]);
    let (sending, mut stdin) = hanging(&receiver, &["--deadline", "1"]);
    receiver.running.signal(Signal::SIGKILL);
    let Receiver { running, dir, .. } = receiver;
    running.end();
    // The sender may well be gone before it has taken all of it.
    let _ = stdin.write_all(&noise(8_000_000, 7));
    let sent = sending.end();
    assert_eq!(sent.code, Some(1), "{}", sent.stderr);
    assert_eq!(sent.stderr.lines().count(), 1, "{}", sent.stderr);
    assert!(sent.stderr.contains("no receiver listens at"), "{}", sent.stderr);
    assert!(!dir.path().join("stdin").exists(), "nothing has its final name");
}

#[test]
fn a_killed_receiver_is_reported_long_before_the_deadline() {
    let receiver = Receiver::start(&[]);
    let (mut sending, mut stdin) = hanging(&receiver, &["--deadline", "300"]);
    receiver.running.signal(Signal::SIGKILL);
    let Receiver { running, addr, dir: _dir, .. } = receiver;
    running.end();
    stdin.write_all(&noise(2_500_000, 7)).unwrap();
    let line = sending.line("no receiver listens at ");
    assert!(line.contains(&addr) && line.contains("trying for 300 s in all"), "{line}");
    sending.signal(Signal::SIGTERM);
    let sent = sending.end();
    assert_eq!(sent.code, Some(130), "it was still trying");
    assert_eq!(sent.stderr.matches("no receiver listens").count(), 1, "{}", sent.stderr);
    assert!(!sent.stderr.contains("again to continue"), "a pipe cannot: {}", sent.stderr);
}

#[test]
fn a_silent_port_is_given_up_at_the_deadline_and_signals_are_handled_meanwhile() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let addr = silent.local_addr().unwrap().to_string();
    let args = ["--deadline", "3"];
    let deadline = Duration::from_secs(3);
    let start = Instant::now();
    let sending = Running::start(&mut sender(&addr, &"00".repeat(32), &args, &[&paths[0]]));
    // At the end it looks for a cause, by packets of one byte.
    while silent.recv(&mut [0; 2048]).unwrap() != 1 {}
    assert!(start.elapsed() < deadline, "the search is part of the deadline");
    sending.signal(Signal::SIGTERM);
    let sent = sending.end();
    assert_eq!(sent.code, Some(130), "{}", sent.stderr);
    assert!(sent.stderr.contains("interrupted"), "{}", sent.stderr);
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_is_reported_with_its_new_size() {
    let (_dir, paths) = files(&[("log", &noise(8_000_000, 8))]);
    let receiver = Receiver::start(&["--deadline", "300", "--no-resume"]);
    let args = ["--capacity", "16M", "--deadline", "300"];
    let sending = receiver.start_sender(&args, &[&paths[0]]);
    wait_until("part of the file has arrived", || !receiver.partial().is_empty());
    fs::OpenOptions::new().write(true).open(&paths[0]).unwrap().set_len(1000).unwrap();
    let sent = sending.end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("8000000 bytes and now has 1000:"), "{}", sent.stderr);
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_not_delivered() {
    let (_dir, paths) = files(&[("log", &noise(8_000_000, 8))]);
    let receiver = Receiver::start(&["--deadline", "300", "--no-resume"]);
    // Slow enough for the file to change before it was read.
    let args = ["--capacity", "16M", "--deadline", "300"];
    let sending = receiver.start_sender(&args, &[&paths[0]]);
    wait_until("part of the file has arrived", || !receiver.partial().is_empty());
    let mut log = fs::OpenOptions::new().append(true).open(&paths[0]).unwrap();
    log.write_all(b"one more line").unwrap();
    drop(log);
    let sent = sending.end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("8000000 bytes and now has 8000013"), "{}", sent.stderr);
    wait_until("the part is removed", || receiver.partial().is_empty());
    assert!(receiver.names().is_empty());
}

#[test]
fn a_reader_of_standard_output_that_goes_away_ends_the_transfer() {
    let args = ["--listen", "127.0.0.1:0", "--stdout"];
    let script = r#""$@" | head -c 1000 > /dev/null"#;
    let mut command = command("sh", &["-c", script, "sh", RECV]);
    let (running, addr, key) = listening(Running::start(command.args(args)));
    let (_dir, paths) = files(&[("large", &noise(5_000_000, 9))]);
    let sent = Running::start(&mut sender(&addr, &key, &[], &[&paths[0]])).end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("Broken pipe"), "{}", sent.stderr);
    running.end();
}

#[test]
fn a_reader_of_standard_output_that_pauses_is_waited_for() {
    // Longer than either end's patience, and more bytes than either end buffers.
    let script = r#""$@" | (sleep 4; cat)"#;
    let args = ["-c", script, "sh", RECV, "--listen", "127.0.0.1:0", "--stdout", "--deadline", "1"];
    let (running, addr, key) = listening(Running::start(&mut command("sh", &args)));
    let bytes = noise(40_000_000, 10);
    let (_dir, paths) = files(&[("large", &bytes)]);
    let args = ["--deadline", "1"];
    let sent = Running::start(&mut sender(&addr, &key, &args, &[&paths[0]])).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(running.end().stdout == bytes, "what came out is what went in");
}

#[test]
fn a_sender_gets_signs_of_life_while_its_file_is_stored() {
    // With its own patience alone, the receiver would send a sign of life every 75 seconds.
    let script = r#""$@" | (sleep 3; cat)"#;
    let args = ["-c", script, "sh", RECV, "--listen", "127.0.0.1:0", "--stdout"];
    let (running, addr, key) =
        listening(Running::start(command("sh", &args).args(["--deadline", "300"])));
    let bytes = noise(3_000_000, 11);
    let (_dir, paths) = files(&[("file", &bytes)]);
    let args = ["--deadline", "1"];
    let sent = Running::start(&mut sender(&addr, &key, &args, &[&paths[0]])).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(running.end().stdout == bytes, "what came out is what went in");
}
