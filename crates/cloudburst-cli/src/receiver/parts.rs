//! Partial files that outlive a receiver, so that interrupted transfers can be resumed.

use crate::protocol::FilePath;
use core::time::Duration;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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

/// Removes the partial files that are too old, unless a receiver uses them.
pub(super) fn remove_old(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified());
        if age.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > KEPT))
            && open(&entry.path()).is_ok()
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
    let file = options.open(path)?;
    file.try_lock()?;
    // The process that held the lock before may have renamed or removed the file.
    let (here, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    if here.ino() == there.ino() { Ok(file) } else { Err(io::ErrorKind::WouldBlock.into()) }
}
