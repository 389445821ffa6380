//! Directories arrive as they were sent, and nothing is written elsewhere.

use crate::common::*;
use cloudburst_cli::protocol::{Body, Frame, Reason};
use cloudburst_net::{Endpoint, PathMap, Security};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

fn set(path: &Path, mode: u32, seconds: u64) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let time = UNIX_EPOCH + Duration::new(seconds, 123_456_789);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// A tree with one of everything.
fn tree() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("photos");
    fs::create_dir_all(root.join("2025/empty")).unwrap();
    for (name, bytes) in [("a", noise(300_000, 1)), ("2025/b", b"b".into()), ("2025/none", vec![])]
    {
        fs::write(root.join(name), bytes).unwrap();
    }
    symlink("a", root.join("link")).unwrap();
    symlink("/etc", root.join("2025/away")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let modes = [0o640, 0o704, 0o444, 0o751, 0o755, 0o710];
    let names = ["a", "2025/b", "2025/none", "2025/empty", "2025", ""];
    for (at, (name, mode)) in (1..).zip(names.into_iter().zip(modes)) {
        set(&root.join(name), mode, 1_000_000_000 + at);
    }
    (dir, root)
}

/// What is below a directory: name, mode, time of modification, contents.
fn listing(root: &Path) -> Vec<(PathBuf, u32, i64, i64, Vec<u8>)> {
    let entry = |entry: walkdir::DirEntry| {
        let metadata = fs::symlink_metadata(entry.path()).unwrap();
        let contents = if metadata.is_symlink() {
            fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes()
        } else if metadata.is_file() {
            fs::read(entry.path()).unwrap()
        } else {
            Vec::new()
        };
        let name = entry.path().strip_prefix(root).unwrap().to_owned();
        (name, metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), contents)
    };
    let entries = walkdir::WalkDir::new(root).sort_by_file_name();
    entries.into_iter().map(|each| entry(each.unwrap())).collect()
}

#[test]
fn a_directory_arrives_as_it_was() {
    let (_dir, root) = tree();
    for args in [&["-r"][..], &["--recursive", "--name", "pictures"]] {
        let receiver = Receiver::start(&["--once"]);
        let sent = receiver.send(args, &[&root]);
        let received = receiver.running.end();
        assert_eq!((sent.code, received.code), (Some(0), Some(0)), "{}", sent.stderr);
        let name = args.get(2).unwrap_or(&"photos");
        assert_eq!(entries(receiver.dir.path()), [*name]);
        assert_eq!(listing(&receiver.dir.path().join(name)), listing(&root));
    }
}

#[test]
fn the_receivers_umask_applies_to_modes() {
    let (_dir, root) = tree();
    set(&root.join("a"), 0o666, 1);
    set(&root, 0o777, 2);
    let receiver = Receiver::start_masked("027", tempfile::tempdir().unwrap(), &[]);
    let sent = receiver.send(&["-r"], &[&root]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let there = receiver.dir.path().join("photos");
    let mode = |name| fs::metadata(there.join(name)).unwrap().mode() & 0o7777;
    assert_eq!(["a", "2025/b", "2025", ""].map(mode), [0o640, 0o700, 0o750, 0o750]);
}

#[test]
fn a_file_that_was_replaced_after_the_walk_is_not_sent() {
    let (dir, paths) = files(&[("secret", b"secret")]);
    let root = dir.path().join("photos");
    fs::create_dir(&root).unwrap();
    fs::create_dir(root.join("below")).unwrap();
    for name in ["a", "below/same", "file", "link", "pipe"] {
        fs::write(root.join(name), "x").unwrap();
    }
    let builder = Endpoint::builder().bind("127.0.0.1:0".parse().unwrap());
    let builder = builder.paths(PathMap::ecmp(1)).security(Security::trusted_network());
    let receiver = builder.build().unwrap();
    let addr = receiver.local_addr().to_string();
    let sending = Running::start(&mut sender(&addr, "", &["-r", "--insecure"], &[&root]));
    let offered = || loop {
        let message = receiver.recv().wait_for(PATIENCE).unwrap().unwrap();
        let Frame { transfer, body } = Frame::decode(&message.bytes).unwrap();
        if let Body::Offer(offer) = body {
            return (message.peer, transfer, offer.name.unwrap().to_string());
        }
    };
    let refuse = |(peer, transfer, _)| {
        let body = Body::Failed(Reason::Exists);
        receiver.send(peer, Frame { transfer, body }.encode()).wait().unwrap();
    };
    let first = offered();
    assert_eq!(first.2, "photos/a");
    fs::rename(&paths[0], root.join("file")).unwrap();
    // The very file that was found, by way of a link to a directory outside.
    fs::rename(root.join("below"), dir.path().join("outside")).unwrap();
    symlink(dir.path().join("outside"), root.join("below")).unwrap();
    for name in ["link", "pipe"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    symlink(root.join("file"), root.join("link")).unwrap();
    mkfifo(&root.join("pipe"), Mode::S_IRWXU).unwrap();
    refuse(first);
    for directory in ["photos/below", "photos"] {
        let next = offered();
        assert_eq!(next.2, directory);
        refuse(next);
    }
    let sent = sending.end();
    assert_eq!(sent.code, Some(1));
    assert_eq!(sent.stderr.matches("took its place").count(), 4, "{}", sent.stderr);
}

#[test]
fn the_current_directory_is_sent_under_its_name() {
    let (_dir, root) = tree();
    let receiver = Receiver::start(&[]);
    let mut command = sender(&receiver.addr, &receiver.key, &["-r"], &[Path::new(".")]);
    let sent = Running::start(command.current_dir(&root)).end();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(listing(&receiver.dir.path().join("photos")), listing(&root));
}

#[test]
fn a_directory_needs_recursive_and_special_files_are_skipped() {
    let (_dir, root) = tree();
    let receiver = Receiver::start(&[]);
    let sent = receiver.send(&[], &[&root]);
    assert_eq!(sent.code, Some(2));
    assert!(sent.stderr.contains("--recursive"), "{}", sent.stderr);
    let _listening = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let sent = receiver.send(&["-r"], &[&root]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(sent.stderr.contains("socket: skipped"), "{}", sent.stderr);
    assert!(!receiver.dir.path().join("photos/socket").exists());
}

#[test]
fn an_entry_that_cannot_be_sent_does_not_stop_others() {
    let (_dir, root) = tree();
    fs::create_dir(root.join("locked")).unwrap();
    fs::write(root.join("locked/unseen"), "x").unwrap();
    set(&root.join("locked"), 0o000, 1);
    set(&root.join("2025/none"), 0o000, 1);
    fs::create_dir(root.join("new\nline")).unwrap();
    let names = [OsStr::new("back\\slash"), OsStr::new("new\nline/a"), OsStr::from_bytes(b"a\xff")];
    for name in names {
        fs::write(root.join(name), "x").unwrap();
    }
    let receiver = Receiver::start(&[]);
    let command = sender(&receiver.addr, &receiver.key, &["-r", "--json"], &[&root]);
    let mut command = without(&["dac_override", "dac_read_search"], &command);
    let sent = Running::start(&mut command).end();
    assert_eq!(sent.code, Some(1), "{}", sent.stderr);
    let text = String::from_utf8(sent.stdout).unwrap();
    let objects = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let (done, failed): (Vec<_>, Vec<_>) = objects.partition(|object| object["outcome"] == "done");
    assert_eq!(done.len(), 8, "{done:#?}");
    assert_eq!(failed.len(), 5, "{failed:#?}");
    for (name, error) in [
        ("locked", "cannot read it: Permission denied"),
        ("2025/none", "cannot read it: Permission denied"),
        ("back\\slash", "it has a backslash; rename it"),
        ("new\nline", "it has the control character '\\n'; rename it"),
        ("a\u{fffd}", "it is not UTF-8; rename it"),
    ] {
        let path = root.join(name).display().to_string();
        let object = failed.iter().find(|object| object["file"] == *path).expect(name);
        assert_eq!(object["outcome"], "failed");
        assert!(object["error"].as_str().unwrap().contains(error), "{object}");
        let line = format!("{}: ", path.replace('\n', "\\n"));
        assert_eq!(sent.stderr.matches(&line).count(), 1, "{}", sent.stderr);
    }
    assert_eq!(receiver.read("photos/2025/b"), b"b");
    assert_eq!(entries(&receiver.dir.path().join("photos")), ["2025", "a", "dangling", "link"]);
    // One that the command line names is refused before anything is sent.
    let command = sender(&receiver.addr, &receiver.key, &["-r"], &[&root.join("locked")]);
    let mut command = without(&["dac_override", "dac_read_search"], &command);
    let sent = Running::start(&mut command).end();
    assert_eq!(sent.code, Some(2), "{}", sent.stderr);
    set(&root.join("locked"), 0o700, 1);
}

#[test]
fn an_existing_directory_is_merged_and_its_files_follow_overwrite() {
    let (_dir, root) = tree();
    let receiver = Receiver::start(&[]);
    let there = receiver.dir.path().join("photos");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("own"), "own").unwrap();
    fs::write(there.join("a"), "old").unwrap();
    let sent = receiver.send(&["-r"], &[&root]);
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("photos/a: refused: the receiver has a file"), "{}", sent.stderr);
    assert_eq!(fs::read(there.join("a")).unwrap(), b"old");
    assert_eq!(fs::read(there.join("own")).unwrap(), b"own");
    assert_eq!(fs::read(there.join("2025/b")).unwrap(), b"b");
    let (_, kept) = receiver.stop();
    assert_eq!(kept, ["photos"]);
}

#[test]
fn with_overwrite_changed_attributes_are_set() {
    let (_dir, root) = tree();
    let receiver = Receiver::start(&["--overwrite"]);
    assert_eq!(receiver.send(&["-r"], &[&root]).code, Some(0));
    set(&root.join("2025/b"), 0o751, 1_234_567);
    let sent = receiver.send(&["-r"], &[&root]);
    assert!(sent.stderr.contains("photos/2025/b: already there"), "{}", sent.stderr);
    assert_eq!(listing(&receiver.dir.path().join("photos")), listing(&root));
}

#[test]
fn a_directory_and_a_file_never_replace_each_other_and_overwrite_is_not_suggested() {
    let (_dir, root) = tree();
    let receiver = Receiver::start(&["--overwrite"]);
    fs::create_dir(receiver.dir.path().join("a")).unwrap();
    fs::write(receiver.dir.path().join("2025"), "").unwrap();
    for (args, sent) in [(&[][..], "a"), (&["-r"], "2025")] {
        let sent = receiver.send(args, &[&root.join(sent)]);
        assert_eq!(sent.code, Some(1));
        let fact = "one of the two is a directory";
        let advice = "--overwrite";
        assert!(sent.stderr.contains(fact) && !sent.stderr.contains(advice), "{}", sent.stderr);
    }
}

#[test]
fn a_receiver_whose_directory_was_removed_says_so() {
    let (_dir, root) = tree();
    let receiver = Receiver::start(&[]);
    fs::remove_dir_all(receiver.dir.path()).unwrap();
    let sent = receiver.send(&[], &[&root.join("a")]);
    assert!(sent.stderr.contains("its directory was removed"), "{}", sent.stderr);
}

#[test]
fn existing_identical_entries_are_not_sent_again() {
    let (_dir, root) = tree();
    let receiver = Receiver::start(&[]);
    assert_eq!(receiver.send(&["-r"], &[&root]).code, Some(0));
    fs::remove_file(receiver.dir.path().join("photos/2025/b")).unwrap();
    let sent = receiver.send(&["-r", "--json"], &[&root]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    // An existing directory keeps the time at which the file was added to it.
    let without = |root: &Path| {
        let entries = listing(root).into_iter();
        entries.filter(|entry| entry.0 != Path::new("2025")).collect::<Vec<_>>()
    };
    assert_eq!(without(&receiver.dir.path().join("photos")), without(&root));
    let text = String::from_utf8(sent.stdout).unwrap();
    let objects = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let bytes: u64 = objects
        .filter(|object| object["resumed"] == 0 && object["name"] != "photos/link")
        .map(|object| object["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(bytes, "b".len() as u64 + "/etc".len() as u64 + "nowhere".len() as u64);
    // Other entries of the same kind are not the same.
    for changed in ["link", "2025/none"] {
        fs::remove_file(root.join(changed)).unwrap();
        symlink("b", root.join(changed)).unwrap();
    }
    let sent = receiver.send(&["-r"], &[&root]);
    assert_eq!(sent.code, Some(1));
    assert_eq!(sent.stderr.matches("has a file of this name and keeps it").count(), 2);
    assert_eq!(fs::read_link(receiver.dir.path().join("photos/link")).unwrap(), Path::new("a"));
    assert!(receiver.send(&["-r"], &[&root.join("2025")]).code == Some(0), "under another name");
}

#[test]
fn standard_output_takes_only_files() {
    let (_dir, root) = tree();
    let args = ["--stdout", "--listen", "127.0.0.1:0"];
    let (running, addr, key) = listening(Running::start(&mut command(RECV, &args)));
    let sent = Running::start(&mut sender(&addr, &key, &["-r"], &[&root])).end();
    assert_eq!(sent.code, Some(1));
    assert!(sent.stderr.contains("takes only files"), "{}", sent.stderr);
    assert_eq!(running.end().code, Some(1));
}
