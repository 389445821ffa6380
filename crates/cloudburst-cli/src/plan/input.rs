//! A file to send, and where its bytes come from.

use super::error::PlanError;
use crate::protocol::{Attributes, Entry, FilePath};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file to send.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Its path as the user wrote it.
    pub(crate) given: PathBuf,
    /// Its name at the receiver.
    pub(crate) name: FilePath,
    pub(crate) source: Source,
    /// The attributes to set at the receiver, if it was found in a directory.
    pub(crate) attributes: Option<Attributes>,
}

/// Where the bytes of a file come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    StandardInput,
    /// A file on the command line, or the target of a link there.
    Path(PathBuf),
    /// A file that was found in a directory: exactly this inode. The path is absolute and has no links.
    Found {
        path: PathBuf,
        device: u64,
        inode: u64,
    },
    /// A directory, which has no bytes.
    Directory,
    /// The target of a symbolic link.
    Link(Vec<u8>),
}

impl Input {
    pub(super) fn new(given: &Path, name: Option<&OsStr>) -> Result<Self, PlanError> {
        let (source, own_name) = if given == Path::new("-") {
            (Source::StandardInput, OsStr::new("stdin"))
        } else {
            check_readable(given)?;
            (Source::Path(given.to_owned()), given.file_name().unwrap_or_default())
        };
        let name = FilePath::from_bytes(name.unwrap_or(own_name).as_bytes())
            .map_err(|source| PlanError::Name { path: given.to_owned(), source })?;
        Ok(Self { given: given.to_owned(), name, source, attributes: None })
    }

    /// Returns the type of entry that the receiver creates.
    pub(crate) const fn entry(&self) -> Entry {
        match self.source {
            Source::StandardInput | Source::Path(_) | Source::Found { .. } => Entry::File,
            Source::Directory => Entry::Directory,
            Source::Link(_) => Entry::Link,
        }
    }
}

/// Checks that the file can be read. Does not open pipes, which would wait for a writer.
fn check_readable(path: &Path) -> Result<(), PlanError> {
    let failed = |source: io::Error| PlanError::Input { path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(PlanError::Directory { path: path.to_owned() });
    }
    if metadata.is_file() {
        fs::File::open(path).map_err(failed)?;
    }
    Ok(())
}
