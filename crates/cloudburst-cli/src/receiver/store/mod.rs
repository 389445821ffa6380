//! Stores files, which appear only when they are complete, and only below the store's directory.
//!
//! A file is in one of these places, and only the type that is named knows it:
//!
//! | place | type | what follows |
//! |-------|------|--------------|
//! | under its name, from before | [`Existing`] with [`Origin::Named`] | [`Partial::confirm`] keeps it; [`Partial::commit`] replaces it, if files may be replaced |
//! | a part, from an interrupted transfer | [`Existing`] with [`Origin::Part`] | the [`Partial`] continues it |
//! | a part, among [`Parts`](parts::Parts) | [`Partial`] | [`Partial::keep`] leaves it for a later transfer, dropping removes it |
//! | the private directory | [`Partial`] | dropping removes it, and so does the end of the receiver |
//! | under its name, complete | nobody any more | - |
//!
//! [`Partial::commit`] leads from the third and fourth place to the last.

mod existing;
mod marks;
mod partial;
mod parts;
mod private;
mod root;
mod target;
#[cfg(test)]
mod tests;

pub(super) use self::existing::{Existing, Origin};
pub(super) use self::partial::Partial;

use self::marks::Marks;
use self::parts::{NoParts, Parts};
use self::private::Private;
use self::root::Root;
use self::target::Target;
use crate::protocol::{Attributes, Entry, FilePath, Reason};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A directory for files, with a private one inside for incomplete files. The private directory is removed
/// with this value.
#[derive(Debug)]
pub(super) struct Store {
    root: Root,
    overwrite: bool,
    parts: Parts,
    private: Private,
}

impl Store {
    /// Opens a store in the directory `dir`. `resumes`: interrupted transfers may be resumed, also by another receiver.
    ///
    /// # Errors
    ///
    /// If the directory cannot be written to.
    pub(super) fn open(dir: PathBuf, overwrite: bool, resumes: bool) -> io::Result<Self> {
        private::remove_abandoned(&dir);
        let private = Private::create(&dir)?;
        let parts = Parts::open(&dir, resumes);
        let marks = Marks::new(resumes.then(|| dir.clone()), private.path().to_owned());
        let root = Root::open(dir, private.mask()?, marks)?;
        Ok(Self { root, overwrite, parts, private })
    }

    /// Returns the directory of files that are removed when the receiver ends.
    pub(super) fn private(&self) -> &Path {
        self.private.path()
    }

    /// Returns why interrupted transfers cannot be resumed although they are to be.
    pub(super) fn no_parts(&self) -> Option<&NoParts> {
        self.parts.unavailable()
    }

    /// Returns a job that removes old parts, if parts are kept. It may wait for the disk.
    pub(super) fn sweep(&self) -> Option<impl FnOnce() + Send + 'static> {
        let directory = self.parts.directory()?.to_owned();
        Some(move || parts::remove_old(&directory, SystemTime::now()))
    }

    /// Begins a file, a directory or a link, of `size` bytes if that is known. Returns also the bytes of it that exist
    /// already.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] unless files may be replaced or the existing one has this size, [`Reason::OtherKind`],
    /// [`Reason::NoDirectory`], [`Reason::NameInUse`], or the system's error.
    pub(super) fn begin(
        &self,
        name: &FilePath,
        entry: Entry,
        attributes: Option<Attributes>,
        size: Option<u64>,
    ) -> Result<(Partial, Option<Existing>), Reason> {
        let target = Target {
            root: self.root.clone(),
            name: name.clone(),
            entry,
            attributes,
            overwrite: self.overwrite,
            takes_same: self.parts.directory().is_some(),
        };
        // A source without a size, such as a pipe, cannot be read again from the middle.
        let size = size.filter(|_| entry == Entry::File && self.parts.are_usable());
        let named = target.check(size)?;
        let failed = |error| Reason::of_write_error(&error, 0);
        let part = size.and_then(|_| self.parts.open_part(name)).transpose();
        let part = part.map_err(|error| match error.kind() {
            // Another receiver has it, or has just given it its name.
            io::ErrorKind::WouldBlock | io::ErrorKind::NotFound => Reason::NameInUse(0),
            _ => failed(error),
        })?;
        let is_part = part.is_some();
        let (file, path) = match part {
            Some(part) => part,
            None => self.private.create_file().map_err(failed)?,
        };
        let partial = Partial::new(file, path, is_part, target);
        let existing = match named {
            Some(named) => Some(named),
            None => partial.existing().map_err(failed)?,
        };
        Ok((partial, existing))
    }
}
