//! The name of a file: finds what has it, and gives it to the received file.

use super::existing::{Existing, Origin};
use super::root::{ON_THE_WAY, Root, refusal};
use crate::protocol::{Attributes, Entry, FilePath, Reason};
use core::time::Duration;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, openat, readlinkat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use nix::unistd::{fsync, linkat};
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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

impl Target {
    /// Finds errors early that would occur at the end. Returns the file that has the name, if it has `size` bytes.
    pub(super) fn check(&self, size: Option<u64>) -> Result<Option<Existing>, Reason> {
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
                let origin = Origin::Named(parent);
                return Ok(Some(Existing { file: file.into(), len: len as u64, origin }));
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
        self.root.path().join(self.name.as_str())
    }

    /// Creates the directory if it is missing. Sets its attributes only if a receiver created it or may overwrite:
    /// an older directory may hold private files of its owner.
    pub(super) fn make_directory(&self) -> Result<(), Reason> {
        let (directories, last) = self.name.split();
        let directory = self.root.walk(directories.chain([last]), Some(self.new_mode()))?;
        let directory = File::from(directory.ok_or(Reason::NoDirectory)?);
        let failed = |error: io::Error| Reason::of_write_error(&error, 0);
        let mark = self.root.marks.path_of(&directory).map_err(failed)?;
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
