//! Marks of directories that a receiver has created, and whose attributes have not arrived yet.

use super::parts;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// Where marks are: among the parts if transfers are resumed, since another receiver may then continue what this one
/// began; otherwise in the private directory.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// The receiver's directory, if transfers are resumed.
    resumed_in: Option<PathBuf>,
    private: PathBuf,
}

impl Marks {
    pub(super) const fn new(resumed_in: Option<PathBuf>, private: PathBuf) -> Self {
        Self { resumed_in, private }
    }

    /// Marks a directory whose attributes follow: it was created here, and all without a mark existed before.
    // Only files in a directory of our own still tell after a kill which directories are new: an
    // extended attribute of the directory itself would do, but not all file systems have these.
    pub(super) fn set(&self, directory: &OwnedFd) -> io::Result<()> {
        let directory = File::from(directory.try_clone()?);
        let flags = OFlag::O_NOFOLLOW.bits();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let mark = || {
            let path = self.path_of(&directory)?;
            options.open(&path).map(|_| path)
        };
        // Another receiver that ends removes the directory of parts if it is empty.
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
    pub(super) fn path_of(&self, directory: &File) -> io::Result<PathBuf> {
        let metadata = directory.metadata()?;
        let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let born = born.unwrap_or_default().as_nanos();
        let name = format!("directory.{}.{}.{born}", metadata.dev(), metadata.ino());
        let parts = self.resumed_in.as_ref().and_then(|dir| parts::open_directory(dir).ok());
        Ok(parts.as_ref().unwrap_or(&self.private).join(name))
    }
}
