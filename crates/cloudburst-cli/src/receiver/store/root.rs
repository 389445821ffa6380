//! The receiver's directory, below which all files are created, relative to descriptors and never through a link.

use super::marks::Marks;
use crate::protocol::Reason;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, fsync, unlinkat};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The mode of directories whose attributes follow, until they do.
pub(super) const ON_THE_WAY: Mode = Mode::S_IRWXU;

/// The receiver's directory, which no path leads out of.
#[derive(Clone, Debug)]
pub(super) struct Root {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    /// The permissions that the user's mask allows to new files and directories.
    pub(super) mask: u32,
    pub(super) marks: Marks,
}

impl Root {
    /// Opens the directory `dir`.
    pub(super) fn open(dir: PathBuf, mask: u32, marks: Marks) -> io::Result<Self> {
        let fd = open(&dir, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Self { fd: Arc::new(fd), path: dir, mask, marks })
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory at the end of `names`, without following links. Missing ones are created with the mode
    /// `creates`. Returns `None` if one is missing and `creates` is `None`.
    pub(super) fn walk<'a>(
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
                            && let Err(error) = self.marks.set(&directory)
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
}

/// Returns the reason for an error of a system call that names an entry.
pub(super) fn refusal(error: Errno) -> Reason {
    match error {
        Errno::ELOOP | Errno::ENOTDIR => Reason::NoDirectory,
        Errno::ENAMETOOLONG | Errno::EINVAL => Reason::BadName,
        Errno::EEXIST => Reason::Exists,
        Errno::EISDIR | Errno::ENOTEMPTY => Reason::OtherKind,
        error => Reason::of_write_error(&error.into(), 0),
    }
}
