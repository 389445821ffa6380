//! The private directory of a receiver, for as long as it runs.

use crate::protocol::FilePath;
use nix::fcntl::OFlag;
use nix::unistd::{geteuid, gethostname};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::{TempDir, TempPath};

/// The file in a private directory that is locked while the directory is in use. It holds the name of the host, since
/// not every file system has locks that other hosts see.
const LOCK: &str = "lock";

/// A directory of files that do not outlive the receiver. It is removed with this value.
#[derive(Debug)]
pub(super) struct Private {
    /// Keeps other receivers from removing the directory. Closed first: NFS would keep an open file in it.
    _lock: File,
    directory: TempDir,
}

impl Private {
    /// Creates a private directory in `dir`.
    ///
    /// It is on the same file system as `dir`, so that files can be renamed out of it; and closed to other users, who
    /// could put links where files are about to be written.
    pub(super) fn create(dir: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix(FilePath::TEMPORARY)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(dir)?;
        let mut lock = File::create_new(directory.path().join(LOCK))?;
        // Another receiver that starts may hold it for a moment. Where files cannot be locked, no directory is removed.
        let _ = lock.lock();
        // Only now is it a directory that may be abandoned.
        lock.write_all(gethostname()?.as_bytes())?;
        Ok(Self { _lock: lock, directory })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a file without a name of its own.
    pub(super) fn create_file(&self) -> io::Result<(File, TempPath)> {
        let file = tempfile::Builder::new()
            // The mode of any new file, from which the user's mask is taken away.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&self.directory)?;
        Ok(file.into_parts())
    }

    /// Returns the permissions that the user's mask allows to new files and directories.
    pub(super) fn mask(&self) -> io::Result<u32> {
        // The mask cannot be read without being set for all threads, but a new file shows it.
        let all = Permissions::from_mode(0o777);
        let probe = tempfile::Builder::new().permissions(all).tempfile_in(&self.directory)?;
        Ok(probe.as_file().metadata()?.mode() & 0o777)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt;

    #[test]
    fn the_private_directory_of_a_receiver_that_was_killed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let used = Private::create(dir.path()).unwrap();
        let Private { _lock: lock, directory: killed } = Private::create(dir.path()).unwrap();
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
}
