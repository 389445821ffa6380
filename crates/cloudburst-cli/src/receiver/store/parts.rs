//! Parts: partial files that outlive a receiver, so that interrupted transfers can be resumed.

use crate::protocol::FilePath;
use core::time::Duration;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempPath;

/// How long partial files are kept.
pub(super) const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why there is no directory of partial files.
#[derive(Debug, thiserror::Error)]
pub(in crate::receiver) enum NoParts {
    #[error("cannot use {} for the parts that have arrived: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a directory of this user: remove it", path.display())]
    Taken { path: PathBuf },
    #[error("other users can access {0}: chmod 700 {0}", path.display())]
    Accessible { path: PathBuf },
}

/// The parts in a receiver's directory. Only this type knows whether, and where, they are kept.
#[derive(Debug)]
pub(super) struct Parts {
    /// The receiver's directory.
    dir: PathBuf,
    /// The directory of the parts, or why there was none at the start. `None`: transfers are not to be resumed.
    directory: Option<Result<PathBuf, NoParts>>,
}

impl Parts {
    /// Opens the directory of the parts in `dir`, and removes those that are old, if transfers are to be resumed.
    pub(super) fn open(dir: &Path, resumes: bool) -> Self {
        let directory = resumes.then(|| open_directory(dir));
        if let Some(Ok(directory)) = &directory {
            remove_old(directory, SystemTime::now());
        }
        Self { dir: dir.to_owned(), directory }
    }

    /// Returns why no parts are kept although they are wanted.
    pub(super) fn unavailable(&self) -> Option<&NoParts> {
        self.directory.as_ref()?.as_ref().err()
    }

    /// Returns the directory of the parts, if they are kept.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_ref()?.as_deref().ok()
    }

    /// Whether parts are kept, and their directory is usable now: it may have been removed since the start, and its
    /// name taken.
    pub(super) fn are_usable(&self) -> bool {
        self.directory().is_some() && open_directory(&self.dir).is_ok()
    }

    /// Opens the part of the file `name`, or creates it, and locks it for this process. Returns `None` if no parts are
    /// kept.
    pub(super) fn open_part(&self, name: &FilePath) -> Option<io::Result<(File, TempPath)>> {
        // Named by a digest: names contain slashes, and may be longer than a component can be.
        let hash = blake3::hash(name.as_str().as_bytes());
        let path = self.directory()?.join(hash.to_hex().as_str());
        Some(open(&path).and_then(|file| Ok((file, TempPath::try_from_path(path)?))))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // It stays unless it is empty.
        if let Some(directory) = self.directory() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Opens the directory of the parts in `dir`, which is created if necessary: another receiver that ends
/// removes it if it is empty. Anybody may then take its name, if `dir` is one that all users share.
///
/// # Errors
///
/// If the name is taken by something other than a directory that only this user can access.
pub(super) fn open_directory(dir: &Path) -> Result<PathBuf, NoParts> {
    let user = geteuid();
    let path = dir.join(format!("{}partial.{user}", FilePath::TEMPORARY));
    // It may exist already.
    let _ = DirBuilder::new().mode(0o700).create(&path);
    let io = |source| NoParts::Io { path: path.clone(), source };
    let metadata = fs::symlink_metadata(&path).map_err(io)?;
    if !metadata.is_dir() || metadata.uid() != user.as_raw() {
        return Err(NoParts::Taken { path });
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(NoParts::Accessible { path });
    }
    Ok(path)
}

/// Removes the files that are too old at `now`, unless a receiver uses them.
pub(super) fn remove_old(directory: &Path, now: SystemTime) {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let oldest = now.saturating_sub(KEPT).as_secs().cast_signed();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // Not the modification time, which may already be that of the sender's file.
        if entry.metadata().is_ok_and(|metadata| metadata.ctime() < oldest)
            && let Ok(_locked) = open(&entry.path())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Opens a part and locks it for this process.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW.bits();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o666).custom_flags(flags);
    let file = match options.open(path) {
        // A receiver has ended between setting the mode of the complete file and renaming it, or is about to.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let reader = OpenOptions::new().read(true).custom_flags(flags).open(path);
            if let Ok(reader) = &reader
                && let Err(TryLockError::WouldBlock) = reader.try_lock()
            {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // One that cannot be read, or locked in this way, is changed all the same.
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            options.open(path)?
        }
        result => result?,
    };
    file.try_lock()?;
    // The process that held the lock before may have renamed or removed the file.
    let here = file.metadata()?;
    let there = fs::symlink_metadata(path)?;
    if here.ino() == there.ino() { Ok(file) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Uid, setfsuid};
    use std::thread;

    #[test]
    fn a_read_only_part_is_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part");
        fs::write(&path, "whole").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        let user = Uid::from_raw(if geteuid().is_root() { 65_534 } else { geteuid().as_raw() });
        for path in [dir.path(), &path] {
            nix::unistd::chown(path, Some(user), None).unwrap();
        }
        // This concerns one thread: root would be allowed to write in any case.
        let resume = move || {
            setfsuid(user);
            let denied = OpenOptions::new().write(true).open(&path).unwrap_err();
            assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(open(&path).unwrap().metadata().unwrap().len(), 5);
        };
        thread::spawn(resume).join().unwrap();
    }
}
