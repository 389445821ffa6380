//! Files that appear only when they are whole, and only below the store's directory.

use crate::protocol::{Attributes, Entry, FilePath, Reason};
use core::time::Duration;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, open, openat, readlinkat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fstat, fstatat, mkdirat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{geteuid, linkat};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{
    DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tempfile::{TempDir, TempPath};

/// Directories on the way to a file, until they are offered themselves.
const ON_THE_WAY: Mode = Mode::S_IRWXU;

/// How long parts of files are kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A directory for files, with a private one inside for those that are not whole yet. The private
/// one goes with this value.
#[derive(Debug)]
pub(super) struct Store {
    root: Root,
    overwrite: bool,
    private: TempDir,
    /// Where parts of files are that outlive this value, to be resumed.
    parts: Option<PathBuf>,
}

/// The directory that nothing leads out of.
#[derive(Clone, Debug)]
struct Root {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    /// The permissions that the user's mask leaves to new files and directories.
    mask: u32,
    /// Device and inode of each directory that was created here: all others are somebody else's.
    created: Arc<Mutex<HashSet<(u64, u64)>>>,
}

/// A file that has no name yet. What is dropped before [`commit`](Self::commit) or [`keep`](Self::keep) is
/// removed.
#[derive(Debug)]
pub(super) struct Partial {
    file: File,
    path: TempPath,
    /// Whether it may be resumed later.
    is_part: bool,
    target: Target,
}

/// What there is of a file before a transfer.
#[derive(Debug)]
pub(super) enum Base {
    Nothing,
    /// The partial file is not empty: a file that has its bytes, to be compared with the sender's, and how many.
    Part(File, u64),
    /// A file with the name and the size.
    Present(File),
}

/// What is to be made of the bytes.
#[derive(Clone, Debug)]
struct Target {
    root: Root,
    name: FilePath,
    entry: Entry,
    attributes: Option<Attributes>,
    overwrite: bool,
    /// Whether what is there already, and is the same, is as good as stored.
    takes_same: bool,
}

/// The right to decide whether a file gets its name: the first thread that takes it has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Say(Arc<AtomicBool>);

impl Say {
    /// Whether nobody took it before.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

impl Store {
    /// # Errors
    ///
    /// When the directory cannot be written to.
    pub(super) fn open(dir: PathBuf, overwrite: bool, resumes: bool) -> io::Result<Self> {
        // On the same file system as its surroundings, so that files can be renamed out of it;
        // and closed to others, who could put links where files are about to be written.
        let private = tempfile::Builder::new()
            .prefix(FilePath::TEMPORARY)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&dir)?;
        let fd = open(&dir, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        let parts = if resumes { parts_in(&dir) } else { None };
        // The mask cannot be read without being set for all threads, but a new file shows it.
        let all = Permissions::from_mode(0o777);
        let probe = tempfile::Builder::new().permissions(all).tempfile_in(&private)?;
        let mask = probe.as_file().metadata()?.mode() & 0o777;
        let root = Root { fd: Arc::new(fd), path: dir, mask, created: Arc::default() };
        Ok(Self { root, overwrite, private, parts })
    }

    /// The directory of what is not whole.
    pub(super) fn private(&self) -> &Path {
        self.private.path()
    }

    /// Begins a file, a directory or a link, of `size` bytes if that is known.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] unless files may be replaced or there is one of this size, [`Reason::NoDirectory`],
    /// [`Reason::NameInUse`], or what the system says.
    pub(super) fn begin(
        &self,
        name: &FilePath,
        entry: Entry,
        attributes: Option<Attributes>,
        size: Option<u64>,
    ) -> Result<(Partial, Base), Reason> {
        let (root, overwrite) = (self.root.clone(), self.overwrite);
        let (name, takes_same) = (name.clone(), self.parts.is_some());
        let target = Target { root, name, entry, attributes, overwrite, takes_same };
        // What has no size, such as a pipe, cannot be read again from the middle.
        let parts = self.parts.as_ref().filter(|_| entry == Entry::File);
        let size = size.filter(|_| parts.is_some());
        let present = target.check(size)?;
        let failed = |error| Reason::of_write_error(&error, 0);
        let (file, path, is_part) = match parts.filter(|_| size.is_some()) {
            Some(parts) => {
                let path =
                    parts.join(blake3::hash(target.name.as_str().as_bytes()).to_hex().as_str());
                let file = open_part(&path).map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => Reason::NameInUse,
                    _ => failed(error),
                })?;
                (file, TempPath::try_from_path(path).map_err(failed)?, true)
            }
            None => {
                let file = tempfile::Builder::new()
                    // As for any new file: less what the user's mask takes away.
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(&self.private);
                let (file, path) = file.map_err(failed)?.into_parts();
                (file, path, false)
            }
        };
        let partial = Partial { file, path, is_part, target };
        let base = match present {
            Some(file) => Base::Present(file),
            None => partial.base().map_err(failed)?,
        };
        Ok((partial, base))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It stays if there is anything in it.
        if let Some(parts) = &self.parts {
            let _ = fs::remove_dir(parts);
        }
    }
}

/// The directory of parts in `dir`, without those that are too old; `None` if somebody else has its name.
fn parts_in(dir: &Path) -> Option<PathBuf> {
    let user = geteuid();
    let path = dir.join(format!("{}partial.{user}", FilePath::TEMPORARY));
    // It may be there.
    let _ = DirBuilder::new().mode(0o700).create(&path);
    let metadata = fs::symlink_metadata(&path).ok()?;
    let is_ours = metadata.uid() == user.as_raw() && metadata.mode() & 0o077 == 0;
    if !metadata.is_dir() || !is_ours {
        return None;
    }
    for entry in fs::read_dir(&path).ok()?.flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified());
        if age.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > KEPT)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Some(path)
}

/// Opens a part for this process alone.
fn open_part(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW.bits();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o666).custom_flags(flags);
    let file = options.open(path)?;
    file.try_lock()?;
    // Whoever had the lock may have given the file its name, or removed it.
    let (here, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    if here.ino() == there.ino() { Ok(file) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

impl Root {
    /// The directory at the end of `names`, without following links; `None`: one is missing, and none is to be
    /// created.
    fn walk<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        creates: bool,
    ) -> Result<Option<OwnedFd>, Reason> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut at = self.fd.try_clone().map_err(|error| Reason::of_write_error(&error, 0))?;
        for name in names {
            let open = || openat(&at, name, flags, Mode::empty());
            let next = match open() {
                Err(Errno::ENOENT) if !creates => return Ok(None),
                Err(Errno::ENOENT) => match mkdirat(&at, name, ON_THE_WAY) {
                    Ok(()) => open().inspect(|directory| self.note_created(directory)),
                    // Somebody else was faster.
                    Err(Errno::EEXIST) => open(),
                    Err(error) => Err(error),
                },
                result => result,
            };
            at = next.map_err(refusal)?;
        }
        Ok(Some(at))
    }

    fn note_created(&self, directory: &OwnedFd) {
        if let Ok(stat) = fstat(directory) {
            let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
            created.insert((stat.st_dev, stat.st_ino));
        }
    }

    fn has_created(&self, directory: &File) -> io::Result<bool> {
        let metadata = directory.metadata()?;
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(created.contains(&(metadata.dev(), metadata.ino())))
    }
}

fn refusal(error: Errno) -> Reason {
    match error {
        Errno::ELOOP | Errno::ENOTDIR => Reason::NoDirectory,
        Errno::ENAMETOOLONG | Errno::EINVAL => Reason::BadName,
        Errno::EEXIST | Errno::EISDIR | Errno::ENOTEMPTY => Reason::Exists,
        error => Reason::of_write_error(&error.into(), 0),
    }
}

impl Target {
    /// Finds out early what would fail in the end. Returns the file that is there and has `size` bytes.
    fn check(&self, size: Option<u64>) -> Result<Option<File>, Reason> {
        let (directories, last) = self.name.split();
        let Some(parent) = self.root.walk(directories, false)? else { return Ok(None) };
        let (kind, len) = match fstatat(&parent, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => (SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT, stat.st_size),
            Err(Errno::ENOENT) => return Ok(None),
            // The file system does not take such a name.
            Err(_) => return Err(Reason::BadName),
        };
        if kind == SFlag::S_IFREG && size.is_some_and(|size| len as u64 == size && size > 0) {
            let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            if let Ok(file) = openat(&parent, last, flags, Mode::empty()) {
                return Ok(Some(file.into()));
            }
        }
        let is_directory = kind == SFlag::S_IFDIR;
        // What is in them shows in the end: that a file is empty, and where a link leads.
        let may_be_same = match self.entry {
            Entry::File => kind == SFlag::S_IFREG && len == 0 && size.is_none(),
            Entry::Link => kind == SFlag::S_IFLNK,
            Entry::Directory => false,
        };
        if may_be_same && self.takes_same {
            return Ok(None);
        }
        let fits = match self.entry {
            Entry::Directory => is_directory,
            Entry::File | Entry::Link => self.overwrite && !is_directory,
        };
        if fits { Ok(None) } else { Err(Reason::Exists) }
    }

    fn path(&self) -> PathBuf {
        self.root.path.join(self.name.as_str())
    }

    /// Creates the directory if it is missing. Sets its attributes only if this store
    /// created it: an older directory may hold private files of its owner.
    fn make_directory(&self) -> Result<(), Reason> {
        let (directories, last) = self.name.split();
        let directory = self.root.walk(directories.chain([last]), true)?;
        let directory = File::from(directory.ok_or(Reason::NoDirectory)?);
        let failed = |error: io::Error| Reason::of_write_error(&error, 0);
        if self.overwrite || self.root.has_created(&directory).map_err(failed)? {
            self.set_attributes(&directory).map_err(failed)?;
        }
        directory.sync_all().map_err(failed)
    }

    fn set_attributes(&self, file: &File) -> io::Result<()> {
        let Some(attributes) = self.attributes else { return Ok(()) };
        let mode = u32::from(attributes.permissions) & self.root.mask;
        file.set_permissions(Permissions::from_mode(mode))?;
        // What no clock here can express stays as it is.
        match modified(attributes) {
            Some(time) => file.set_times(FileTimes::new().set_modified(time)),
            None => Ok(()),
        }
    }

    /// Whether the empty file or the link that has the name is the same as the one at `from`, of `size` bytes.
    fn is_same(&self, from: &Path, size: u64) -> Result<bool, Reason> {
        let (directories, last) = self.name.split();
        let Some(parent) = self.root.walk(directories, false)?.filter(|_| self.takes_same) else {
            return Ok(false);
        };
        Ok(match self.entry {
            Entry::File => {
                let there = fstatat(&parent, last, AtFlags::AT_SYMLINK_NOFOLLOW);
                let is_empty = |stat: FileStat| {
                    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
                        && stat.st_size == 0
                };
                size == 0 && there.is_ok_and(is_empty)
            }
            Entry::Link => readlinkat(&parent, last).ok() == readlinkat(AT_FDCWD, from).ok(),
            Entry::Directory => false,
        })
    }

    /// Gives what is at `from` its name, at once and whole.
    fn rename(&self, from: &Path) -> Result<(), Reason> {
        let (directories, last) = self.name.split();
        let parent = self.root.walk(directories, true)?.ok_or(Reason::NoDirectory)?;
        let flags = match self.overwrite {
            true => RenameFlags::empty(),
            false => RenameFlags::RENAME_NOREPLACE,
        };
        match renameat2(AT_FDCWD, from, &parent, last, flags) {
            // Not every file system can refuse to replace.
            Err(Errno::EINVAL | Errno::ENOSYS) if !self.overwrite => {
                linkat(AT_FDCWD, from, &parent, last, AtFlags::empty()).map_err(refusal)?;
            }
            result => result.map_err(refusal)?,
        }
        // The name is there. Some file systems cannot make it more durable than that.
        let _ = File::from(parent).sync_all();
        Ok(())
    }
}

/// When the file was modified, if that can be expressed.
fn modified(attributes: Attributes) -> Option<SystemTime> {
    let whole = Duration::from_secs(attributes.seconds.unsigned_abs());
    let base = match attributes.seconds {
        ..0 => SystemTime::UNIX_EPOCH.checked_sub(whole),
        0.. => SystemTime::UNIX_EPOCH.checked_add(whole),
    };
    base?.checked_add(Duration::from_nanos(attributes.nanoseconds.into()))
}

impl Partial {
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn base(&self) -> io::Result<Base> {
        let len = self.file.metadata()?.len();
        Ok(if len == 0 { Base::Nothing } else { Base::Part(self.file.try_clone()?, len) })
    }

    /// Bytes in it.
    pub(super) fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Forgets what is behind the first `len` bytes.
    pub(super) fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    /// Whether the file may be replaced that has the name.
    pub(super) const fn replaces(&self) -> bool {
        self.target.overwrite
    }

    /// Where the file has its name, or would have it.
    pub(super) fn target(&self) -> PathBuf {
        self.target.path()
    }

    /// Lets the first `len` bytes outlive this value, if it may be resumed; whether it does.
    pub(super) fn keep(self, len: u64) -> bool {
        self.is_part && len > 0 && self.truncate(len).is_ok() && self.path.keep().is_ok()
    }

    /// Makes the file durable and gives it its name, at once and whole. May take long; until the
    /// name is given, a thread that takes `say` can prevent it.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] when the name was taken meanwhile, [`Reason::Interrupted`] when `say`
    /// was, or what the system says. Nothing is left then.
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
                result => result?,
            },
        }
        Ok(target.path())
    }
}

/// A symbolic link that leads where the bytes of `file` say, beside the file.
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
        assert_eq!(entries(store.private()), 0);
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
        assert_eq!(begin(&store, "a").unwrap_err(), Reason::Exists);
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
        let directory = put(&store, "d", Entry::Directory, b"", Some(attributes)).unwrap();
        assert_eq!(set(directory), (0o750, 1_000_000, 7));
        assert_eq!(entries(store.private()), 0);
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
        assert_eq!(begin(&store, Some(10)).unwrap_err(), Reason::NameInUse);
        assert!(part.keep(5));
        drop(store);
        let store = open();
        assert!(!begin(&store, None).unwrap().0.keep(5), "its size is not known");
        let (part, base) = begin(&store, Some(10)).unwrap();
        assert!(matches!(base, Base::Part(_, 5)), "{base:?}");
        assert!(part.keep(5));
        let parts = store.parts.clone().unwrap();
        let path = fs::read_dir(&parts).unwrap().next().unwrap().unwrap().path();
        let old = SystemTime::now() - KEPT - Duration::from_secs(1);
        File::open(&path).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
        drop(store);
        assert!(path.exists());
        drop(open());
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn parts_are_not_put_where_others_can_reach_them() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let parts = dir.path().join(format!(".cbrst-partial.{}", geteuid()));
        symlink(outside.path(), &parts).unwrap();
        assert!(Store::open(dir.path().to_owned(), false, true).unwrap().parts.is_none());
        fs::remove_file(&parts).unwrap();
        DirBuilder::new().mode(0o770).create(&parts).unwrap();
        fs::set_permissions(&parts, Permissions::from_mode(0o770)).unwrap();
        assert!(Store::open(dir.path().to_owned(), false, true).unwrap().parts.is_none());
    }
}
