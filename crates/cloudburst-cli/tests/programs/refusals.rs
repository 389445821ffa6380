//! Failures are reported in one line, with cause and remedy, and leave nothing behind.

use crate::common::*;
use cloudburst_cli::protocol::{Body, Frame, Reason};
use cloudburst_net::{Config, Endpoint, PathMap, Security, Tuning};
use cloudburst_netem::Relay;
use nix::sys::signal::Signal;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn small() -> (tempfile::TempDir, PathBuf) {
    let (dir, mut paths) = files(&[("file", b"content")]);
    (dir, paths.remove(0))
}

#[test]
fn another_key_is_named_as_the_likely_cause_at_both_ends() {
    let (_dir, path) = small();
    let mut receiver = Receiver::start(&[]);
    let other = "12".repeat(32);
    let args = ["--deadline", "1"];
    let sent = Running::start(&mut sender(&receiver.addr, &other, &args, &[&path])).end();
    assert_eq!(sent.code, Some(1));
    assert_eq!(sent.stderr.lines().count(), 1, "{}", sent.stderr);
    assert!(sent.stderr.contains("no answer") && sent.stderr.contains("another key"));
    receiver.running.line("a sender from 127.0.0.1:");
    receiver.running.line("tried with another key, and was not answered");
    let (_, left) = receiver.stop();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn another_key_is_suspected_long_before_the_deadline() {
    let (_dir, path) = small();
    let receiver = Receiver::start(&[]);
    let other = "12".repeat(32);
    let args = ["--deadline", "86400"];
    let mut sending = Running::start(&mut sender(&receiver.addr, &other, &args, &[&path]));
    let line = sending.line("no answer from ");
    assert!(line.contains("another key") && line.contains("cbrst-doctor"), "{line}");
    sending.signal(Signal::SIGTERM);
    assert_eq!(sending.end().code, Some(130), "it was still trying");
}

#[test]
fn a_sender_without_a_key_cannot_reach_a_receiver_with_one() {
    let (_dir, path) = small();
    let receiver = Receiver::start(&[]);
    let args = ["--deadline", "1", "--insecure"];
    let sent = Running::start(&mut sender(&receiver.addr, "", &args, &[&path])).end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("--insecure"), "{}", sent.stderr);
    assert!(receiver.names().is_empty());
}

#[test]
fn a_closed_port_is_distinguished_from_a_silent_one() {
    let (_dir, path) = small();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |addr: &str| {
        let start = Instant::now();
        let args = ["--deadline", "1"];
        let sent = Running::start(&mut sender(addr, &"00".repeat(32), &args, &[&path])).end();
        assert_eq!(sent.code, Some(1));
        // The deadline, the probe, and a busy machine.
        assert!(start.elapsed().as_secs() < 10);
        sent.stderr
    };
    let printed = send(&silent.local_addr().unwrap().to_string());
    assert!(printed.contains("no answer from") && printed.contains("firewall"), "{printed}");
    let printed = send(CLOSED);
    assert!(
        printed.contains("no receiver listens at") && printed.contains("start cbrst-recv"),
        "{printed}"
    );
}

#[test]
fn a_receiver_behind_nat_that_lacks_known_as_is_reported_with_the_remedy() {
    let (_dir, path) = small();
    let mut receiver = Receiver::start(&[]);
    let links = vec![Default::default()];
    let relay = Relay::start(receiver.addr.parse().unwrap(), links, 1).unwrap();
    // The relay does not keep the DSCP, and the endpoints would warn of that.
    let addr = relay.addr().to_string();
    let args = ["--quiet", "--deadline", "1"];
    let sent = Running::start(&mut sender(&addr, &receiver.key, &args, &[&path])).end();
    assert_eq!(sent.code, Some(1));
    assert_eq!(sent.stderr.lines().count(), 1, "{}", sent.stderr);
    let remedy = format!("cbrst-recv --known-as {addr}");
    assert!(sent.stderr.contains(&remedy), "{}", sent.stderr);
    let mut examine = command(DOCTOR, &["--ports", "1", "--deadline", "1", &addr]);
    let examined = Running::start(examine.env("CBRST_KEY", &receiver.key)).end();
    assert_eq!(examined.code, Some(1));
    assert!(examined.stderr.contains(&remedy), "{}", examined.stderr);
    receiver.running.line("name the one it uses by --known-as");
    let (ended, left) = receiver.stop();
    assert_eq!(ended.stderr.matches("--known-as").count(), 1, "once: {}", ended.stderr);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_receiver_of_another_version_is_named_with_both() {
    let (_dir, path) = small();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    let key = [7; 32];
    let args = ["--deadline", "1"];
    let hex = "07".repeat(32);
    let sending = Running::start(&mut sender(&addr, &hex, &args, &[&path]));
    // VERSION, which is the same in all versions: the HELLO's nonce, and that 3 is spoken.
    let mac_key = blake3::derive_key("cloudburst hello", &key);
    let mut hello = [0; 2048];
    let (_, from) = socket.recv_from(&mut hello).unwrap();
    let mut answer = [&[0x0f, 1, 0, 0], &hello[4..12], &[4]].concat();
    let mac = blake3::keyed_hash(&mac_key, &answer);
    answer.extend_from_slice(&mac.as_bytes()[..16]);
    socket.send_to(&answer, from).unwrap();
    let sent = sending.end();
    assert_eq!(sent.code, Some(1));
    let expected = "speaks version 4 of the protocol, and this end version 3: upgrade this end";
    assert!(sent.stderr.contains(expected), "{}", sent.stderr);
}

#[test]
fn a_receiver_of_another_version_of_the_file_protocol_is_named_with_both() {
    let (_dir, path) = small();
    for answer in [1, 2] {
        let builder = Endpoint::builder().bind("127.0.0.1:0".parse().unwrap());
        let builder = builder.paths(PathMap::ecmp(1)).security(Security::trusted_network());
        let receiver = builder.build().unwrap();
        let addr = receiver.local_addr().to_string();
        let refuse = || {
            let (peer, transfer) = loop {
                let request = receiver.recv().wait_for(PATIENCE).unwrap().unwrap();
                let Frame { transfer, body } = Frame::decode(&request.bytes).unwrap();
                // The sender says BYE, too.
                if matches!(body, Body::Offer(_) | Body::Examine { .. }) {
                    break (request.peer, transfer);
                }
            };
            let body = Body::Failed(Reason::Version(1));
            receiver.send(peer, Frame { transfer, body }.encode_as(answer)).wait().unwrap();
        };
        let expected =
            "speaks version 1 of the file protocol, this program 2: upgrade the older one";
        let args = ["--insecure", "--deadline", "5"];
        let sending = Running::start(&mut sender(&addr, "", &args, &[&path]));
        refuse();
        let sent = sending.end();
        assert_eq!(sent.code, Some(1));
        assert!(sent.stderr.contains(expected), "{}", sent.stderr);
        let args = ["--insecure", "--ports", "1", "--deadline", "5", &addr];
        let examining = Running::start(&mut command(DOCTOR, &args));
        refuse();
        let examined = examining.end();
        assert_eq!(examined.code, Some(1));
        assert!(examined.stderr.contains(expected), "{}", examined.stderr);
    }
}

#[test]
fn a_receiver_whose_application_reads_nothing_is_reported() {
    let (_dir, path) = small();
    let endpoint = |config| {
        let builder = Endpoint::builder().bind("127.0.0.1:0".parse().unwrap());
        let builder = builder.paths(PathMap::ecmp(1)).security(Security::trusted_network());
        builder.config(config).build().unwrap()
    };
    let receiver = endpoint(Config {
        tuning: Tuning { receive_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    });
    let addr = receiver.local_addr();
    endpoint(Config::default()).send(addr, "the only one that fits").wait().unwrap();
    let args = ["--insecure", "--deadline", "1"];
    let sent = Running::start(&mut sender(&addr.to_string(), "", &args, &[&path])).end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("the receiver had no capacity"), "{}", sent.stderr);
}

#[test]
fn existing_files_are_kept_unless_the_receiver_overwrites() {
    let (_dir, path) = small();
    let receiver = Receiver::start(&[]);
    fs::write(receiver.dir.path().join("file"), "old").unwrap();
    let sent = receiver.send(&[], &[&path]);
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("--name") && sent.stderr.contains("--overwrite"));
    assert_eq!(receiver.read("file"), b"old");
    assert_eq!(receiver.partial().len(), 0);

    let receiver = Receiver::start(&["--overwrite"]);
    fs::write(receiver.dir.path().join("file"), "old").unwrap();
    assert_eq!(receiver.send(&[], &[&path]).code, Some(0));
    assert_eq!(receiver.read("file"), b"content");
}

#[test]
fn path_maps_that_need_a_privilege_are_refused_without_it_in_one_line() {
    let (_dir, path) = small();
    let receiver = Receiver::start(&["--overwrite"]);
    for (map, works) in [
        ("ecmp:4", true),
        ("ecmp:2x2", true),
        ("xpath:127.0.0.1,127.0.0.2", true),
        ("bounce:127.0.0.2", false),
        ("xpath-ipip:127.0.0.2", false),
    ] {
        let send = sender(&receiver.addr, &receiver.key, &["--paths", map], &[&path]);
        let sent = Running::start(&mut without(&["net_raw"], &send)).end();
        assert_eq!(sent.code, Some(i32::from(!works)), "{map}: {}", sent.stderr);
        if !works {
            assert_eq!(
                sent.stderr,
                format!(
                    "cbrst-send: path map `{map}` needs a raw socket, and the system refuses one: \
                     give the program CAP_NET_RAW (`setcap cap_net_raw+ep PROGRAM`), or use \
                     `ecmp`, `flowlabel` or `xpath`, which need no privilege: Operation not \
                     permitted (os error 1)"
                )
            );
        }
    }
}

#[test]
fn paths_of_another_family_are_refused_with_advice_that_can_be_followed() {
    let (dir, path) = small();
    for map in ["flowlabel:4", "xpath:2001:db8::1"] {
        let args = ["--insecure", "--paths", map];
        let sent = Running::start(&mut sender("127.0.0.1:1", "", &args, &[&path])).end();
        assert_eq!(sent.code, Some(1), "{map}: {}", sent.stderr);
        let printed = sent.stderr;
        assert!(printed.contains("ADDR") && !printed.contains("bind to"), "{map}: {printed}");
        let args = [&args[..], &["--listen", "127.0.0.1:0"]].concat();
        let received = Running::start(command(RECV, &args).current_dir(dir.path())).end();
        assert_eq!(received.code, Some(1), "{map}: {}", received.stderr);
        let printed = received.stderr;
        assert!(printed.contains("--listen") && !printed.contains("bind to"), "{map}: {printed}");
    }
}

#[test]
fn one_refused_file_does_not_keep_the_others_from_arriving() {
    let (_dir, paths) = files(&[("a", b"1"), ("b", b"2"), ("c", b"3")]);
    let receiver = Receiver::start(&["--once"]);
    fs::write(receiver.dir.path().join("b"), "old").unwrap();
    let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let sent = receiver.send(&["--json"], &paths);
    assert_eq!(sent.code, Some(1));
    let outcomes: Vec<String> = String::from_utf8(sent.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|object| object["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes, ["done", "failed", "done"]);
    assert_eq!((receiver.read("b"), receiver.read("c")), (b"old".to_vec(), b"3".to_vec()));
    assert_eq!(receiver.running.end().code, Some(1), "not all files were received");
}

#[test]
fn files_beyond_the_receivers_limit_are_refused_or_cut_short_and_removed() {
    let bytes = noise(3_000_000, 4);
    let (_dir, paths) = files(&[("large", &bytes)]);
    let receiver = Receiver::start(&["--max-size", "2M"]);
    let sent = receiver.send(&[], &[&paths[0]]);
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("refused") && sent.stderr.contains("2000000 bytes"));
    // A pipe does not say beforehand how much is in it.
    let mut command = sender(&receiver.addr, &receiver.key, &[], &[Path::new("-")]);
    let sent = Running::start(command.stdin(fs::File::open(&paths[0]).unwrap())).end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("2000000 bytes"), "{}", sent.stderr);
    wait_until("nothing is left of it", || receiver.partial().is_empty());
    assert!(receiver.names().is_empty());
}

#[test]
fn invalid_command_lines_exit_with_2_and_send_nothing() {
    let (dir, path) = small();
    let twin = dir.path().join("sub");
    fs::create_dir(&twin).unwrap();
    let twin = twin.join("file");
    fs::write(&twin, "other").unwrap();
    let path = path.to_str().unwrap();
    let twin = twin.to_str().unwrap();
    let folder = dir.path().to_str().unwrap();
    let insecure = |rest: &[&'static str]| [&["--insecure", "h:1"], rest].concat();
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec![], "required"),
        (vec!["h:1"], "FILE"),
        (vec!["h:1", path], "no key"),
        (vec!["--insecure", "h:1", path, twin], "same name"),
        (vec!["--insecure", "h:1", "-", "-"], "same name"),
        (vec!["--insecure", "h:1", folder], "--recursive"),
        (vec!["--insecure", "h", path], "host:port"),
        (vec!["--insecure", "h:0", path], "host:port"),
        (vec!["--insecure", "--name", "../b", "h:1", path], "leads through"),
        (vec!["--insecure", "--name", "x", "h:1", path, "-"], "single FILE"),
        (vec!["--insecure", "--rate", "1.5", "h:1", path], "above 0 and at most 1"),
        (vec!["--insecure", "--mtu", "65536", "h:1", path], "576..=65535"),
        (vec!["--insecure", "--paths", "ecmp:0", "h:1", path], "1 to 64"),
        (vec!["--insecure", "--ecn", "always", "h:1", path], "`aeolus`"),
        (vec!["--insecure", "--dscp", "64", "h:1", path], "0..64"),
        (vec!["--insecure", "--dscp", "43,64", "h:1", path], "0..64"),
        (vec!["--insecure", "--classes", "left:0", "h:1", path], "ascending order"),
        (vec!["--insecure", "--capacity", "fast", "h:1", path], "100M"),
        (vec!["--pair", "12345", "h:1", path], "expected the six digits"),
        (vec!["--pair", "123-456", "--insecure", "h:1", path], "cannot be used with"),
        (vec!["--pair", "-", "h:1", path], "no code on standard input"),
        (vec!["--pair", "-", "h:1", "-"], "would both read standard input"),
        (vec!["--key-file", "/nonexistent", "h:1", path], "cannot read the key file"),
        (vec!["--key-file", path, "h:1", path], "64 hexadecimal digits"),
        (insecure(&["/nonexistent"]), "No such file"),
    ];
    for (args, text) in cases {
        let ended = Running::start(&mut command(SEND, &args)).end();
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{args:?}: {}", ended.stderr);
    }
    for (args, text) in [
        (vec!["--listen", "nowhere"], "--listen"),
        (vec!["--rate", "0"], "above 0 and at most 1"),
        (vec!["--mtu", "575"], "576..=65535"),
        (vec!["--out", "/nonexistent"], "mkdir -p"),
        (vec!["--out", path], "not a directory"),
        (vec!["--stdout", "--out", folder], "cannot be used with"),
        (vec!["--also-accept", "/nonexistent"], "cannot read the key file"),
        (vec!["--also-accept", path], "64 hexadecimal digits"),
        (vec!["--also-accept", path, "--insecure"], "cannot be used with"),
        (vec!["--pair", "--also-accept", path], "cannot be used with"),
        (vec!["extra"], "unexpected"),
    ] {
        let ended = Running::start(&mut command(RECV, &args)).end();
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_key_in_the_environment_and_no_key_on_the_command_line_contradict_each_other() {
    let (_dir, path) = small();
    let ended =
        Running::start(&mut sender("h:1", &"00".repeat(32), &["--insecure"], &[&path])).end();
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("unset it"), "{}", ended.stderr);
}

#[test]
fn an_empty_key_in_the_environment_is_none() {
    let (_dir, path) = small();
    for (args, code, text) in
        [(&[][..], 2, "no key"), (&["--insecure", "--deadline", "0.2"], 1, "no receiver listens")]
    {
        let mut sending = sender("127.0.0.1:9", "", args, &[&path]);
        let ended = Running::start(sending.env("CBRST_KEY", "")).end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let receiver = Receiver::start(&[]);
    let args = ["--listen", &receiver.addr, "--insecure"];
    let dir = tempfile::tempdir().unwrap();
    let ended = Running::start(command(RECV, &args).current_dir(dir.path())).end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot listen on"), "{}", ended.stderr);
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn a_receiver_for_one_sender_refuses_others() {
    let (_dir, path) = small();
    let receiver = Receiver::start(&["--once"]);
    let mut first = sender(&receiver.addr, &receiver.key, &[], &[Path::new("-")]);
    let mut first = Running::start(first.stdin(std::process::Stdio::piped()));
    wait_until("the first transfer has begun", || receiver.partial().len() == 1);
    let second = receiver.send(&[], &[&path]);
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("serves one sender"), "{}", second.stderr);
    drop(first.stdin());
    assert_eq!(first.end().code, Some(0));
    assert_eq!(receiver.running.end().code, Some(0), "the other one is not its business");
}

#[test]
fn a_key_in_the_environment_that_is_not_text_is_refused() {
    let (_dir, path) = small();
    let key = std::ffi::OsStr::from_bytes(b"\xff");
    for mut command in [sender("h:1", "", &[], &[&path]), command(RECV, &[])] {
        let ended = Running::start(command.env("CBRST_KEY", key)).end();
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("CBRST_KEY does not hold a key"), "{}", ended.stderr);
    }
}

#[test]
fn an_endpoint_that_cannot_start_is_reported_in_one_line_with_its_cause() {
    let (dir, path) = small();
    let path = path.to_str().unwrap();
    let script = r#"ulimit -n "$1" && shift && exec "$@""#;
    for program in [
        vec!["8", SEND, "--insecure", "127.0.0.1:7999", path],
        vec!["5", RECV, "--insecure", "--listen", "127.0.0.1:0"],
    ] {
        let args = [vec!["-c", script, "sh"], program].concat();
        let ended = Running::start(command("sh", &args).current_dir(dir.path())).end();
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("Too many open files"), "{args:?}: {}", ended.stderr);
    }
}
