use super::*;
use crate::receiver::commit::CommitRight;
use core::time::Duration;
use parts::KEPT;
use std::fs::{self, DirBuilder, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::time::UNIX_EPOCH;

const HOUR: Duration = Duration::from_secs(3_600);

fn name(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

fn begin(store: &Store, text: &str) -> Result<Partial, Reason> {
    store.begin(&name(text), Entry::File, None, None).map(|(partial, _)| partial)
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn a_file_has_its_name_only_when_it_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_owned(), false, false).unwrap();
    let partial = begin(&store, "a").unwrap();
    partial.write_at(b"world", 6).unwrap();
    partial.write_at(b"hello ", 0).unwrap();
    assert!(!dir.path().join("a").exists());
    let path = partial.commit(11, &CommitRight::default()).unwrap();
    assert_eq!(path, dir.path().join("a"));
    assert_eq!(fs::read(path).unwrap(), b"hello world");
    drop(store);
    assert_eq!(entries(dir.path()), 1);
}

#[test]
fn a_file_whose_transfer_was_given_up_never_gets_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_owned(), false, false).unwrap();
    let partial = begin(&store, "a").unwrap();
    let right = CommitRight::default();
    assert!(right.claim());
    assert_eq!(partial.commit(0, &right), Err(Reason::Interrupted));
    drop(store);
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn a_dropped_partial_file_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_owned(), false, false).unwrap();
    let partial = begin(&store, "a").unwrap();
    partial.write_at(b"x", 0).unwrap();
    drop(partial);
    assert_eq!(entries(store.private()), 1, "its lock");
    drop(store);
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn a_file_that_appears_during_the_transfer_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_owned(), false, false).unwrap();
    let partial = begin(&store, "a").unwrap();
    fs::write(dir.path().join("a"), "old").unwrap();
    assert_eq!(partial.commit(0, &CommitRight::default()), Err(Reason::Exists));
    assert_eq!(begin(&store, "a").unwrap_err(), Reason::Exists);
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"old");
}

#[test]
fn overwriting_replaces_a_link_and_not_its_target() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, dir.path().join("a")).unwrap();
    let keeping = Store::open(dir.path().to_owned(), false, false).unwrap();
    assert_eq!(begin(&keeping, "a").unwrap_err(), Reason::Exists);
    let store = Store::open(dir.path().to_owned(), true, false).unwrap();
    let partial = begin(&store, "a").unwrap();
    partial.write_at(b"new", 0).unwrap();
    partial.commit(3, &CommitRight::default()).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"new");
    assert!(!dir.path().join("a").is_symlink());
}

#[test]
fn a_directory_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("a")).unwrap();
    let store = Store::open(dir.path().to_owned(), true, false).unwrap();
    assert_eq!(begin(&store, "a").unwrap_err(), Reason::OtherKind);
}

/// Stores an entry with these bytes.
fn put(
    store: &Store,
    text: &str,
    entry: Entry,
    bytes: &[u8],
    attributes: Option<Attributes>,
) -> Result<PathBuf, Reason> {
    let (partial, _) = store.begin(&name(text), entry, attributes, None)?;
    partial.write_at(bytes, 0).unwrap();
    partial.commit(bytes.len() as u64, &CommitRight::default())
}

#[test]
fn links_in_the_path_of_a_name_are_not_followed() {
    for overwrite in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), overwrite, false).unwrap();
        let target = outside.path().as_os_str().as_bytes();
        for (link, leads) in [("out", target), ("up", b"..".as_slice()), ("here", b".")] {
            put(&store, link, Entry::Link, leads, None).unwrap();
            for entry in [Entry::File, Entry::Link, Entry::Directory] {
                let name = format!("{link}/x");
                assert_eq!(put(&store, &name, entry, b"x", None), Err(Reason::NoDirectory));
            }
            assert!(put(&store, link, Entry::Directory, b"", None).is_err());
        }
        put(&store, "file", Entry::File, b"x", None).unwrap();
        let through = put(&store, "file/x", Entry::File, b"x", None);
        assert_eq!(through, Err(Reason::NoDirectory));
        assert_eq!(entries(outside.path()), 0);
    }
}

#[test]
fn a_link_that_appears_during_the_transfer_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_owned(), true, false).unwrap();
    let partial = begin(&store, "d/x").unwrap();
    symlink(outside.path(), dir.path().join("d")).unwrap();
    assert_eq!(partial.commit(0, &CommitRight::default()), Err(Reason::NoDirectory));
    assert_eq!(entries(outside.path()), 0);
}

#[test]
fn attributes_are_set_and_special_bits_do_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_owned(), false, false).unwrap();
    let attributes = Attributes { permissions: 0o750, seconds: 1_000_000, nanoseconds: 7 };
    let set = |path: PathBuf| {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.mode() & 0o7777, metadata.mtime(), metadata.mtime_nsec())
    };
    let file = put(&store, "d/e/f", Entry::File, b"x", Some(attributes)).unwrap();
    assert_eq!(set(file), (0o750, 1_000_000, 7));
    let link = put(&store, "d/l", Entry::Link, b"nowhere", Some(attributes)).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("nowhere"));
    assert_eq!((set(link.clone()).1, set(link).2), (1_000_000, 7));
    assert_eq!(set(dir.path().join("d")).0, 0o700, "not offered yet");
    put(&store, "d/e", Entry::Directory, b"", Some(attributes)).unwrap();
    let directory = put(&store, "d", Entry::Directory, b"", Some(attributes)).unwrap();
    assert_eq!(set(directory), (0o750, 1_000_000, 7));
    assert_eq!(entries(store.private()), 1, "its lock");
}

#[test]
fn an_existing_directory_keeps_its_attributes_unless_overwriting() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("d");
    fs::create_dir(&there).unwrap();
    fs::set_permissions(&there, Permissions::from_mode(0o700)).unwrap();
    let attributes = Attributes { permissions: 0o755, seconds: 1_000_000, nanoseconds: 0 };
    let put_all = |overwrite| {
        let store = Store::open(dir.path().to_owned(), overwrite, false).unwrap();
        for name in ["d/new", "d"] {
            put(&store, name, Entry::Directory, b"", Some(attributes)).unwrap();
        }
        let metadata = fs::metadata(&there).unwrap();
        (metadata.mode() & 0o777, metadata.mtime() == 1_000_000)
    };
    assert_eq!(put_all(false), (0o700, false));
    let new = fs::metadata(there.join("new")).unwrap();
    assert_eq!((new.mode() & 0o777, new.mtime()), (0o755, 1_000_000));
    assert_eq!(put_all(true), (0o755, true));
}

#[test]
fn a_part_is_kept_until_it_expires() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::open(dir.path().to_owned(), false, true).unwrap();
    let begin = |store: &Store, size| store.begin(&name("a/b"), Entry::File, None, size);
    let store = open();
    let (part, existing) = begin(&store, Some(10)).unwrap();
    assert!(existing.is_none());
    part.write_at(b"hello world", 0).unwrap();
    assert_eq!(begin(&store, Some(10)).unwrap_err(), Reason::NameInUse(0));
    assert!(part.keep(5));
    drop(store);
    let store = open();
    assert!(!begin(&store, None).unwrap().0.keep(5), "its size is not known");
    let (part, existing) = begin(&store, Some(10)).unwrap();
    let existing = existing.unwrap();
    assert!(matches!(existing, Existing { len: 5, origin: Origin::Part, .. }), "{existing:?}");
    assert!(part.keep(5));
    let path =
        fs::read_dir(store.parts.directory().unwrap()).unwrap().next().unwrap().unwrap().path();
    // The sender's file is old.
    File::open(&path).unwrap().set_times(FileTimes::new().set_modified(UNIX_EPOCH)).unwrap();
    let (soon, late) = [KEPT - HOUR, KEPT + HOUR].map(|time| SystemTime::now() + time).into();
    parts::remove_old(store.parts.directory().unwrap(), soon);
    assert!(path.exists());
    drop(existing);
    let (used, _) = begin(&store, Some(10)).unwrap();
    parts::remove_old(store.parts.directory().unwrap(), late);
    assert!(path.exists(), "a receiver uses it");
    assert!(used.keep(5));
    parts::remove_old(store.parts.directory().unwrap(), late);
    assert!(!path.exists());
    drop(store);
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn a_directory_begun_by_one_receiver_gets_its_attributes_from_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::open(dir.path().to_owned(), false, true).unwrap();
    let attributes = Attributes { permissions: 0o755, seconds: 1_000_000, nanoseconds: 0 };
    let put = |store: &Store, name, entry| put(store, name, entry, b"", Some(attributes));
    let state = || {
        let metadata = fs::metadata(dir.path().join("d")).unwrap();
        (metadata.mode() & 0o777, metadata.mtime() == 1_000_000)
    };
    put(&open(), "d/a", Entry::File).unwrap();
    assert_eq!(state(), (0o700, false));
    let next = open();
    put(&next, "d", Entry::Directory).unwrap();
    assert_eq!(state(), (0o755, true));
    // It is its owner's now.
    fs::set_permissions(dir.path().join("d"), Permissions::from_mode(0o700)).unwrap();
    put(&next, "d", Entry::Directory).unwrap();
    assert_eq!(state().0, 0o700);
    drop(next);
    assert_eq!(entries(dir.path()), 1, "no mark is left");
}

#[test]
fn directories_of_a_file_without_attributes_have_the_mode_of_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().to_owned(), false, true).unwrap();
    let mode = |name| fs::metadata(dir.path().join(name)).unwrap().mode();
    fs::create_dir(dir.path().join("new")).unwrap();
    put(&store, "a/b/c", Entry::File, b"x", None).unwrap();
    assert_eq!([mode("a"), mode("a/b")], [mode("new"); 2]);
}

#[test]
fn a_link_in_place_of_the_directory_of_parts_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let open = || Store::open(dir.path().to_owned(), false, true).unwrap();
    let store = open();
    let other = open();
    let parts = store.parts.directory().unwrap().to_owned();
    drop(other);
    assert!(!parts.exists(), "it was empty");
    symlink(outside.path(), &parts).unwrap();
    let (partial, _) = store.begin(&name("a"), Entry::File, None, Some(3)).unwrap();
    partial.write_at(b"abc", 0).unwrap();
    assert_eq!(entries(outside.path()), 0);
    partial.commit(3, &CommitRight::default()).unwrap();
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"abc");
    fs::remove_file(&parts).unwrap();
    let (_partial, _) = store.begin(&name("b"), Entry::File, None, Some(3)).unwrap();
    assert_eq!(entries(&parts), 1);
}

#[test]
fn parts_are_not_kept_in_a_directory_that_others_can_access() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let parts = dir.path().join(format!(".cbrst-partial.{}", nix::unistd::geteuid()));
    symlink(outside.path(), &parts).unwrap();
    assert!(Store::open(dir.path().to_owned(), false, true).unwrap().no_parts().is_some());
    fs::remove_file(&parts).unwrap();
    DirBuilder::new().mode(0o770).create(&parts).unwrap();
    fs::set_permissions(&parts, Permissions::from_mode(0o770)).unwrap();
    assert!(Store::open(dir.path().to_owned(), false, true).unwrap().no_parts().is_some());
}
