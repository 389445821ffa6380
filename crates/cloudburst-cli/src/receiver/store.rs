//! Files that appear only when they are whole.

use crate::protocol::{FileName, Reason};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::{NamedTempFile, TempDir};

/// A directory for files, with a private one inside for those that are not whole yet. The private
/// one goes with this value.
#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    overwrite: bool,
    private: TempDir,
}

/// A file that has no name yet. What is dropped before [`commit`](Self::commit) is removed.
#[derive(Debug)]
pub(super) struct Partial {
    file: NamedTempFile,
    dir: PathBuf,
    target: PathBuf,
    overwrite: bool,
}

/// The right to decide whether a file gets its name: the first thread that takes it has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Say(Arc<AtomicBool>);

impl Say {
    /// Whether nobody took it before.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

impl Store {
    /// # Errors
    ///
    /// When the directory cannot be written to.
    pub(super) fn open(dir: PathBuf, overwrite: bool) -> io::Result<Self> {
        // On the same file system as its surroundings, so that files can be renamed out of it;
        // and closed to others, who could put links where files are about to be written.
        let private = tempfile::Builder::new()
            .prefix(FileName::TEMPORARY)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&dir)?;
        Ok(Self { dir, overwrite, private })
    }

    /// The directory of what is not whole.
    pub(super) fn private(&self) -> &Path {
        self.private.path()
    }

    /// Begins a file.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] unless files may be replaced, or what the system says.
    pub(super) fn begin(&self, name: &FileName) -> Result<Partial, Reason> {
        let target = self.dir.join(name.as_str());
        match fs::symlink_metadata(&target) {
            Ok(metadata) if !self.overwrite || metadata.is_dir() => return Err(Reason::Exists),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // The file system does not take such a name.
            Err(_) => return Err(Reason::BadName),
        }
        let file = tempfile::Builder::new()
            // As for any new file: less what the user's mask takes away.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(&self.private)
            .map_err(|error| Reason::of_write_error(&error, 0))?;
        Ok(Partial { file, dir: self.dir.clone(), target, overwrite: self.overwrite })
    }
}

impl Partial {
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.as_file().write_all_at(bytes, offset)
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.as_file().read_exact_at(bytes, offset)
    }

    /// Makes the file durable and gives it its name, at once and whole. May take long; until the
    /// name is given, a thread that takes `say` can prevent it.
    ///
    /// # Errors
    ///
    /// [`Reason::Exists`] when the name was taken meanwhile, [`Reason::Interrupted`] when `say`
    /// was, or what the system says. Nothing is left then.
    pub(super) fn commit(self, size: u64, say: &Say) -> Result<PathBuf, Reason> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => Reason::Exists,
            _ => Reason::of_write_error(&error, size),
        };
        self.file.as_file().sync_all().map_err(failed)?;
        if !say.take() {
            return Err(Reason::Interrupted);
        }
        let persisted = if self.overwrite {
            self.file.persist(&self.target)
        } else {
            self.file.persist_noclobber(&self.target)
        };
        persisted.map_err(|error| failed(error.error))?;
        // The name is there. Some file systems cannot make it more durable than that.
        let _ = File::open(&self.dir).and_then(|dir| dir.sync_all());
        Ok(self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> FileName {
        FileName::new(text).unwrap()
    }

    fn entries(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_committed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false).unwrap();
        let partial = store.begin(&name("a")).unwrap();
        partial.write_at(b"world", 6).unwrap();
        partial.write_at(b"hello ", 0).unwrap();
        assert!(!dir.path().join("a").exists());
        let path = partial.commit(11, &Say::default()).unwrap();
        assert_eq!(path, dir.path().join("a"));
        assert_eq!(fs::read(path).unwrap(), b"hello world");
        drop(store);
        assert_eq!(entries(dir.path()), 1);
    }

    #[test]
    fn a_file_that_was_given_up_never_gets_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false).unwrap();
        let (partial, say) = (store.begin(&name("a")).unwrap(), Say::default());
        assert!(say.take());
        assert_eq!(partial.commit(0, &say), Err(Reason::Interrupted));
        drop(store);
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn what_is_dropped_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false).unwrap();
        let partial = store.begin(&name("a")).unwrap();
        partial.write_at(b"x", 0).unwrap();
        drop(partial);
        assert_eq!(entries(store.private()), 0);
        drop(store);
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn what_exists_is_kept_even_when_it_came_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned(), false).unwrap();
        let partial = store.begin(&name("a")).unwrap();
        fs::write(dir.path().join("a"), "old").unwrap();
        assert_eq!(partial.commit(0, &Say::default()), Err(Reason::Exists));
        assert_eq!(store.begin(&name("a")).unwrap_err(), Reason::Exists);
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn overwriting_replaces_a_link_and_not_what_it_leads_to() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = outside.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("a")).unwrap();
        let keeping = Store::open(dir.path().to_owned(), false).unwrap();
        assert_eq!(keeping.begin(&name("a")).unwrap_err(), Reason::Exists);
        let store = Store::open(dir.path().to_owned(), true).unwrap();
        let partial = store.begin(&name("a")).unwrap();
        partial.write_at(b"new", 0).unwrap();
        partial.commit(3, &Say::default()).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"new");
        assert!(!dir.path().join("a").is_symlink());
    }

    #[test]
    fn a_directory_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let store = Store::open(dir.path().to_owned(), true).unwrap();
        assert_eq!(store.begin(&name("a")).unwrap_err(), Reason::Exists);
    }
}
