//! The key, and where it comes from.

use super::error::PlanError;
use cloudburst_net::{PresharedKey, Security};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The environment variable that may hold the key.
pub(crate) const VARIABLE: &str = "CBRST_KEY";

/// The most bytes to read of a key file, which has 64 digits and a line end.
const MAX_KEY_FILE: u64 = 4096;

/// The key of this end, by which it authenticates its peers.
#[derive(Clone)]
pub(crate) enum Key {
    /// From a file.
    File(PathBuf, PresharedKey),
    /// From the environment.
    Environment(PresharedKey),
    /// Generated for this run.
    Made([u8; 32]),
    /// None: `--insecure`.
    Insecure,
}

impl Key {
    /// Returns the key that the options or the environment give; `None` if they give none.
    pub(super) fn given(
        key_file: Option<&Path>,
        insecure: bool,
        environment: Option<OsString>,
    ) -> Result<Option<Self>, PlanError> {
        if insecure {
            return match environment {
                Some(_) => Err(PlanError::KeyAndInsecure),
                None => Ok(Some(Self::Insecure)),
            };
        }
        if let Some(path) = key_file {
            return Self::in_file(path).map(Some);
        }
        let Some(text) = environment else { return Ok(None) };
        let key = text.to_str().and_then(|text| text.parse().ok()).ok_or(PlanError::KeyVariable)?;
        Ok(Some(Self::Environment(key)))
    }

    /// Reads the key in a file.
    pub(super) fn in_file(path: &Path) -> Result<Self, PlanError> {
        match read(path)?.parse() {
            Ok(key) => Ok(Self::File(path.to_owned(), key)),
            Err(_) => Err(PlanError::KeyFileContent { path: path.to_owned() }),
        }
    }

    /// Returns a random key, to be replaced by the one that both ends agree on by a code.
    pub(super) fn to_agree_on(environment: Option<OsString>) -> Result<Self, PlanError> {
        match environment {
            Some(_) => Err(PlanError::KeyAndPair),
            None => Ok(Self::make()),
        }
    }

    /// Generates a key.
    pub(super) fn make() -> Self {
        Self::Made(rand::random())
    }

    /// Returns the endpoint's security settings for this key.
    pub(crate) fn security(&self) -> Security {
        self.preshared().map_or_else(Security::trusted_network, Security::pre_shared)
    }

    /// As [`security`](Self::security), and accepts the keys of `others` as well.
    pub(crate) fn security_with(&self, others: &[Self]) -> Security {
        let keys = others.iter().filter_map(Self::preshared);
        keys.fold(self.security(), Security::also_accept)
    }

    fn preshared(&self) -> Option<PresharedKey> {
        match self {
            Self::File(_, key) | Self::Environment(key) => Some(key.clone()),
            Self::Made(key) => Some((*key).into()),
            Self::Insecure => None,
        }
    }

    /// Returns the key file if other users can access it.
    pub(crate) fn exposed_file(&self) -> Option<&Path> {
        use std::os::unix::fs::PermissionsExt;
        let Self::File(path, _) = self else { return None };
        let metadata = fs::metadata(path).ok()?;
        (metadata.is_file() && metadata.permissions().mode() & 0o077 != 0).then_some(path)
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::File(..) => "File(..)",
            Self::Environment(_) => "Environment(..)",
            Self::Made(_) => "Made(..)",
            Self::Insecure => "Insecure",
        })
    }
}

fn read(path: &Path) -> Result<String, PlanError> {
    use io::Read;
    let mut text = String::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_KEY_FILE).read_to_string(&mut text))
        .map_err(|source| PlanError::KeyFile { path: path.to_owned(), source })?;
    Ok(text)
}
