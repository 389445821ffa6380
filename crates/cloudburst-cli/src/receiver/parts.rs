//! What a receiver has in its directory besides files that are complete.
//!
//! A private directory, for as long as the receiver runs; and one of files that outlive it, so that interrupted
//! transfers can be resumed: partial files, and marks of directories that still need their attributes.

use crate::protocol::FilePath;
use core::time::Duration;
use nix::fcntl::OFlag;
use nix::unistd::{geteuid, gethostname};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// How long partial files are kept.
pub(super) const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why there is no directory of partial files.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoParts {
    #[error("cannot use {} for the parts that have arrived: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a directory of this user: remove it", path.display())]
    Taken { path: PathBuf },
    #[error("other users can access {0}: chmod 700 {0}", path.display())]
    Accessible { path: PathBuf },
}

/// The file in a private directory that is locked while the directory is in use. It holds the name of the host, since
/// not every file system has locks that other hosts see.
const LOCK: &str = "lock";
/// Creates a private directory in `dir`. It is in use as long as the file that is returned is open.
///
/// It is on the same file system as `dir`, so that files can be renamed out of it; and closed to other users, who
/// could put links where files are about to be written.
pub(super) fn private_directory(dir: &Path) -> io::Result<(TempDir, File)> {
    let private = tempfile::Builder::new()
        .prefix(FilePath::TEMPORARY)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(dir)?;
    let mut lock = File::create_new(private.path().join(LOCK))?;
    // Another receiver that starts may hold it for a moment. Where files cannot be locked, no directory is removed.
    let _ = lock.lock();
    // Only now is it a directory that may be abandoned.
    lock.write_all(gethostname()?.as_bytes())?;
    Ok((private, lock))
}

/// Removes the private directories of receivers of this user and host that were killed.
pub(super) fn remove_abandoned(dir: &Path) {
    let Some(host) = gethostname().ok().filter(|host| !host.is_empty()) else { return };
    let is_ours = |metadata: &Metadata| {
        metadata.is_dir()
            && metadata.uid() == geteuid().as_raw()
            && metadata.mode() & 0o7777 == 0o700
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_private = entry.file_name().as_bytes().starts_with(FilePath::TEMPORARY.as_bytes())
            && entry.metadata().is_ok_and(|metadata| is_ours(&metadata));
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlag::O_NOFOLLOW.bits());
        if is_private
            && let Ok(mut lock) = options.open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
            && holds(&mut lock, host.as_bytes())
        {
            // NFS would keep an open file in it.
            drop(lock);
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a file has this content.
fn holds(file: &mut File, bytes: &[u8]) -> bool {
    let mut found = Vec::new();
    let read = file.take(bytes.len() as u64 + 1).read_to_end(&mut found);
    read.is_ok() && found == bytes
}

/// Opens the directory of partial files in `dir`, which is created if necessary: another receiver that ends
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

/// Opens a partial file and locks it for this process.
pub(super) fn open(path: &Path) -> io::Result<File> {
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
    let (here, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    if here.ino() == there.ino() { Ok(file) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Uid, setfsuid};
    use std::thread;

    #[test]
    fn the_private_directory_of_a_receiver_that_was_killed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (used, _lock) = private_directory(dir.path()).unwrap();
        let (killed, lock) = private_directory(dir.path()).unwrap();
        let killed = killed.keep();
        fs::write(killed.join("half"), "of a stream").unwrap();
        // One of another host, and some that are none.
        let others = ["other", "secret", "public"].map(|name| {
            let path = dir.path().join(format!("{}{name}", FilePath::TEMPORARY));
            let mode = if name == "public" { 0o755 } else { 0o700 };
            DirBuilder::new().mode(mode).create(&path).unwrap();
            path
        });
        fs::write(others[0].join(LOCK), "another host").unwrap();
        fs::write(others[1].join("key"), "precious").unwrap();
        fs::copy(killed.join(LOCK), others[2].join(LOCK)).unwrap();
        remove_abandoned(dir.path());
        assert!(killed.exists(), "it is not dead yet");
        drop(lock);
        remove_abandoned(dir.path());
        assert!(!killed.exists() && used.path().exists());
        assert_eq!(others.map(|path| path.exists()), [true; 3]);
    }

    #[test]
    fn a_part_that_nobody_may_write_to_is_resumed() {
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
