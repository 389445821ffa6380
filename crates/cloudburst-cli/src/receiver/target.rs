//! Gives files their names: below the receiver's directory, relative to descriptors, and never through a link.

use super::parts;
use crate::protocol::{Attributes, Entry, FilePath, Reason};
use core::time::Duration;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, open, openat, readlinkat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, fsync, linkat, unlinkat};
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The mode of directories whose attributes follow, until they do.
const ON_THE_WAY: Mode = Mode::S_IRWXU;

/// The receiver's directory, which no path leads out of.
#[derive(Clone, Debug)]
pub(super) struct Root {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    /// The permissions that the user's mask allows to new files and directories.
    mask: u32,
    /// The store's private directory.
    private: PathBuf,
    /// Whether transfers are resumed, also by another receiver.
    resumes: bool,
}

/// What is to be created from the bytes, and where.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) root: Root,
    pub(super) name: FilePath,
    pub(super) entry: Entry,
    pub(super) attributes: Option<Attributes>,
    pub(super) overwrite: bool,
    /// Whether an existing entry that is the same counts as stored.
    pub(super) takes_same: bool,
}

impl Root {
    /// Opens the directory `dir`. `private` is a directory inside it. `resumes`: another receiver may continue what
    /// this one began.
    pub(super) fn open(dir: PathBuf, private: &Path, resumes: bool) -> io::Result<Self> {
        let fd = open(&dir, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        // The mask cannot be read without being set for all threads, but a new file shows it.
        let all = Permissions::from_mode(0o777);
        let probe = tempfile::Builder::new().permissions(all).tempfile_in(private)?;
        let mask = probe.as_file().metadata()?.mode() & 0o777;
        Ok(Self { fd: Arc::new(fd), path: dir, mask, private: private.to_owned(), resumes })
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory at the end of `names`, without following links. Missing ones are created with the mode
    /// `creates`. Returns `None` if one is missing and `creates` is `None`.
    fn walk<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
        creates: Option<Mode>,
    ) -> Result<Option<OwnedFd>, Reason> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut at = self.fd.try_clone().map_err(|error| Reason::of_write_error(&error, 0))?;
        for name in names {
            let open = || openat(&at, name, flags, Mode::empty());
            let next = match (open(), creates) {
                (Err(Errno::ENOENT), None) => return Ok(None),
                (Err(Errno::ENOENT), Some(mode)) => match mkdirat(&at, name, mode) {
                    Ok(()) => {
                        let directory = open().map_err(refusal)?;
                        if mode == ON_THE_WAY
                            && let Err(error) = self.mark(&directory)
                        {
                            // Nothing would set its attributes.
                            let _ = unlinkat(&at, name, UnlinkatFlags::RemoveDir);
                            return Err(Reason::of_write_error(&error, 0));
                        }
                        // Some file systems cannot sync a directory.
                        let _ = fsync(&at);
                        Ok(directory)
                    }
                    // Another thread or process was faster.
                    Err(Errno::EEXIST) => open(),
                    Err(error) => Err(error),
                },
                (result, _) => result,
            };
            at = next.map_err(refusal)?;
        }
        Ok(Some(at))
    }

    /// Marks a directory whose attributes follow: it was created here, and all without a mark existed before.
    fn mark(&self, directory: &OwnedFd) -> io::Result<()> {
        let directory = File::from(directory.try_clone()?);
        let flags = OFlag::O_NOFOLLOW.bits();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let mark = || {
            let path = self.mark_of(&directory)?;
            options.open(&path).map(|_| path)
        };
        // Another receiver that ends removes the directory of marks if it is empty.
        let path = mark().or_else(|error| {
            if error.kind() == io::ErrorKind::NotFound { mark() } else { Err(error) }
        })?;
        // It must outlive a loss of power if the directory does.
        if let Some(Ok(marks)) = path.parent().map(File::open) {
            let _ = marks.sync_all();
        }
        Ok(())
    }

    /// Returns the path of the mark of `directory`. Its birth time distinguishes it from a later one
    /// with the same inode.
    fn mark_of(&self, directory: &File) -> io::Result<PathBuf> {
        let metadata = directory.metadata()?;
        let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let born = born.unwrap_or_default().as_nanos();
        let name = format!("directory.{}.{}.{born}", metadata.dev(), metadata.ino());
        let parts = if self.resumes { parts::open_directory(&self.path).ok() } else { None };
        Ok(parts.as_ref().unwrap_or(&self.private).join(name))
    }
}

fn refusal(error: Errno) -> Reason {
    match error {
        Errno::ELOOP | Errno::ENOTDIR => Reason::NoDirectory,
        Errno::ENAMETOOLONG | Errno::EINVAL => Reason::BadName,
        Errno::EEXIST => Reason::Exists,
        Errno::EISDIR | Errno::ENOTEMPTY => Reason::OtherKind,
        error => Reason::of_write_error(&error.into(), 0),
    }
}

impl Target {
    /// Finds errors early that would occur at the end. Returns the existing file, and the directory that it is in, if
    /// it has `size` bytes.
    pub(super) fn check(&self, size: Option<u64>) -> Result<Option<(File, OwnedFd)>, Reason> {
        let (directories, last) = self.name.split();
        let Some(parent) = self.root.walk(directories, None)? else { return Ok(None) };
        let (kind, len) = match fstatat(&parent, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => (SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT, stat.st_size),
            Err(Errno::ENOENT) => return Ok(None),
            // The file system does not take such a name.
            Err(_) => return Err(Reason::BadName),
        };
        if kind == SFlag::S_IFREG && size.is_some_and(|size| len as u64 == size && size > 0) {
            let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            if let Ok(file) = openat(&parent, last, flags, Mode::empty()) {
                return Ok(Some((file.into(), parent)));
            }
        }
        let is_directory = kind == SFlag::S_IFDIR;
        // Only the end shows whether the new file is empty, or the new link has the same target.
        let may_be_same = match self.entry {
            Entry::File => kind == SFlag::S_IFREG && len == 0 && size.is_none(),
            Entry::Link => kind == SFlag::S_IFLNK,
            Entry::Directory => false,
        };
        if may_be_same && self.takes_same {
            return Ok(None);
        }
        if is_directory != (self.entry == Entry::Directory) {
            return Err(Reason::OtherKind);
        }
        if is_directory || self.overwrite { Ok(None) } else { Err(Reason::Exists) }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.path.join(self.name.as_str())
    }

    /// Creates the directory if it is missing. Sets its attributes only if a receiver created it or may overwrite:
    /// an older directory may hold private files of its owner.
    pub(super) fn make_directory(&self) -> Result<(), Reason> {
        let (directories, last) = self.name.split();
        let directory = self.root.walk(directories.chain([last]), Some(self.new_mode()))?;
        let directory = File::from(directory.ok_or(Reason::NoDirectory)?);
        let failed = |error: io::Error| Reason::of_write_error(&error, 0);
        let mark = self.root.mark_of(&directory).map_err(failed)?;
        let is_new = mark.exists();
        if self.overwrite || is_new {
            match self.set_attributes(&directory) {
                // An older one may be another user's.
                Err(error) if !is_new && error.kind() == io::ErrorKind::PermissionDenied => {}
                result => result.map_err(failed)?,
            }
        }
        directory.sync_all().map_err(failed)?;
        // From now on it may hold private files of its owner. Another receiver may have finished it as well.
        match fs::remove_file(mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Returns the mode of new directories: if files come with attributes, so do directories, at the end.
    fn new_mode(&self) -> Mode {
        if self.attributes.is_some() { ON_THE_WAY } else { Mode::from_bits_truncate(0o777) }
    }

    /// Sets the attributes of the file that has the name.
    pub(super) fn update(&self) -> Result<(), Reason> {
        if self.attributes.is_none() {
            return Ok(());
        }
        let (directories, last) = self.name.split();
        let parent = self.root.walk(directories, None)?.ok_or(Reason::NoDirectory)?;
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&parent, last, flags, Mode::empty()).map_err(refusal)?);
        let failed = |error: io::Error| Reason::of_write_error(&error, 0);
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Reason::Exists);
        }
        match self.set_attributes(&file).and_then(|()| file.sync_all()) {
            // It is another user's, whose bytes are right.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            result => result.map_err(failed),
        }
    }

    pub(super) fn set_attributes(&self, file: &File) -> io::Result<()> {
        let Some(attributes) = self.attributes else { return Ok(()) };
        let mode = u32::from(attributes.permissions) & self.root.mask;
        file.set_permissions(Permissions::from_mode(mode))?;
        // A time that this system cannot represent is not set.
        match modified(attributes) {
            Some(time) => file.set_times(FileTimes::new().set_modified(time)),
            None => Ok(()),
        }
    }

    /// Whether the empty file or link that has the name is the same as the one at `from`, of `size` bytes.
    pub(super) fn is_same(&self, from: &Path, size: u64) -> Result<bool, Reason> {
        let (directories, last) = self.name.split();
        let Some(parent) = self.root.walk(directories, None)?.filter(|_| self.takes_same) else {
            return Ok(false);
        };
        let is_same = match self.entry {
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
        };
        // Whoever created it may not have synced it.
        let _ = fsync(&parent);
        Ok(is_same)
    }

    /// Gives the entry at `from` its name atomically.
    pub(super) fn rename(&self, from: &Path) -> Result<(), Reason> {
        let (directories, last) = self.name.split();
        let parent =
            self.root.walk(directories, Some(self.new_mode()))?.ok_or(Reason::NoDirectory)?;
        let flags = match self.overwrite {
            true => RenameFlags::empty(),
            false => RenameFlags::RENAME_NOREPLACE,
        };
        match renameat2(AT_FDCWD, from, &parent, last, flags) {
            // Not every file system supports RENAME_NOREPLACE.
            Err(Errno::EINVAL | Errno::ENOSYS) if !self.overwrite => {
                linkat(AT_FDCWD, from, &parent, last, AtFlags::empty()).map_err(refusal)?;
                let _ = fs::remove_file(from);
            }
            result => result.map_err(refusal)?,
        }
        // The file has its name. Some file systems cannot sync a directory.
        let _ = fsync(&parent);
        Ok(())
    }
}

/// Returns the modification time, if this system can represent it.
fn modified(attributes: Attributes) -> Option<SystemTime> {
    let whole = Duration::from_secs(attributes.seconds.unsigned_abs());
    let base = match attributes.seconds {
        ..0 => UNIX_EPOCH.checked_sub(whole),
        0.. => UNIX_EPOCH.checked_add(whole),
    };
    base?.checked_add(Duration::from_nanos(attributes.nanoseconds.into()))
}
