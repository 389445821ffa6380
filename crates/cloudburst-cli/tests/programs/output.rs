//! What the programs print, and where.

use crate::common::*;
use nix::sys::signal::Signal;
use std::fs;
use std::path::Path;

#[test]
fn help_documents_each_exit_code() {
    for program in [SEND, RECV, DOCTOR] {
        let ended = Running::start(&mut command(program, &["--help"])).end();
        assert_eq!(ended.code, Some(0));
        let help = String::from_utf8(ended.stdout).unwrap();
        let (_, codes) = help.split_once("Exit codes:").unwrap();
        for code in ["\n  0 ", "\n  1 ", "\n  2 ", "\n  130 "] {
            assert!(codes.contains(code), "{code:?} in {help}");
        }
    }
}

#[test]
fn the_command_for_senders_has_the_address_that_they_use() {
    let mut receiver =
        Receiver::start(&["--known-as", "203.0.113.7:443", "--known-as", "[2001:db8::7]:443"]);
    receiver.running.line("cbrst-send 203.0.113.7:443 FILE...");
}

#[test]
fn both_ends_record_a_transfer_as_a_qlog() {
    let (_dir, paths) = files(&[("a", &noise(300_000, 12))]);
    let [sent, received] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [there, here] = [&sent, &received].map(|dir| dir.path().to_str().unwrap());
    let receiver = Receiver::start(&["--once", "--qlog", here]);
    let ended = receiver.send(&["--qlog", there], &[&paths[0]]);
    assert_eq!((ended.code, receiver.running.end().code), (Some(0), Some(0)), "{}", ended.stderr);
    let names = |dir: &Path| -> Vec<String> {
        let file = fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(file).unwrap();
        let records = text.split('\x1e').skip(2);
        let record = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        records.map(|text| record(text)["name"].as_str().unwrap().to_owned()).collect()
    };
    for (dir, name) in [(&sent, "train_sent"), (&received, "message_received")] {
        let names = names(dir.path());
        assert!(names.contains(&format!("cloudburst:{name}")), "{names:?}");
        assert_eq!(names.last().unwrap(), "cloudburst:log_ended", "all was written");
    }
    let ended = receiver_with_no_directory();
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("cannot write a qlog to the directory /nowhere"),
        "{}",
        ended.stderr
    );
}

fn receiver_with_no_directory() -> Ended {
    let args = ["--listen", "127.0.0.1:0", "--insecure", "--qlog", "/nowhere"];
    let dir = tempfile::tempdir().expect("a temporary directory");
    Running::start(command(RECV, &args).current_dir(dir.path())).end()
}

#[test]
fn json_is_one_object_a_file_on_standard_output_at_both_ends() {
    let (_dir, paths) = files(&[("a", b"abc"), ("b", &noise(300_000, 10))]);
    let receiver = Receiver::start(&["--once", "--json"]);
    let sent = receiver.send(&["--json"], &[&paths[0], &paths[1]]);
    let received = receiver.running.end();
    assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{}", sent.stderr);
    let parse = |stdout: Vec<u8>| -> Vec<serde_json::Value> {
        let text = String::from_utf8(stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let sent = parse(sent.stdout);
    let received = parse(received.stdout);
    assert_eq!((sent.len(), received.len()), (2, 2));
    let digest = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    for (object, path) in [(&sent[0], &paths[0]), (&received[0], &receiver.dir.path().join("a"))] {
        assert_eq!(object["file"], path.to_str().unwrap());
        assert_eq!(object["name"], "a");
        assert_eq!(object["bytes"], 3);
        assert_eq!(object["outcome"], "done");
        assert_eq!(object["error"], serde_json::Value::Null);
        assert_eq!(object["digest"], digest);
        assert!(object["seconds"].as_f64().unwrap() > 0.0);
    }
    assert!(sent[1]["packets"].as_u64().unwrap() >= 300_000 / 1452);
    assert!(sent[1]["redundancy"].as_f64().unwrap() >= 1.0);
    assert_eq!(sent[1]["digest"], received[1]["digest"]);
}

#[test]
fn the_redundancy_is_shown_only_for_files_of_many_packets() {
    let (_dir, paths) = files(&[("a", b"abc"), ("b", &noise(300_000, 13))]);
    let receiver = Receiver::start(&[]);
    let sent = receiver.send(&[], &[&paths[0], &paths[1]]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let lines: Vec<&str> = sent.stderr.lines().collect();
    assert!(lines[0].contains(": 3 B in ") && lines[0].ends_with("/s"), "{lines:?}");
    assert!(lines[1].ends_with(" packets sent for each needed"), "{lines:?}");
}

#[test]
fn insecure_prints_no_warning() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let dir = tempfile::tempdir().unwrap();
    let args = ["--insecure", "--once", "--listen", "0.0.0.0:0", "--out"];
    let (receiver, addr, _) = listening(Running::start(command(RECV, &args).arg(dir.path())));
    let addr = addr.replace("0.0.0.0", "127.0.0.1");
    let sent = Running::start(&mut sender(&addr, "", &["--insecure"], &[&paths[0]])).end();
    let received = receiver.end();
    assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{}", sent.stderr);
    for printed in [sent.stderr, received.stderr] {
        assert!(!printed.contains("forge"), "{printed}");
    }
}

#[test]
fn json_reports_files_that_could_not_be_sent() {
    let (_dir, paths) = files(&[("a", b"abc"), ("b", b"def")]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = silent.local_addr().unwrap().to_string();
    let args = ["--json", "--deadline", "0.3"];
    let key = "00".repeat(32);
    let ended = Running::start(&mut sender(&addr, &key, &args, &[&paths[0], &paths[1]])).end();
    assert_eq!(ended.code, Some(1));
    let text = String::from_utf8(ended.stdout).unwrap();
    let objects: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    for object in objects {
        assert_eq!(object["outcome"], "failed");
        assert!(object["error"].is_string());
    }
}

#[test]
fn quiet_prints_only_errors_and_the_command_with_a_new_key() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let args = ["--listen", "127.0.0.1:0", "--out", out, "--quiet", "--once"];
    let mut receiver = Running::start(&mut command(RECV, &args));
    let line = receiver.line("CBRST_KEY=");
    // The line is meant to be copied: a shell runs it as it is.
    let (_dir, paths) = files(&[("a", b"abc")]);
    let line = line.replace("cbrst-send", &format!("{SEND} --quiet"));
    let line = line.replace("FILE...", paths[0].to_str().unwrap());
    let sent = Running::start(&mut command("sh", &["-c", &line])).end();
    assert_eq!((sent.code, sent.stderr.as_str()), (Some(0), ""));
    let received = receiver.end();
    assert_eq!(received.code, Some(0));
    assert_eq!(received.stderr.lines().count(), 2, "{}", received.stderr);
}

#[test]
fn a_foreign_dscp_is_reported_once_at_both_ends() {
    let (_dir, paths) = files(&[("a", &noise(300_000, 11)), ("b", b"def")]);
    let receiver = Receiver::start(&["--once", "--dscp", "10"]);
    let sent = receiver.send(&["--ecn", "aeolus"], &[&paths[0], &paths[1]]);
    let received = receiver.running.end();
    assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{}", sent.stderr);
    for (ended, values) in [(sent, "expected=43 got=10"), (received, "expected=10 got=43")] {
        let about = ended.stderr.lines().filter(|line| line.contains("DSCP")).collect::<Vec<_>>();
        assert_eq!(about.len(), 1, "{}", ended.stderr);
        assert!(about[0].contains(values) && about[0].contains("same --dscp"), "{}", about[0]);
    }
}

#[test]
fn a_key_from_a_file_or_the_environment_is_never_printed() {
    let key = "0123456789abcdef".repeat(4);
    let (dir, paths) = files(&[("key", key.as_bytes()), ("a", b"abc")]);
    let out = tempfile::tempdir().unwrap();
    let base = ["--listen", "127.0.0.1:0", "--once", "--overwrite", "--out"];
    let by_file = ["--key-file", paths[0].to_str().unwrap()];
    for file in [true, false] {
        let mut receiver = command(RECV, &base);
        receiver.arg(out.path());
        if file {
            receiver.args(by_file);
        } else {
            receiver.env("CBRST_KEY", &key);
        }
        let (running, addr, _) = listening(Running::start(&mut receiver));
        let sent = Running::start(&mut sender(&addr, "", &by_file, &[&paths[1]])).end();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let received = running.end();
        assert_eq!(received.code, Some(0));
        assert!(!received.stderr.contains("0123456789abcdef"), "{}", received.stderr);
    }
    drop(dir);
}

#[test]
fn a_key_file_that_others_can_read_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, paths) = files(&[("key", "00".repeat(32).as_bytes())]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = silent.local_addr().unwrap().to_string();
    let args = ["--deadline", "0.2", "--key-file", paths[0].to_str().unwrap()];
    for (mode, exposed) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&paths[0], PermissionsExt::from_mode(mode)).unwrap();
        let ended = Running::start(&mut sender(&addr, "", &args, &[&paths[0]])).end();
        assert_eq!(ended.stderr.contains("chmod 600"), exposed, "{}", ended.stderr);
    }
}

#[test]
fn json_has_an_object_even_if_the_program_cannot_start() {
    let occupied = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = occupied.local_addr().unwrap().to_string();
    let key = "00".repeat(32);
    let send = |args: &[&str]| sender("127.0.0.1:1", &key, args, &[]);
    let cases = [
        (2, "required", send(&["--json"])),
        (2, "--rate", send(&["--json", "--rate", "x", "file"])),
        (2, "above 0 and at most 1", send(&["--json", "--rate", "2", "file"])),
        (2, "/nowhere", send(&["--json", "/nowhere"])),
        (2, "/nowhere", command(RECV, &["--json", "--out", "/nowhere"])),
        (1, &addr, command(RECV, &["--json", "--listen", &addr])),
    ];
    for (code, text, mut command) in cases {
        let ended = Running::start(&mut command).end();
        assert_eq!(ended.code, Some(code), "{command:?}: {}", ended.stderr);
        let object: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(object["outcome"], "failed", "{object}");
        assert!(object["error"].as_str().unwrap().contains(text), "{object}");
    }
    let ended = Running::start(&mut command(RECV, &["--json", "--stdout", "--listen", "x"])).end();
    assert_eq!((ended.code, ended.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(ended.stderr.contains("{\"file\":null"), "{}", ended.stderr);
    let ended = Running::start(&mut send(&["--", "--json"])).end();
    assert_eq!((ended.code, ended.stdout.as_slice()), (Some(2), &b""[..]));
    // The doctor's has the same fields as that of an examination that failed.
    for (args, error) in [(&["--json", "127.0.0.1:1"][..], "no key"), (&["--json"], "required")] {
        let ended = Running::start(&mut command(DOCTOR, args)).end();
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        let object: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(object.as_object().unwrap().len(), 2, "{object}");
        assert!(object["error"].as_str().unwrap().contains(error), "{object}");
        assert_eq!(object["peer"], serde_json::Value::Null);
    }
}

#[test]
fn json_set_in_a_settings_file_applies_even_if_the_program_cannot_start() {
    let (dir, paths) =
        files(&[("a.toml", b"[recv]\njson = true\n"), ("b.toml", b"json = true\nx = 1")]);
    let [recv, bad] = [&paths[0], &paths[1]].map(|path| path.to_str().unwrap());
    std::fs::create_dir(dir.path().join("cloudburst")).unwrap();
    std::fs::copy(bad, dir.path().join("cloudburst/config.toml")).unwrap();
    let mut usual = command(DOCTOR, &["--insecure", "h:1"]);
    usual.env("XDG_CONFIG_HOME", dir.path());
    for (error, mut command) in [
        ("--listen x", command(RECV, &["--config", recv, "--listen", "x"])),
        ("--max-size", command(RECV, &["--max-size", "x", &format!("--config={recv}")])),
        ("no setting \"x\"", command(SEND, &["--insecure", "--config", bad, "h:1", recv])),
        ("no setting \"x\"", usual),
    ] {
        let ended = Running::start(&mut command).end();
        assert_eq!(ended.code, Some(2), "{command:?}: {}", ended.stderr);
        let object: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert!(object["error"].as_str().unwrap().contains(error), "{object}");
    }
    let ended = Running::start(&mut command(SEND, &["--config", recv, "--rate", "2", "h:1", recv]));
    assert_eq!(ended.end().stdout, b"", "it asks for that of another program");
}

#[test]
fn json_that_cannot_be_written_is_a_failure() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let receiver = Receiver::start(&["--once"]);
    let send = sender(&receiver.addr, &receiver.key, &["--json"], &[&paths[0]]);
    let to_full = |command| run_by("sh", &["-c", r#"exec "$0" "$@" > /dev/full"#], &command);
    let expected = "cannot write to standard output: No space left on device";
    let sent = Running::start(&mut to_full(send)).end();
    assert_eq!(sent.code, Some(1), "{}", sent.stderr);
    assert!(sent.stderr.contains(&format!("cbrst-send: {expected}")), "{}", sent.stderr);
    assert_eq!(receiver.running.end().code, Some(0), "the file was received");
    let out = tempfile::tempdir().unwrap();
    let args = ["--once", "--json", "--listen", "127.0.0.1:0", "--out"];
    let mut receive = command(RECV, &args);
    receive.arg(out.path());
    let (receiver, addr, key) = listening(Running::start(&mut to_full(receive)));
    let examined = to_full(command(DOCTOR, &["--ports", "1", "--json", &addr]));
    let examined = Running::start({ examined }.env("CBRST_KEY", &key)).end();
    assert_eq!(examined.code, Some(1), "{}", examined.stderr);
    assert!(examined.stderr.contains(&format!("cbrst-doctor: {expected}")), "{}", examined.stderr);
    let sent = Running::start(&mut sender(&addr, &key, &[], &[&paths[0]])).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let received = receiver.end();
    assert_eq!(received.code, Some(1), "{}", received.stderr);
    assert_eq!(received.stderr.matches(expected).count(), 1, "{}", received.stderr);
}

#[test]
fn a_broadcast_address_is_refused_by_name() {
    let (_dir, paths) = files(&[("a", b"abc")]);
    let key = "00".repeat(32);
    let ended = Running::start(&mut sender("255.255.255.255:7000", &key, &[], &[&paths[0]])).end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("it is a broadcast address"), "{}", ended.stderr);
}

#[test]
fn manual_pages_and_completions_have_every_option() {
    for (program, options) in [
        (SEND, &["--recursive", "--no-resume", "--capacity", "--mtu"][..]),
        (RECV, &["--also-accept", "--overwrite", "--json", "--capacity", "--rate", "--mtu"]),
        (DOCTOR, &["--packets", "--json", "--mtu"]),
    ] {
        let name = program.rsplit('/').next().unwrap();
        let title = format!(".TH {name} 1");
        let bash = format!("-o default {name}\n");
        let zsh = format!("#compdef {name}");
        let fish = format!("complete -c {name}");
        let forms = [("man", &title), ("bash", &bash), ("zsh", &zsh), ("fish", &fish)];
        for (form, begins) in forms {
            let ended = Running::start(&mut command(program, &["--generate", form])).end();
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
            let text = String::from_utf8(ended.stdout).unwrap();
            assert!(text.contains(begins), "{begins} in {text}");
            // Escaped in a page; without its dashes in fish.
            let text = text.replace("\\-", "-");
            for option in options {
                let option = if form == "fish" { option.trim_start_matches('-') } else { option };
                assert!(text.contains(option), "{option} in {form} of {name}");
            }
            assert!(!text.contains("--generate"), "it is for packagers");
            if form == "man" {
                assert!(
                    text.contains(".SH EXAMPLES") && text.contains(".SH \"EXIT CODES\""),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn the_service_manager_is_notified_when_the_receiver_listens_and_stops() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let args = ["--listen", "127.0.0.1:0", "--out", dir.path().to_str().unwrap()];
    let running = Running::start(command(RECV, &args).env("NOTIFY_SOCKET", &path));
    let hears = |state: &[u8]| {
        let mut printed = [0; 64];
        let len = manager.recv(&mut printed).unwrap();
        assert_eq!(&printed[..len], state);
    };
    hears(b"READY=1\n");
    running.signal(Signal::SIGTERM);
    hears(b"STOPPING=1\n");
    assert_eq!(running.end().code, Some(130));
}

#[test]
fn settings_come_from_the_users_file_or_from_the_one_that_is_named() {
    let (dir, paths) = files(&[("key", "ab".repeat(32).as_bytes()), ("a", b"abc")]);
    let key = paths[0].to_str().unwrap();
    std::fs::create_dir(dir.path().join("cloudburst")).unwrap();
    let usual = dir.path().join("cloudburst/config.toml");
    std::fs::write(&usual, format!("key-file = {key:?}\n[recv]\nlisten = \"127.0.0.1:0\"\n"))
        .unwrap();
    let mut receive =
        command(RECV, &["--once", "--out", dir.path().to_str().unwrap(), "--overwrite"]);
    let mut receiver = Running::start(receive.env("XDG_CONFIG_HOME", dir.path()));
    let addr = receiver.line("listening on 127.0.0.1:").rsplit(' ').next().unwrap().to_owned();
    let args = ["--config", usual.to_str().unwrap(), &addr, paths[1].to_str().unwrap()];
    let sent = Running::start(&mut command(SEND, &args)).end();
    assert_eq!((sent.code, receiver.end().code), (Some(0), Some(0)), "{}", sent.stderr);

    std::fs::write(&usual, "key-fiel = 1\n").unwrap();
    let sent = Running::start(command(SEND, &args).arg("--json")).end();
    let expected = format!(
        "{}: there is no setting \"key-fiel\": did you mean \"key-file\"?",
        usual.display()
    );
    assert_eq!(sent.code, Some(2));
    assert!(sent.stderr.contains(&expected), "{}", sent.stderr);
    let object: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(object["error"], expected);
}
