//! Files arrive as they were sent.

use crate::common::*;
use cloudburst_netem::{LinkConfig, Loss, Relay};
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_small_file_arrives_and_once_ends_the_receiver() {
    let (_dir, paths) = files(&[("hello.txt", b"hello")]);
    let receiver = Receiver::start(&["--once"]);
    let sent = receiver.send(&[], &[&paths[0]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(sent.stdout.is_empty());
    let Receiver { running, dir, .. } = receiver;
    let received = running.end();
    assert_eq!(received.code, Some(0), "{}", received.stderr);
    assert!(received.stdout.is_empty());
    assert_eq!(entries(dir.path()), ["hello.txt"]);
    assert_eq!(std::fs::read(dir.path().join("hello.txt")).unwrap(), b"hello");
}

#[test]
fn twenty_megabytes_arrive_byte_for_byte() {
    let bytes = noise(20_000_000, 1);
    let (_dir, paths) = files(&[("large", &bytes)]);
    let receiver = Receiver::start(&[]);
    let sent = receiver.send(&[], &[&paths[0]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(receiver.read("large") == bytes);
    assert_eq!(receiver.partial().len(), 0);
}

#[test]
fn several_files_of_all_kinds_of_lengths_arrive_in_one_run() {
    let chunk = 1 << 20;
    let lengths = [0, 1, 1000, chunk - 1, chunk, chunk + 1, 3 * chunk];
    let contents: Vec<_> = lengths.iter().map(|len| noise(*len, *len as u64)).collect();
    let names: Vec<_> = lengths.iter().map(|len| format!("file {len}")).collect();
    let listed = names.iter().map(String::as_str).zip(contents.iter().map(Vec::as_slice));
    let (_dir, paths) = files(&listed.collect::<Vec<_>>());
    let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let receiver = Receiver::start(&["--once"]);
    let sent = receiver.send(&["--paths", "ecmp:3"], &paths);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(receiver.names().len(), lengths.len());
    for (name, bytes) in names.iter().zip(&contents) {
        assert!(receiver.read(name) == *bytes, "{name}");
    }
    assert_eq!(receiver.running.end().code, Some(0));
}

#[test]
fn loopback_carries_jumbo_frames_unless_a_setting_forbids_them() {
    let (_dir, paths) = files(&[("a", &noise(30_000_000, 1))]);
    let receiver = Receiver::start(&[]);
    for (mtu, packets) in [("9000", 3_000..12_000), ("1400", 22_000..24_000)] {
        let sent =
            receiver.send(&["--json", "--no-resume", "--mtu", mtu, "--name", mtu], &[&paths[0]]);
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let report: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
        let sent = report["packets"].as_u64().unwrap() as f64;
        let needed = (sent / report["redundancy"].as_f64().unwrap()).round() as u64;
        assert!(packets.contains(&needed), "{report}");
    }
}

#[test]
fn senders_at_the_same_time_do_not_disturb_each_other() {
    let names = ["a", "b", "c", "d"];
    let contents: Vec<_> = (0..4).map(|seed| noise(3_000_000, seed + 9)).collect();
    let listed: Vec<_> = names.into_iter().zip(contents.iter().map(Vec::as_slice)).collect();
    let (_dir, paths) = files(&listed);
    let receiver = Receiver::start(&[]);
    let senders: Vec<_> = paths.iter().map(|path| receiver.start_sender(&[], &[path])).collect();
    for sender in senders {
        let sent = sender.end();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    }
    for (name, bytes) in names.iter().zip(&contents) {
        assert!(receiver.read(name) == *bytes, "{name}");
    }
}

#[test]
fn a_pipe_is_sent_from_standard_input_to_standard_output() {
    let bytes = noise(5_000_000, 2);
    let args = ["--listen", "127.0.0.1:0", "--stdout"];
    let (running, addr, key) = listening(Running::start(&mut command(RECV, &args)));
    let mut command = sender(&addr, &key, &["--quiet"], &[Path::new("-")]);
    let mut sending = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = sending.stdin();
    stdin.write_all(&bytes).unwrap();
    drop(stdin);
    let sent = sending.end();
    assert_eq!((sent.code, sent.stderr.as_str()), (Some(0), ""));
    let received = running.end();
    assert_eq!(received.code, Some(0), "{}", received.stderr);
    assert!(received.stdout == bytes, "data alone is on standard output");
}

#[test]
fn several_files_come_out_of_standard_output_one_after_the_other() {
    let (_dir, paths) = files(&[("a", b"one "), ("b", b"two")]);
    let args = ["--listen", "127.0.0.1:0", "--stdout", "--json"];
    let (running, addr, key) = listening(Running::start(&mut command(RECV, &args)));
    let sent = Running::start(&mut sender(&addr, &key, &[], &[&paths[0], &paths[1]])).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let received = running.end();
    assert_eq!(received.stdout, b"one two");
    let objects = received.stderr.lines().filter(|line| line.starts_with('{'));
    assert_eq!(objects.count(), 2, "{}", received.stderr);
}

#[test]
fn standard_input_and_single_files_may_be_given_a_name() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let receiver = Receiver::start(&[]);
    assert_eq!(receiver.send(&["--name", "b"], &[&paths[0]]).code, Some(0));
    assert_eq!(receiver.send(&[], &[Path::new("-")]).code, Some(0));
    assert_eq!(receiver.names(), ["b", "stdin"]);
    assert_eq!(receiver.read("b"), b"abc");
    assert_eq!(receiver.read("stdin"), b"");
}

#[test]
fn a_sender_whose_input_pauses_is_not_given_up() {
    let receiver = Receiver::start(&["--deadline", "1", "--once"]);
    let mut command =
        sender(&receiver.addr, &receiver.key, &["--deadline", "1"], &[Path::new("-")]);
    let mut sending = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = sending.stdin();
    stdin.write_all(b"before ").unwrap();
    // The pause is what is tested: longer than either end's patience.
    std::thread::sleep(core::time::Duration::from_millis(2500));
    stdin.write_all(b"after").unwrap();
    drop(stdin);
    let sent = sending.end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(receiver.read("stdin"), b"before after");
    assert_eq!(receiver.running.end().code, Some(0));
}

#[test]
fn a_file_arrives_despite_loss_in_both_directions() {
    let bytes = noise(3_000_000, 3);
    let (_dir, paths) = files(&[("file", &bytes)]);
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let known_as = front.local_addr().unwrap().to_string();
    let receiver = Receiver::start(&["--once", "--known-as", &known_as]);
    let lossy = LinkConfig { loss: Loss::Independent(0.05), ..LinkConfig::default() };
    let target = receiver.addr.parse().unwrap();
    let relay = Relay::start_at(front, target, vec![(lossy.clone(), lossy)], 5).unwrap();
    let args = ["--json", "--capacity", "200M"];
    let addr = relay.addr().to_string();
    let sent = Running::start(&mut sender(&addr, &receiver.key, &args, &[&paths[0]])).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(receiver.read("file") == bytes);
    let report: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert!(report["redundancy"].as_f64().unwrap() > 1.03, "{report}");
    let lost = (0..relay.paths()).map(|path| relay.stats(path).unwrap().0.lost).sum::<u64>();
    assert!(lost > 0, "the relay did lose packets");
    assert_eq!(receiver.running.end().code, Some(0));
}

#[test]
fn ipv6_addresses_and_host_names_work() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let args = ["--listen", "[::1]:0", "--out", out, "--insecure"];
    let (running, addr, _) = listening(Running::start(&mut command(RECV, &args)));
    let sent = Running::start(&mut sender(&addr, "", &["--insecure"], &[&paths[0]])).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    drop(running);
    // Where localhost is both ::1 and 127.0.0.1, the one that listens is found.
    let receiver = Receiver::start(&[]);
    let named = receiver.addr.replace("127.0.0.1", "localhost");
    let sent = Running::start(&mut sender(&named, &receiver.key, &[], &[&paths[0]])).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
}

#[test]
fn a_dual_stack_receiver_shows_ipv4_peers_as_ipv4() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a"), "other").unwrap();
    let args = ["--listen", "[::]:0", "--insecure", "--json", "--out"];
    let mut receiver = command(RECV, &args);
    let (mut running, addr, _) = listening(Running::start(receiver.arg(dir.path())));
    let addr = addr.replace("[::]", "127.0.0.1");
    let send = |name: &str| {
        let args = ["--insecure", "--name", name];
        Running::start(&mut sender(&addr, "", &args, &[&paths[0]])).end().code
    };
    assert_eq!((send("a"), send("b")), (Some(1), Some(0)));
    let key = "00".repeat(32);
    let args = ["--deadline", "0.5"];
    let sent = Running::start(&mut sender(&addr, &key, &args, &[&paths[0]])).end();
    assert_eq!(sent.code, Some(1));
    running.line("a sender from 127.0.0.1:");
    running.signal(Signal::SIGTERM);
    let ended = running.end();
    assert_eq!(ended.stderr.matches(" from 127.0.0.1:").count(), 3, "{}", ended.stderr);
    let object: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(object["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{object}");
}

#[test]
fn keys_are_replaced_at_one_end_after_the_other() {
    let old = "01".repeat(32);
    let new = "02".repeat(32);
    let other = "03".repeat(32);
    let (_keys, keys) = files(&[("old", old.as_bytes()), ("new", new.as_bytes())]);
    let old_file = keys[0].to_str().unwrap();
    let new_file = keys[1].to_str().unwrap();
    let (_dir, paths) = files(&[("file", &noise(300_000, 6))]);
    let start = |first, second| {
        Receiver::start(&["--overwrite", "--key-file", first, "--also-accept", second])
    };
    for (first, second) in [(old_file, new_file), (new_file, old_file)] {
        let receiver = start(first, second);
        for (key, code) in [(&old, 0), (&new, 0), (&other, 1)] {
            let args = ["--deadline", if code == 0 { "60" } else { "1" }];
            let sent = Running::start(&mut sender(&receiver.addr, key, &args, &[&paths[0]])).end();
            assert_eq!(sent.code, Some(code), "{}", sent.stderr);
        }
    }
}

/// The code in a line such as "the code is 123-456; ...".
fn code_in(line: &str) -> String {
    let (_, rest) = line.split_once("the code is ").expect("a line with a code");
    rest[..7].to_owned()
}

#[test]
fn a_code_makes_a_key_for_one_sender_and_is_void_after_a_wrong_guess() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let mut receiver =
        Running::start(&mut command(RECV, &["--pair", "--listen", "127.0.0.1:0", "--out", out]));
    let first = code_in(&receiver.line("the code is "));
    let line = receiver.line("cbrst-send --pair - ");
    let addr = line.split_whitespace().nth(3).unwrap();
    let send = |code: &str| {
        let args = ["--pair", "-", addr, paths[0].to_str().unwrap()];
        let mut sending = Running::start(command(SEND, &args).stdin(Stdio::piped()));
        writeln!(sending.stdin(), "{code}").unwrap();
        sending.end()
    };
    let wrong = if first == "000-000" { "000-001" } else { "000-000" };
    let guessed = send(wrong);
    assert_eq!(guessed.code, Some(1));
    assert!(guessed.stderr.contains("has another code"), "{}", guessed.stderr);
    let second = code_in(&receiver.line_but("the code is ", &first));
    let sent = send(&second);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let ended = receiver.end();
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("used a wrong code, which ends this one: here is another"),
        "{}",
        ended.stderr
    );
    assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"abc");
    let late = send(&second);
    assert_eq!(late.code, Some(1));
    assert!(late.stderr.contains("cannot reach cbrst-recv --pair"), "{}", late.stderr);
}

#[test]
fn three_wrong_codes_end_the_receiver() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let mut receiver =
        Running::start(&mut command(RECV, &["--pair", "--listen", "127.0.0.1:0", "--out", out]));
    let mut last = "none".to_owned();
    for _ in 0..3 {
        let code = code_in(&receiver.line_but("the code is ", &last));
        let line = receiver.line("cbrst-send --pair - ");
        let addr = line.split_whitespace().nth(3).unwrap();
        let wrong = if code == "000-000" { "000-001" } else { "000-000" };
        let args = ["--pair", wrong, addr, paths[0].to_str().unwrap()];
        assert_eq!(Running::start(&mut command(SEND, &args)).end().code, Some(1));
        last = code;
    }
    let ended = receiver.end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("3 wrong codes were tried"), "{}", ended.stderr);
    assert_eq!(entries(dir.path()), [""; 0]);
}

/// A `cbrst-recv` that a service manager has handed a socket.
fn activated(socket: impl Into<OwnedFd>, args: &[&str]) -> Command {
    let script = "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"";
    let mut activated = command("sh", &[&["-c", script, RECV], args].concat());
    activated.env("CBRST_KEY", "07".repeat(32)).stdin(Stdio::from(socket.into()));
    activated
}

#[test]
fn packets_wait_in_an_activated_socket_while_the_receiver_restarts() {
    let (_dir, paths) = files(&[("a", &noise(300_000, 21))]);
    let dir = tempfile::tempdir().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    let args = ["--listen", &addr, "--out", dir.path().to_str().unwrap(), "--once"];
    let start = || Running::start(&mut activated(socket.try_clone().unwrap(), &args));
    let mut first = start();
    first.line(&format!("listening on {addr}"));
    first.signal(Signal::SIGTERM);
    assert_eq!(first.end().code, Some(130));
    let sending = Running::start(&mut sender(&addr, &"07".repeat(32), &[], &[&paths[0]]));
    wait_until("a packet waits", || socket.peek(&mut [0; 8]).is_ok());
    let second = start();
    let sent = sending.end();
    assert_eq!((sent.code, second.end().code), (Some(0), Some(0)), "{}", sent.stderr);
    assert!(!sent.stderr.contains("no receiver listens"), "{}", sent.stderr);
    assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), noise(300_000, 21));
}

#[test]
fn unfit_activated_sockets_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = bind();
    let stream = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    let udp = || socket.try_clone().unwrap().into();
    let file = || File::open(dir.path()).unwrap().into();
    let cases: [(OwnedFd, &[&str], &str); 5] = [
        (stream.into(), &["--listen", &addr], "ListenDatagram="),
        (file(), &["--listen", &addr], "ListenDatagram="),
        (udp(), &["--listen", "127.0.0.1:7999"], "at 127.0.0.1:7999, and the sockets"),
        (
            udp(),
            &["--listen", &addr, "--paths", "ecmp:1x2"],
            "one socket for each of its addresses",
        ),
        (udp(), &["--listen", &addr, "--pair"], "drop --pair"),
    ];
    for (descriptor, args, text) in cases {
        let mut receiver = activated(descriptor, args);
        if args.contains(&"--pair") {
            receiver.env_remove("CBRST_KEY");
        }
        let ended = Running::start(receiver.current_dir(dir.path())).end();
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{args:?}: {}", ended.stderr);
    }
    assert_eq!(entries(dir.path()), [""; 0]);
}
