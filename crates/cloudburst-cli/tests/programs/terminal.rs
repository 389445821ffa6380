//! What users see on a terminal: progress, and names with characters that terminals act on.

use crate::common::*;
use core::num::NonZero;
use nix::pty::{Winsize, openpty};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

const ROWS: NonZero<u16> = NonZero::new(24).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(80).unwrap();

/// A program whose standard error is a terminal.
struct Seen {
    child: Child,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: JoinHandle<Vec<u8>>,
}

impl Seen {
    fn start(mut command: Command) -> Self {
        let size =
            Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(Some(&size), None).unwrap();
        let command = command.env("TERM", "xterm").stdout(Stdio::null()).stderr(terminal.slave);
        let child = command.spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let mut master = File::from(terminal.master);
        let shared = screen.clone();
        let reader = thread::spawn(move || {
            let mut all = Vec::new();
            let mut some = [0; 4096];
            // The end is an error: no process is left at the other side.
            while let Ok(got @ 1..) = master.read(&mut some) {
                all.extend_from_slice(&some[..got]);
                shared.lock().unwrap().process(&some[..got]);
            }
            all
        });
        Self { child, screen, reader }
    }

    /// The lines on the screen that are not empty.
    fn lines(&self) -> Vec<String> {
        let screen = self.screen.lock().unwrap();
        let rows = screen.screen().rows(0, COLUMNS.get()).filter(|row| !row.trim().is_empty());
        rows.collect()
    }

    /// Its exit code, what the screen shows in the end, and all that was written.
    fn end(mut self) -> (Option<i32>, Vec<String>, Vec<u8>) {
        let mut status = None;
        wait_until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let reader = std::mem::replace(&mut self.reader, thread::spawn(Vec::new));
        let all = reader.join().unwrap();
        (status.unwrap().code(), self.lines(), all)
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `cbrst-send` of a file that does not end, under a name.
fn endless(receiver: &Receiver, args: &[&str], name: &str) -> (Seen, std::process::ChildStdin) {
    let args = [args, &["--deadline", "300", "--name", name]].concat();
    let mut command = sender(&receiver.addr, &receiver.key, &args, &[Path::new("-")]);
    command.stdin(Stdio::piped());
    let mut seen = Seen::start(command);
    let stdin = seen.child.stdin.take().unwrap();
    (seen, stdin)
}

#[test]
fn a_file_has_one_progress_line_which_is_removed_at_the_end() {
    let receiver = Receiver::start(&["--deadline", "300"]);
    let name = "a name that is so long that it would not leave room for anything else.tar.gz";
    let (seen, mut stdin) = endless(&receiver, &[], name);
    stdin.write_all(&noise(3_000_000, 1)).unwrap();
    let rate = |line: &String| line.contains("MB") && line.contains("/s");
    wait_until("there is a rate", || seen.lines().iter().any(rate));
    let lines = seen.lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("a name that is so long"), "{lines:#?}");
    wait_until("it says that nothing moves", || {
        seen.lines().iter().any(|line| line.contains("stalled 2 s"))
    });
    drop(stdin);
    let (code, lines, _) = seen.end();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(lines.len() == 1 && lines[0].contains("packets sent for each"), "{lines:#?}");
}

#[test]
fn several_files_leave_one_line_each() {
    let (_dir, paths) = files(&[("a", &noise(300_000, 2)), ("b", b"b"), ("c", b"")]);
    let receiver = Receiver::start(&[]);
    let paths: Vec<&Path> = paths.iter().map(|path| &**path).collect();
    let (code, lines, _) = Seen::start(sender(&receiver.addr, &receiver.key, &[], &paths)).end();
    let text = lines.join("");
    assert_eq!(code, Some(0), "{lines:#?}");
    for part in ["a: 300.00 kB in ", "b: 1 B in ", "c: 0 B in "] {
        assert_eq!(text.matches(part).count(), 1, "{lines:#?}");
    }
    assert!(!text.contains("MB/s 0:"), "{lines:#?}");
}

#[test]
fn quiet_draws_nothing() {
    let receiver = Receiver::start(&["--deadline", "300"]);
    let (seen, mut stdin) = endless(&receiver, &["-q"], "a");
    stdin.write_all(&noise(3_000_000, 3)).unwrap();
    drop(stdin);
    let (code, lines, all) = seen.end();
    assert_eq!((code, lines, String::from_utf8(all).unwrap()), (Some(0), vec![], String::new()));
}

#[test]
fn control_characters_are_escaped_wherever_they_are_printed() {
    let receiver = Receiver::start(&[]);
    let (_dir, paths) = files(&[("a", b"abc"), ("bell\x07\u{9b}2J", b"abc")]);
    let key = &receiver.key;
    let hidden = "x\x1b[2J\u{202e}";
    let commands = [
        // In errors of clap, of the plan, and of the run.
        sender(&receiver.addr, key, &["--rate", hidden], &[&paths[0]]),
        sender(&receiver.addr, key, &["--key-file", hidden], &[&paths[0]]),
        sender(&receiver.addr, key, &[], &[Path::new(hidden)]),
        sender(&receiver.addr, key, &[], &[&paths[1]]),
        sender(&receiver.addr, key, &["--name", "ok"], &[&paths[1]]),
        sender(&format!("{hidden}:1"), key, &[], &[&paths[0]]),
        sender(&receiver.addr, key, &[], &[Path::new(OsStr::from_bytes(b"\xff\x1b"))]),
        command(RECV, &["--out", hidden]),
        command(DOCTOR, &[&format!("{hidden}:1"), "--insecure"]),
    ];
    for command in commands {
        let what = format!("{command:?}");
        let ended = Running::start(&mut { command }).end();
        let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!ended.stderr.contains(acts), "{what}: {:?}", ended.stderr);
        assert!(ended.stderr.contains("\\u{"), "{what}: {:?}", ended.stderr);
    }
}

#[test]
fn the_code_is_prompted_for_on_a_terminal() {
    let terminal = openpty(None, None).unwrap();
    let (_dir, paths) = files(&[("a", b"abc")]);
    // No receiver listens there.
    let args = ["--pair", "-", "127.0.0.1:9", paths[0].to_str().unwrap()];
    let mut sending = command(SEND, &args);
    File::from(terminal.master.try_clone().unwrap()).write_all(b"123-456\n").unwrap();
    let ended = Running::start(sending.stdin(Stdio::from(terminal.slave))).end();
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.starts_with("the code that cbrst-recv --pair shows: "),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("cannot reach cbrst-recv --pair"), "{}", ended.stderr);
}
