//! Walks a directory that is to be sent. Its owner may change it meanwhile, and must not be able to have files
//! outside it sent: everything is opened relative to descriptors, and no link is followed.

use super::error::PlanError;
use super::input::{Input, Source};
use crate::protocol::{Attributes, FilePath, NameError};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// Why an entry of a directory cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EntryError {
    #[error("cannot read it: {}", io::Error::from(*.0))]
    Unreadable(#[from] Errno),
    #[error("it cannot be stored under that name: {0}; rename it")]
    Name(#[from] NameError),
}

/// The entries of directories that are not sent, as the user would write their paths.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// Devices, pipes and sockets, which are skipped.
    pub(crate) special: Vec<PathBuf>,
    /// Those that should be sent and cannot, each with all that is in it.
    pub(crate) failed: Vec<(PathBuf, EntryError)>,
}

/// Lists everything in the directory `given`, each directory after its contents. Its name at the receiver is `name`,
/// or else its own.
///
/// # Errors
///
/// If the directory itself cannot be sent. Entries that cannot are added to `left_out`.
pub(super) fn walk(
    given: &Path,
    name: Option<&OsStr>,
    left_out: &mut LeftOut,
) -> Result<Vec<Input>, PlanError> {
    let failed = |source| PlanError::Input { path: given.to_owned(), source };
    // Resolves `.`, `x/..` and links that the user has named.
    let real = fs::canonicalize(given).map_err(failed)?;
    let root = name.or(real.file_name()).unwrap_or_default().to_owned();
    let directory = open_without_links(&real, OFlag::O_DIRECTORY).map_err(|e| failed(e.into()))?;
    let mut tree = Tree { given, real, root, inputs: Vec::new(), left_out };
    match tree.add_directory(directory, Path::new("")) {
        Ok(()) => Ok(tree.inputs),
        Err(EntryError::Unreadable(error)) => Err(failed(error.into())),
        Err(EntryError::Name(source)) => Err(PlanError::Name { path: given.to_owned(), source }),
    }
}

/// Opens an absolute path for reading, unless any component, the last one included, is a link.
pub(crate) fn open_without_links(path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    // O_PATH needs only search permission for the directories on the way.
    let on_the_way = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut at = open("/", on_the_way, Mode::empty())?;
    let mut names = path.components().filter(|component| *component != Component::RootDir);
    let last = names.next_back().map_or(OsStr::new("."), Component::as_os_str);
    for name in names {
        // Step by step: `openat2` would do it in one call, but some sandboxes refuse it.
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
    left_out: &'a mut LeftOut,
}

impl Tree<'_> {
    /// Adds the directory at `below`, relative to the given one, after its contents.
    fn add_directory(&mut self, directory: OwnedFd, below: &Path) -> Result<(), EntryError> {
        // The limit on names limits the depth, too.
        self.name(below)?;
        let stat = fstat(&directory)?;
        let mut directory = Dir::from_fd(directory)?;
        let names = names(&mut directory)?;
        self.add_all(&directory, below, names);
        Ok(self.push(below, Source::Directory, &stat)?)
    }

    /// Adds the entries `names` of the directory at `below`.
    fn add_all(&mut self, within: &Dir, below: &Path, names: impl IntoIterator<Item = OsString>) {
        for name in names {
            let entry = below.join(&name);
            if let Err(error) = self.add(within, &name, &entry) {
                self.left_out.failed.push((self.path(&entry), error));
            }
        }
    }

    /// Adds the entry `name` of a directory.
    fn add(&mut self, within: &Dir, name: &OsStr, below: &Path) -> Result<(), EntryError> {
        let stat = fstatat(within, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let source = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFDIR => {
                let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let directory = openat(within, name, flags, Mode::empty())?;
                return self.add_directory(directory, below);
            }
            SFlag::S_IFLNK => Source::Link(readlinkat(within, name)?.into_vec()),
            SFlag::S_IFREG => {
                // A path, and not a descriptor of its directory: with a thousand directories, those
                // would be too many open files. Device and inode show later whether it is the same
                // file.
                let path = self.real.join(below);
                Source::Found { path, device: stat.st_dev, inode: stat.st_ino }
            }
            _ => {
                self.left_out.special.push(self.path(below));
                return Ok(());
            }
        };
        Ok(self.push(below, source, &stat)?)
    }

    fn push(&mut self, below: &Path, source: Source, stat: &FileStat) -> Result<(), NameError> {
        let given = self.path(below);
        let name = self.name(below)?;
        let attributes = Some(Attributes {
            permissions: (stat.st_mode & 0o777) as u16,
            seconds: stat.st_mtime,
            nanoseconds: stat.st_mtime_nsec as u32,
        });
        self.inputs.push(Input { given, name, source, attributes });
        Ok(())
    }

    /// Returns the name at the receiver of the entry at `below`.
    fn name(&self, below: &Path) -> Result<FilePath, NameError> {
        let mut name = self.root.as_bytes().to_vec();
        for component in below.components() {
            name.push(b'/');
            name.extend_from_slice(component.as_os_str().as_bytes());
        }
        FilePath::from_bytes(&name)
    }

    /// Returns the path of the entry at `below`, as the user would write it.
    fn path(&self, below: &Path) -> PathBuf {
        // Joining nothing would add a slash.
        if below == Path::new("") { self.given.to_owned() } else { self.given.join(below) }
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
    fn an_entry_that_vanishes_during_the_walk_does_not_hide_others() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        fs::write(real.join("file"), "x").unwrap();
        let open = open_without_links(&real, OFlag::O_DIRECTORY).unwrap();
        let root = OsString::from("root");
        let mut left_out = LeftOut::default();
        let inputs = Vec::new();
        let mut tree =
            Tree { given: &real, real: real.clone(), root, inputs, left_out: &mut left_out };
        let mut directory = Dir::from_fd(open).unwrap();
        let names = [OsString::from("gone")].into_iter().chain(names(&mut directory).unwrap());
        tree.add_all(&directory, Path::new(""), names);
        let found: Vec<&str> = tree.inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(found, ["root/file"]);
        assert_eq!(left_out.failed.len(), 1);
        assert_eq!(left_out.failed[0].0, real.join("gone"));
        assert!(matches!(left_out.failed[0].1, EntryError::Unreadable(Errno::ENOENT)));
    }

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
