//! Walks a directory that is to be sent. Its owner may change it meanwhile, and must not be able to have files
//! outside it sent: everything is opened relative to descriptors, and no link is followed.

use super::{Input, PlanError, Source};
use crate::protocol::{Attributes, FilePath};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Lists everything in the directory `given`, each directory after its contents. Its name at the receiver is `name`,
/// or else its own.
pub(super) fn walk(
    given: &Path,
    name: Option<&OsStr>,
    skipped: &mut Vec<PathBuf>,
) -> Result<Vec<Input>, PlanError> {
    let failed = |source| PlanError::Input { path: given.to_owned(), source };
    // Resolves `.`, `x/..` and links that the user has named.
    let real = fs::canonicalize(given).map_err(failed)?;
    let root = name.or(real.file_name()).unwrap_or_default().to_owned();
    let directory = open_without_links(&real, OFlag::O_DIRECTORY).map_err(|e| failed(e.into()))?;
    let mut tree = Tree { given, real, root, inputs: Vec::new(), skipped };
    tree.add_directory(directory, Path::new(""))?;
    Ok(tree.inputs)
}

/// Opens an absolute path for reading, unless any component, the last one included, is a link.
pub(crate) fn open_without_links(path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    // O_PATH needs only search permission for the directories on the way.
    let on_the_way = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut at = open("/", on_the_way, Mode::empty())?;
    let mut names = path.components().filter(|component| *component != Component::RootDir);
    let last = names.next_back().map_or(OsStr::new("."), Component::as_os_str);
    for name in names {
        at = openat(&at, name.as_os_str(), on_the_way, Mode::empty())?;
    }
    openat(&at, last, flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
}

/// A directory that is being walked.
struct Tree<'a> {
    /// As the user wrote it.
    given: &'a Path,
    /// Its resolved path, without links.
    real: PathBuf,
    /// Its name at the receiver.
    root: OsString,
    inputs: Vec<Input>,
    /// Entries that cannot be sent.
    skipped: &'a mut Vec<PathBuf>,
}

impl Tree<'_> {
    /// Adds the directory at `below`, relative to the given one, after its contents.
    fn add_directory(&mut self, directory: OwnedFd, below: &Path) -> Result<(), PlanError> {
        // The limit on names limits the depth, too.
        self.name(below)?;
        let stat = fstat(&directory).map_err(|error| self.failed(below, error))?;
        let mut directory = Dir::from_fd(directory).map_err(|error| self.failed(below, error))?;
        for name in names(&mut directory).map_err(|error| self.failed(below, error))? {
            self.add(&directory, &name, &below.join(&name))?;
        }
        self.push(below, Source::Directory, &stat)
    }

    /// Adds the entry `name` of a directory.
    fn add(&mut self, within: &Dir, name: &OsStr, below: &Path) -> Result<(), PlanError> {
        let failed = |error| self.failed(below, error);
        let stat = fstatat(within, name, AtFlags::AT_SYMLINK_NOFOLLOW).map_err(failed)?;
        let source = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFDIR => {
                let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let directory = openat(within, name, flags, Mode::empty()).map_err(failed)?;
                return self.add_directory(directory, below);
            }
            SFlag::S_IFLNK => Source::Link(readlinkat(within, name).map_err(failed)?.into_vec()),
            SFlag::S_IFREG => {
                let path = self.real.join(below);
                Source::Found { path, device: stat.st_dev, inode: stat.st_ino }
            }
            _ => {
                self.skipped.push(self.path(below));
                return Ok(());
            }
        };
        self.push(below, source, &stat)
    }

    fn push(&mut self, below: &Path, source: Source, stat: &FileStat) -> Result<(), PlanError> {
        let (given, name) = (self.path(below), self.name(below)?);
        let attributes = Some(Attributes {
            permissions: (stat.st_mode & 0o777) as u16,
            seconds: stat.st_mtime,
            nanoseconds: stat.st_mtime_nsec as u32,
        });
        self.inputs.push(Input { given, name, source, attributes });
        Ok(())
    }

    /// Returns the name at the receiver of the entry at `below`.
    fn name(&self, below: &Path) -> Result<FilePath, PlanError> {
        let mut name = self.root.as_bytes().to_vec();
        for component in below.components() {
            name.push(b'/');
            name.extend_from_slice(component.as_os_str().as_bytes());
        }
        let failed = |source| PlanError::Name { path: self.path(below), source };
        FilePath::from_bytes(&name).map_err(failed)
    }

    /// Returns the path of the entry at `below`, as the user would write it.
    fn path(&self, below: &Path) -> PathBuf {
        // Joining nothing would add a slash.
        if below == Path::new("") { self.given.to_owned() } else { self.given.join(below) }
    }

    fn failed(&self, below: &Path, error: Errno) -> PlanError {
        PlanError::Input { path: self.path(below), source: error.into() }
    }
}

/// Lists the names in a directory, sorted.
fn names(directory: &mut Dir) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in directory.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_with_a_link_on_it_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        fs::create_dir(real.join("directory")).unwrap();
        fs::write(real.join("directory/file"), "x").unwrap();
        symlink("directory", real.join("link")).unwrap();
        symlink("file", real.join("directory/link")).unwrap();
        let open = |below: &str| open_without_links(&real.join(below), OFlag::empty()).map(drop);
        assert_eq!(open("directory/file"), Ok(()));
        assert_eq!(open("directory"), Ok(()));
        assert_eq!(open("link/file"), Err(Errno::ENOTDIR));
        assert_eq!(open("directory/link"), Err(Errno::ELOOP));
        assert_eq!(open_without_links(Path::new("/"), OFlag::O_DIRECTORY).map(drop), Ok(()));
    }
}
