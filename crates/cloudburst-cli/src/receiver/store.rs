//! Files that appear only when they are whole, and only below the store's directory.

use crate::protocol::{Attributes, Entry, FilePath, Reason};
use core::time::Duration;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, open, openat, renameat2};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, fstatat, mkdirat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::linkat;
use std::ffi::OsStr;
use std::fs::{File, FileTimes, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tempfile::{NamedTempFile, TempDir, TempPath};

/// Directories on the way to a file, until they are offered themselves.
const ON_THE_WAY: Mode = Mode::S_IRWXU;

/// A directory for files, with a private one inside for those that are not whole yet. The private
/// one goes with this value.
#[derive(Debug)]
pub(super) struct Store {
    root: Root,
    overwrite: bool,
    private: TempDir,
}

/// The directory that nothing leads out of.
#[derive(Clone, Debug)]
struct Root {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

/// A file that has no name yet. What is dropped before [`commit`](Self::commit) is removed.
#[derive(Debug)]
pub(super) struct Partial {
    file: NamedTempFile,
    target: Target,
}

/// What is to be made of the bytes.
#[derive(Clone, Debug)]
struct Target {
    root: Root,
    name: FilePath,
    entry: Entry,
    attributes: Option<Attributes>,
    overwrite: bool,
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
    pub(super) fn open(dir: PathBuf, overwrite: bool) -> io::Result<Self> {
        // On the same file system as its surroundings, so that files can be renamed out of it;
        // and closed to others, who could put links where files are about to be written.
        let private = tempfile::Builder::new()
            .prefix(FilePath::TEMPORARY)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&dir)?;
        let fd = open(&dir, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Self { root: Root { fd: Arc::new(fd), path: dir }, overwrite, private })
    }

    /// The directory of what is not whole.
    pub(super) fn private(&self) -> &Path {
        self.private.path()
    }

    /// Begins a file, a directory or a link.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] unless files may be replaced, [`Reason::NoDirectory`], or what the system says.
    pub(super) fn begin(
        &self,
        name: &FilePath,
        entry: Entry,
        attributes: Option<Attributes>,
    ) -> Result<Partial, Reason> {
        let (root, overwrite) = (self.root.clone(), self.overwrite);
        let target = Target { root, name: name.clone(), entry, attributes, overwrite };
        target.check()?;
        let file = tempfile::Builder::new()
            // As for any new file: less what the user's mask takes away.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&self.private)
            .map_err(|error| Reason::of_write_error(&error, 0))?;
        Ok(Partial { file, target })
    }
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
            let mut next = openat(&at, name, flags, Mode::empty());
            if matches!(next, Err(Errno::ENOENT)) {
                if !creates {
                    return Ok(None);
                }
                match mkdirat(&at, name, ON_THE_WAY) {
                    // Somebody else may have been faster.
                    Ok(()) | Err(Errno::EEXIST) => next = openat(&at, name, flags, Mode::empty()),
                    Err(error) => return Err(refusal(error)),
                }
            }
            at = next.map_err(refusal)?;
        }
        Ok(Some(at))
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
    /// Finds out early what would fail in the end.
    fn check(&self) -> Result<(), Reason> {
        let (directories, last) = self.name.split();
        let Some(parent) = self.root.walk(directories, false)? else { return Ok(()) };
        let kind = match fstatat(&parent, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT,
            Err(Errno::ENOENT) => return Ok(()),
            // The file system does not take such a name.
            Err(_) => return Err(Reason::BadName),
        };
        let is_directory = kind == SFlag::S_IFDIR;
        let fits = match self.entry {
            Entry::Directory => is_directory,
            Entry::File | Entry::Link => self.overwrite && !is_directory,
        };
        if fits { Ok(()) } else { Err(Reason::Exists) }
    }

    fn path(&self) -> PathBuf {
        self.root.path.join(self.name.as_str())
    }

    /// Creates the directory if it is missing, and gives it its attributes.
    fn make_directory(&self) -> Result<(), Reason> {
        let (directories, last) = self.name.split();
        let directory = self.root.walk(directories.chain([last]), true)?;
        let directory = File::from(directory.ok_or(Reason::NoDirectory)?);
        let failed = |error: io::Error| Reason::of_write_error(&error, 0);
        self.set_attributes(&directory).and_then(|()| directory.sync_all()).map_err(failed)
    }

    fn set_attributes(&self, file: &File) -> io::Result<()> {
        let Some(attributes) = self.attributes else { return Ok(()) };
        file.set_permissions(Permissions::from_mode(attributes.permissions.into()))?;
        // What no clock here can express stays as it is.
        match modified(attributes) {
            Some(time) => file.set_times(FileTimes::new().set_modified(time)),
            None => Ok(()),
        }
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
        self.file.as_file().write_all_at(bytes, offset)
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.as_file().read_exact_at(bytes, offset)
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
        let Self { file, target } = self;
        let (file, path) = file.into_parts();
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
            Entry::File | Entry::Link => target.rename(&path)?,
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
    use std::fs;

    fn name(text: &str) -> FilePath {
        FilePath::new(text).unwrap()
    }

    fn begin(store: &Store, text: &str) -> Result<Partial, Reason> {
        store.begin(&name(text), Entry::File, None)
    }

    fn entries(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_committed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false).unwrap();
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
        let store = Store::open(dir.path().to_owned(), false).unwrap();
        let (partial, say) = (begin(&store, "a").unwrap(), Say::default());
        assert!(say.take());
        assert_eq!(partial.commit(0, &say), Err(Reason::Interrupted));
        drop(store);
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false).unwrap();
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
        let store = Store::open(dir.path().to_owned(), false).unwrap();
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
        let keeping = Store::open(dir.path().to_owned(), false).unwrap();
        assert_eq!(begin(&keeping, "a").unwrap_err(), Reason::Exists);
        let store = Store::open(dir.path().to_owned(), true).unwrap();
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
        let store = Store::open(dir.path().to_owned(), true).unwrap();
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
        let partial = store.begin(&name(text), entry, attributes)?;
        partial.write_at(bytes, 0).unwrap();
        partial.commit(bytes.len() as u64, &Say::default())
    }

    #[test]
    fn no_link_on_the_way_is_followed() {
        for overwrite in [false, true] {
            let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let store = Store::open(dir.path().to_owned(), overwrite).unwrap();
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
        let store = Store::open(dir.path().to_owned(), true).unwrap();
        let partial = store.begin(&name("d/x"), Entry::File, None).unwrap();
        symlink(outside.path(), dir.path().join("d")).unwrap();
        assert_eq!(partial.commit(0, &Say::default()), Err(Reason::NoDirectory));
        assert_eq!(entries(outside.path()), 0);
    }

    #[test]
    fn attributes_are_set_and_special_bits_do_not_exist() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false).unwrap();
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
}
