//! Stores files, which appear only when they are complete, and only below the store's directory.

use super::parts::{self, NoParts};
use super::target::{Root, Target};
use crate::protocol::{Attributes, Entry, FilePath, Reason, TransferId};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tempfile::{TempDir, TempPath};

/// The size of blocks that become holes if they are all zeros: that of most file systems.
const BLOCK: u64 = 4096;

/// Identifies a transfer, by peer as well, so that no peer can act on the transfers of another.
pub(super) type Key = (SocketAddr, TransferId);

/// A file that was stored under its name, or was not.
pub(super) type Stored = (Key, Result<PathBuf, Reason>);

/// A directory for files, with a private one inside for incomplete files. The private directory is removed
/// with this value.
#[derive(Debug)]
pub(super) struct Store {
    root: Root,
    overwrite: bool,
    /// Keeps other receivers from removing `private`. Closed first: NFS would keep an open file in it.
    _lock: File,
    private: TempDir,
    /// The directory of partial files that outlive this value, to be resumed. `None`: they are not wanted.
    parts: Option<Result<PathBuf, NoParts>>,
}

/// A file that does not have its name yet. It is removed if dropped before [`commit`](Self::commit) or
/// [`keep`](Self::keep).
#[derive(Debug)]
pub(super) struct Partial {
    // Dropped before the file, whose lock keeps other receivers away.
    path: TempPath,
    file: File,
    /// Whether it may be resumed later.
    is_part: bool,
    /// Whether blocks of zeros become holes.
    is_sparse: bool,
    target: Target,
}

/// The bytes of a file that exist before a transfer.
#[derive(Debug)]
pub(super) enum Base {
    Nothing,
    /// The bytes of the partial file, to be compared with the sender's, and their number.
    Part(File, u64),
    /// A file that has the name and the size already, and the directory that it is in.
    Present(File, OwnedFd),
}

/// The right to decide whether a file gets its name. The first thread that takes it has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Say(Arc<AtomicBool>);

impl Say {
    /// Takes the right. Returns whether no other thread took it before.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

impl Store {
    /// Opens a store in the directory `dir`.
    ///
    /// # Errors
    ///
    /// If the directory cannot be written to.
    pub(super) fn open(dir: PathBuf, overwrite: bool, resumes: bool) -> io::Result<Self> {
        parts::remove_abandoned(&dir);
        let (private, lock) = parts::private_directory(&dir)?;
        let parts = resumes.then(|| parts::open_directory(&dir));
        if let Some(Ok(parts)) = &parts {
            parts::remove_old(parts, SystemTime::now());
        }
        let root = Root::open(dir, private.path(), resumes)?;
        Ok(Self { root, overwrite, private, _lock: lock, parts })
    }

    /// Returns the directory of incomplete files.
    pub(super) fn private(&self) -> &Path {
        self.private.path()
    }

    /// Returns why no parts are kept although they are wanted.
    pub(super) fn no_parts(&self) -> Option<&NoParts> {
        self.parts.as_ref()?.as_ref().err()
    }

    /// Returns the directory of partial files, if they are kept.
    pub(super) fn parts(&self) -> Option<&Path> {
        self.parts.as_ref()?.as_deref().ok()
    }

    /// Begins a file, a directory or a link, of `size` bytes if that is known.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] unless files may be replaced or the existing one has this size, [`Reason::OtherKind`],
    /// [`Reason::NoDirectory`], [`Reason::NameInUse`], or the system's error.
    pub(super) fn begin(
        &self,
        name: &FilePath,
        entry: Entry,
        attributes: Option<Attributes>,
        size: Option<u64>,
    ) -> Result<(Partial, Base), Reason> {
        let (root, overwrite) = (self.root.clone(), self.overwrite);
        let (name, takes_same) = (name.clone(), self.parts().is_some());
        let target = Target { root, name, entry, attributes, overwrite, takes_same };
        // A source without a size, such as a pipe, cannot be read again from the middle.
        let parts = self.parts().filter(|_| entry == Entry::File);
        // It may have been removed since the start, and its name taken.
        let parts = parts.filter(|_| parts::open_directory(self.root.path()).is_ok());
        let size = size.filter(|_| parts.is_some());
        let present = target.check(size)?;
        let failed = |error| Reason::of_write_error(&error, 0);
        let (file, path, is_part) = match parts.filter(|_| size.is_some()) {
            Some(parts) => {
                let path =
                    parts.join(blake3::hash(target.name.as_str().as_bytes()).to_hex().as_str());
                let file = parts::open(&path).map_err(|error| match error.kind() {
                    // Another receiver has it, or has just given it its name.
                    io::ErrorKind::WouldBlock | io::ErrorKind::NotFound => Reason::NameInUse(0),
                    _ => failed(error),
                })?;
                (file, TempPath::try_from_path(path).map_err(failed)?, true)
            }
            None => {
                let file = tempfile::Builder::new()
                    // The mode of any new file, from which the user's mask is taken away.
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(&self.private);
                let (file, path) = file.map_err(failed)?.into_parts();
                (file, path, false)
            }
        };
        let partial = Partial { file, path, is_part, is_sparse: false, target };
        let base = match present {
            Some((file, directory)) => Base::Present(file, directory),
            None => partial.base().map_err(failed)?,
        };
        Ok((partial, base))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It stays unless it is empty.
        if let Some(parts) = self.parts() {
            let _ = fs::remove_dir(parts);
        }
    }
}

impl Partial {
    /// Sets whether blocks of zeros become holes from now on. By default they do not.
    pub(super) const fn set_sparse(&mut self, sparse: bool) {
        self.is_sparse = sparse;
    }

    /// Writes bytes where none were written before.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !self.is_sparse {
            return self.file.write_all_at(bytes, offset);
        }
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            let to_boundary = (BLOCK - at % BLOCK) as usize;
            let (block, after) = rest.split_at(to_boundary.min(rest.len()));
            if block.iter().any(|byte| *byte != 0) {
                self.file.write_all_at(block, at)?;
            }
            (rest, at) = (after, at + block.len() as u64);
        }
        // A hole at the end does not extend the file by itself.
        if self.len() < at { self.file.set_len(at) } else { Ok(()) }
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn base(&self) -> io::Result<Base> {
        let len = self.file.metadata()?.len();
        Ok(if len == 0 { Base::Nothing } else { Base::Part(self.file.try_clone()?, len) })
    }

    /// Returns the number of bytes in the file.
    pub(super) fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Removes all bytes after the first `len`.
    pub(super) fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    /// Whether a file that has the name may be replaced.
    pub(super) const fn replaces(&self) -> bool {
        self.target.overwrite
    }

    /// Keeps the first `len` bytes beyond this value, if the file can be resumed. Returns whether they are kept.
    pub(super) fn keep(self, len: u64) -> bool {
        self.is_part && len > 0 && self.truncate(len).is_ok() && self.path.keep().is_ok()
    }

    /// Makes the file durable and gives it its name atomically. May take long; until the name is given, a
    /// thread that takes `say` can prevent it.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] if the name was taken meanwhile, [`Reason::Interrupted`] if `say` was, or the
    /// system's error. Nothing remains of the file then.
    pub(super) fn commit(self, size: u64, say: &Say) -> Result<PathBuf, Reason> {
        let failed = |error: io::Error| Reason::of_write_error(&error, size);
        let Self { file, path, target, .. } = self;
        let path = match target.entry {
            Entry::File => {
                target.set_attributes(&file).and_then(|()| file.sync_all()).map_err(failed)?;
                path
            }
            Entry::Link => link_beside(&file, size, &path, target.attributes).map_err(failed)?,
            Entry::Directory => path,
        };
        if !say.take() {
            return Err(Reason::Interrupted);
        }
        match target.entry {
            Entry::Directory => target.make_directory()?,
            Entry::File | Entry::Link => match target.rename(&path) {
                Err(Reason::Exists) if target.is_same(&path, size)? => {}
                result => {
                    result?;
                    // The old name may be another receiver's by now.
                    let _ = path.keep();
                }
            },
        }
        Ok(target.path())
    }

    /// Keeps the existing file, whose bytes are the same, and sets its attributes if files may be replaced.
    ///
    /// # Errors
    ///
    /// [`Reason::Interrupted`] if another thread took `say`, or the system's error.
    pub(super) fn confirm(self, say: &Say) -> Result<PathBuf, Reason> {
        if !say.take() {
            return Err(Reason::Interrupted);
        }
        if self.target.overwrite {
            self.target.update()?;
        }
        Ok(self.target.path())
    }
}

/// Creates a symbolic link beside `file`, whose bytes are its target.
fn link_beside(
    file: &File,
    size: u64,
    path: &Path,
    attributes: Option<Attributes>,
) -> io::Result<TempPath> {
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let link = path.with_extension("link");
    symlink(OsStr::from_bytes(&bytes), &link)?;
    let link = TempPath::try_from_path(link)?;
    if let Some(Attributes { seconds, nanoseconds, .. }) = attributes {
        let modified = TimeSpec::new(seconds, nanoseconds.into());
        let flags = UtimensatFlags::NoFollowSymlink;
        utimensat(AT_FDCWD, &*link, &TimeSpec::UTIME_OMIT, &modified, flags)?;
    }
    Ok(link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use parts::KEPT;
    use std::fs::{DirBuilder, FileTimes};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
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
        let path = partial.commit(11, &Say::default()).unwrap();
        assert_eq!(path, dir.path().join("a"));
        assert_eq!(fs::read(path).unwrap(), b"hello world");
        drop(store);
        assert_eq!(entries(dir.path()), 1);
    }

    #[test]
    fn a_file_that_was_given_up_never_gets_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false, false).unwrap();
        let (partial, say) = (begin(&store, "a").unwrap(), Say::default());
        assert!(say.take());
        assert_eq!(partial.commit(0, &say), Err(Reason::Interrupted));
        drop(store);
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
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
    fn what_exists_is_kept_even_when_it_came_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false, false).unwrap();
        let partial = begin(&store, "a").unwrap();
        fs::write(dir.path().join("a"), "old").unwrap();
        assert_eq!(partial.commit(0, &Say::default()), Err(Reason::Exists));
        assert_eq!(begin(&store, "a").unwrap_err(), Reason::Exists);
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn overwriting_replaces_a_link_and_not_what_it_leads_to() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = outside.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("a")).unwrap();
        let keeping = Store::open(dir.path().to_owned(), false, false).unwrap();
        assert_eq!(begin(&keeping, "a").unwrap_err(), Reason::Exists);
        let store = Store::open(dir.path().to_owned(), true, false).unwrap();
        let partial = begin(&store, "a").unwrap();
        partial.write_at(b"new", 0).unwrap();
        partial.commit(3, &Say::default()).unwrap();
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
        partial.commit(bytes.len() as u64, &Say::default())
    }

    #[test]
    fn no_link_on_the_way_is_followed() {
        for overwrite in [false, true] {
            let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
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
    fn a_link_that_comes_while_a_file_is_under_way_is_not_followed() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::open(dir.path().to_owned(), true, false).unwrap();
        let partial = begin(&store, "d/x").unwrap();
        symlink(outside.path(), dir.path().join("d")).unwrap();
        assert_eq!(partial.commit(0, &Say::default()), Err(Reason::NoDirectory));
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
    fn a_directory_that_was_there_keeps_its_attributes_unless_it_may_be_replaced() {
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
    fn a_part_that_is_kept_is_there_again_until_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path().to_owned(), false, true).unwrap();
        let begin = |store: &Store, size| store.begin(&name("a/b"), Entry::File, None, size);
        let store = open();
        let (part, base) = begin(&store, Some(10)).unwrap();
        assert!(matches!(base, Base::Nothing));
        part.write_at(b"hello world", 0).unwrap();
        assert_eq!(begin(&store, Some(10)).unwrap_err(), Reason::NameInUse(0));
        assert!(part.keep(5));
        drop(store);
        let store = open();
        assert!(!begin(&store, None).unwrap().0.keep(5), "its size is not known");
        let (part, base) = begin(&store, Some(10)).unwrap();
        assert!(matches!(base, Base::Part(_, 5)), "{base:?}");
        assert!(part.keep(5));
        let path = fs::read_dir(store.parts().unwrap()).unwrap().next().unwrap().unwrap().path();
        // The sender's file is old.
        File::open(&path).unwrap().set_times(FileTimes::new().set_modified(UNIX_EPOCH)).unwrap();
        let (soon, late) = [KEPT - HOUR, KEPT + HOUR].map(|time| SystemTime::now() + time).into();
        parts::remove_old(store.parts().unwrap(), soon);
        assert!(path.exists());
        drop(base);
        let (used, _) = begin(&store, Some(10)).unwrap();
        parts::remove_old(store.parts().unwrap(), late);
        assert!(path.exists(), "a receiver uses it");
        assert!(used.keep(5));
        parts::remove_old(store.parts().unwrap(), late);
        assert!(!path.exists());
        drop(store);
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn a_directory_that_one_receiver_has_begun_gets_its_attributes_from_the_next() {
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
    fn a_name_that_is_taken_while_there_is_no_directory_of_parts_is_not_followed() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = || Store::open(dir.path().to_owned(), false, true).unwrap();
        let (store, other) = (open(), open());
        let parts = store.parts().unwrap().to_owned();
        drop(other);
        assert!(!parts.exists(), "it was empty");
        symlink(outside.path(), &parts).unwrap();
        let (partial, _) = store.begin(&name("a"), Entry::File, None, Some(3)).unwrap();
        partial.write_at(b"abc", 0).unwrap();
        assert_eq!(entries(outside.path()), 0);
        partial.commit(3, &Say::default()).unwrap();
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"abc");
        fs::remove_file(&parts).unwrap();
        let (_partial, _) = store.begin(&name("b"), Entry::File, None, Some(3)).unwrap();
        assert_eq!(entries(&parts), 1);
    }

    #[test]
    fn parts_are_not_put_where_others_can_reach_them() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let parts = dir.path().join(format!(".cbrst-partial.{}", nix::unistd::geteuid()));
        symlink(outside.path(), &parts).unwrap();
        assert!(Store::open(dir.path().to_owned(), false, true).unwrap().no_parts().is_some());
        fs::remove_file(&parts).unwrap();
        DirBuilder::new().mode(0o770).create(&parts).unwrap();
        fs::set_permissions(&parts, Permissions::from_mode(0o770)).unwrap();
        assert!(Store::open(dir.path().to_owned(), false, true).unwrap().no_parts().is_some());
    }
}
