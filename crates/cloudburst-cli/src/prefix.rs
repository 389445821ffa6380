//! Prefixes of a file that a receiver has from an earlier attempt.

use crate::protocol::{MAX_PREFIXES, Prefix};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

/// Bytes to read at once: enough for the widest kernels of BLAKE3.
const BLOCK: usize = 1 << 18;

/// Hashes the next `len` bytes.
///
/// # Errors
///
/// If there are fewer bytes, or they cannot be read.
pub(crate) fn hash_exactly(
    mut input: impl Read,
    len: u64,
    hasher: &mut blake3::Hasher,
) -> io::Result<()> {
    let mut left = len;
    let mut block = vec![0; BLOCK];
    while left > 0 {
        let want = left.min(BLOCK as u64) as usize;
        match input.read(&mut block[..want]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(got) => {
                hasher.update(&block[..got]);
                left -= got as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A prefix of a file.
#[derive(Clone, Debug)]
pub(crate) struct HashedPrefix {
    pub(crate) len: u64,
    /// The state of the hasher after it.
    pub(crate) hasher: blake3::Hasher,
}

/// Hashes the prefixes of the lengths `lens`, which are in ascending order.
///
/// # Errors
///
/// If the file cannot be read.
pub(crate) fn hash_all(mut file: impl Read + Seek, lens: &[u64]) -> io::Result<Vec<HashedPrefix>> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    let hash = |len: &u64| {
        hash_exactly(&mut file, len - at, &mut hasher)?;
        at = *len;
        Ok(HashedPrefix { len: at, hasher: hasher.clone() })
    };
    lens.iter().map(hash).collect()
}

/// Returns the prefixes in the form of ACCEPT.
pub(crate) fn prefixes(known: &[HashedPrefix]) -> Vec<Prefix> {
    let prefix =
        |known: &HashedPrefix| Prefix { len: known.len, digest: known.hasher.finalize().into() };
    known.iter().map(prefix).collect()
}

/// Returns the lengths of the prefixes to list in ACCEPT if `have` bytes of a file of `size` are present. After a
/// receiver was killed, up to `window` of the last chunks may be holes, so each of these has a prefix. The file may
/// also have changed since, so the part before them has prefixes at even distances.
pub(crate) fn lengths(have: u64, size: u64, chunk: u64, window: u16) -> Vec<u64> {
    let have = have.min(size);
    let whole = have / chunk;
    let sure = whole.saturating_sub(window.into());
    let apart = (MAX_PREFIXES - usize::from(window) - 1) as u64;
    let step = sure.div_ceil(apart).max(1);
    let early = (1..=sure / step).map(|at| at * step);
    let mut lengths: Vec<u64> = early.chain(sure + 1..=whole).map(|at| at * chunk).collect();
    if have == size && !size.is_multiple_of(chunk) {
        lengths.push(size);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_window_has_a_prefix_for_each_chunk() {
        assert!(lengths(0, 100, 10, 8).is_empty());
        assert!(lengths(9, 100, 10, 8).is_empty());
        assert_eq!(lengths(35, 100, 10, 8), [10, 20, 30]);
        assert_eq!(lengths(25, 25, 10, 8), [10, 20, 25]);
        assert_eq!(lengths(99, 20, 10, 8), [10, 20], "longer than the file");
        for whole in [1, 8, 9, 62, 63, 64, 65, 1000, 1 << 40] {
            let lengths = lengths(whole * 10 + 3, whole * 10 + 3, 10, 8);
            assert!(lengths.len() <= MAX_PREFIXES, "{whole}: {}", lengths.len());
            assert!(lengths.is_sorted_by(|a, b| a < b), "{lengths:?}");
            let single: Vec<u64> =
                (whole.saturating_sub(7).max(1)..=whole).map(|at| at * 10).collect();
            assert!(lengths[..lengths.len() - 1].ends_with(&single), "{lengths:?}");
            let gap = lengths.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(gap <= (whole / 50 + 1) * 10, "{whole}: {gap}");
        }
    }

    #[test]
    fn prefixes_are_hashed_in_one_pass() {
        let bytes: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
        let known = hash_all(io::Cursor::new(&bytes), &[300_000, 700_000]).unwrap();
        for (prefix, len) in prefixes(&known).iter().zip([300_000, 700_000]) {
            assert_eq!(prefix.len, len as u64);
            assert_eq!(prefix.digest, *blake3::hash(&bytes[..len]).as_bytes());
        }
        assert!(hash_all(io::Cursor::new(&bytes), &[700_001]).is_err());
    }
}
