//! A file that does not have its name yet.

use super::existing::{Existing, Origin};
use super::target::Target;
use crate::protocol::{Attributes, Entry, Reason};
use crate::receiver::commit::CommitRight;
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// The size of blocks that become holes if they are all zeros: that of most file systems.
const BLOCK: u64 = 4096;

/// A file that does not have its name yet. It is removed if dropped before [`commit`](Self::commit) or
/// [`keep`](Self::keep).
#[derive(Debug)]
pub(in crate::receiver) struct Partial {
    // Dropped before the file, whose lock keeps other receivers away.
    path: TempPath,
    file: File,
    /// Whether it is a part, which may be resumed later.
    is_part: bool,
    /// Whether blocks of zeros become holes.
    is_sparse: bool,
    target: Target,
}

impl Partial {
    pub(super) const fn new(file: File, path: TempPath, is_part: bool, target: Target) -> Self {
        Self { path, file, is_part, is_sparse: false, target }
    }

    /// Sets whether blocks of zeros become holes from now on. By default they do not.
    pub(in crate::receiver) const fn set_sparse(&mut self, sparse: bool) {
        self.is_sparse = sparse;
    }

    /// Writes bytes where none were written before.
    pub(in crate::receiver) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !self.is_sparse {
            return self.file.write_all_at(bytes, offset);
        }
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let to_boundary = (BLOCK - at % BLOCK) as usize;
            let (block, after) = rest.split_at(to_boundary.min(rest.len()));
            // Not written, so that the file system allocates nothing. The digest covers the zeros
            // all the same.
            if block.iter().any(|byte| *byte != 0) {
                self.file.write_all_at(block, at)?;
            }
            rest = after;
            at += block.len() as u64;
        }
        // A hole at the end does not extend the file by itself.
        if self.len() < at { self.file.set_len(at) } else { Ok(()) }
    }

    pub(in crate::receiver) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    /// Returns the bytes that an earlier transfer has left, if there are any.
    pub(super) fn existing(&self) -> io::Result<Option<Existing>> {
        let len = self.file.metadata()?.len();
        if len == 0 {
            return Ok(None);
        }
        Ok(Some(Existing { file: self.file.try_clone()?, len, origin: Origin::Part }))
    }

    /// Returns the number of bytes in the file.
    pub(in crate::receiver) fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Removes all bytes after the first `len`.
    pub(in crate::receiver) fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    /// Whether a file that has the name already may be replaced.
    pub(in crate::receiver) const fn replaces(&self) -> bool {
        self.target.overwrite
    }

    /// Keeps the first `len` bytes for a later transfer, if this is a part. Returns whether they are kept.
    pub(in crate::receiver) fn keep(self, len: u64) -> bool {
        self.is_part && len > 0 && self.truncate(len).is_ok() && self.path.keep().is_ok()
    }

    /// Makes the file durable and gives it its name atomically. May take long; until the name is given, a
    /// thread that claims `right` can prevent it.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] if the name was taken meanwhile, [`Reason::Interrupted`] if `right` was, or the
    /// system's error. Nothing remains of the file then.
    pub(in crate::receiver) fn commit(
        self,
        size: u64,
        right: &CommitRight,
    ) -> Result<PathBuf, Reason> {
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
        if !right.claim() {
            return Err(Reason::Interrupted);
        }
        match target.entry {
            Entry::Directory => target.make_directory()?,
            Entry::File | Entry::Link => match target.rename(&path) {
                Err(Reason::Exists) if target.is_same(&path, size)? => {}
                result => {
                    result?;
                    // The old name may be another receiver's by now.
                    let _ = path.keep();
                }
            },
        }
        Ok(target.path())
    }

    /// Keeps the existing file, whose bytes are the same, and sets its attributes if files may be replaced.
    ///
    /// # Errors
    ///
    /// [`Reason::Interrupted`] if another thread claimed `right`, or the system's error.
    pub(in crate::receiver) fn confirm(self, right: &CommitRight) -> Result<PathBuf, Reason> {
        if !right.claim() {
            return Err(Reason::Interrupted);
        }
        if self.target.overwrite {
            self.target.update()?;
        }
        Ok(self.target.path())
    }
}

/// Creates a symbolic link beside `file`, whose bytes are its target.
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
