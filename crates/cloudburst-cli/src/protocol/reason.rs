//! Why a file is refused, or its transfer has failed.

use super::limits::VERSION;
use nix::errno::Errno;

/// The reason in a FAILED: a code and a number. Each text names the cause and, if there is one, the
/// remedy; `cbrst-send` shows it to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// 1: a file has the name, and the receiver does not replace it.
    #[error(
        "the receiver has a file of this name and keeps it: choose another --name, or have it \
         run with --overwrite"
    )]
    Exists,
    /// 2: the receiver does not store files under such a name.
    #[error("the receiver does not accept this name: choose another --name")]
    BadName,
    /// 3: the file is larger than the receiver's limit, which is the number of bytes.
    #[error("the file is larger than the receiver's --max-size of {0} bytes")]
    TooLarge(u64),
    /// 4: the receiver has as many transfers as it takes, which is the number.
    #[error("the receiver is busy with {0} transfers already: try again later")]
    Busy(u64),
    /// 5: the receiver serves only one sender, and that is another one.
    #[error("the receiver serves one sender (--once, --stdout or --pair), and has another")]
    Taken,
    /// 6: another transfer is using the name. The number is the milliseconds until the receiver gives that up if its
    /// sender stays silent, or 0 if it is another receiver's.
    #[error("the receiver is receiving a file of this name from another sender: try again later")]
    NameInUse(u64),
    /// 7: the disk is full, after the number of bytes.
    #[error("the receiver's disk is full after {0} bytes: make room there")]
    DiskFull(u64),
    /// 8: the receiver cannot write; the number is the system's error code.
    #[error("the receiver cannot write the file: {}", storage(*.0))]
    Storage(u64),
    /// 9: the bytes received are not those sent; the number is the size received.
    #[error("the {0} bytes at the receiver do not match what was sent: send the file again")]
    Mismatch(u64),
    /// 10: nothing was heard for the number of milliseconds.
    #[error("the receiver heard nothing for {} s and gave up", *.0 as f64 / 1e3)]
    Unresponsive(u64),
    /// 11: the program was stopped.
    #[error("the other side was stopped")]
    Interrupted,
    /// 12: the receiver does not know the transfer: it restarted, or gave it up.
    #[error("the receiver no longer knows this transfer: send the file again")]
    Unknown,
    /// 13: the peer violated the protocol, at the chunk with this number.
    #[error("the receiver rejects chunk {0} as a protocol violation: the versions may not match")]
    Protocol(u64),
    /// 14: the receiver speaks another version of this protocol, the number.
    #[error(
        "the receiver speaks version {0} of the file protocol, this program {VERSION}: \
         upgrade the older one"
    )]
    Version(u64),
    /// 15: the sender cannot continue: its file changed, or cannot be read.
    #[error("the sender could not read the file to its end")]
    Source,
    /// 16: a parent of the name is not a directory, but a link, for example.
    #[error("at the receiver, a parent of this name is not a directory")]
    NoDirectory,
    /// 17: the receiver writes to standard output.
    #[error("the receiver writes to standard output (--stdout), which takes only files")]
    FilesAlone,
    /// 18: the name is that of a directory, and the file is none, or the other way round.
    #[error(
        "the receiver has this name, one of the two is a directory and the other is not, and neither replaces \
         the other: choose another --name, or remove the one at the receiver"
    )]
    OtherKind,
    /// Any other code: a reason of a later version.
    #[error("the other side gave up, for a reason unknown to this version ({0})")]
    Other(u8),
}

fn storage(number: u64) -> String {
    let error = std::io::Error::from_raw_os_error(number as i32);
    match error.kind() {
        std::io::ErrorKind::NotFound => "its directory was removed: restart cbrst-recv".into(),
        _ => error.to_string(),
    }
}

impl Reason {
    pub(super) const fn to_wire(self) -> (u8, u64) {
        match self {
            Self::Exists => (1, 0),
            Self::BadName => (2, 0),
            Self::TooLarge(max) => (3, max),
            Self::Busy(transfers) => (4, transfers),
            Self::Taken => (5, 0),
            Self::NameInUse(millis) => (6, millis),
            Self::DiskFull(written) => (7, written),
            Self::Storage(errno) => (8, errno),
            Self::Mismatch(size) => (9, size),
            Self::Unresponsive(millis) => (10, millis),
            Self::Interrupted => (11, 0),
            Self::Unknown => (12, 0),
            Self::Protocol(chunk) => (13, chunk),
            Self::Version(version) => (14, version),
            Self::Source => (15, 0),
            Self::NoDirectory => (16, 0),
            Self::FilesAlone => (17, 0),
            Self::OtherKind => (18, 0),
            Self::Other(code) => (code, 0),
        }
    }

    pub(super) const fn from_wire(code: u8, number: u64) -> Self {
        match code {
            1 => Self::Exists,
            2 => Self::BadName,
            3 => Self::TooLarge(number),
            4 => Self::Busy(number),
            5 => Self::Taken,
            6 => Self::NameInUse(number),
            7 => Self::DiskFull(number),
            8 => Self::Storage(number),
            9 => Self::Mismatch(number),
            10 => Self::Unresponsive(number),
            11 => Self::Interrupted,
            12 => Self::Unknown,
            13 => Self::Protocol(number),
            14 => Self::Version(number),
            15 => Self::Source,
            16 => Self::NoDirectory,
            17 => Self::FilesAlone,
            18 => Self::OtherKind,
            _ => Self::Other(code),
        }
    }

    /// Whether a receiver that answers FINISH with this reason has certainly not stored the file.
    pub(super) const fn excludes_storing(self) -> bool {
        !matches!(self, Self::Unresponsive(_) | Self::Interrupted | Self::Unknown | Self::Other(_))
    }

    /// Whether the transfer may be resumed: the bytes that have arrived are not the reason for its failure.
    pub const fn is_interruption(self) -> bool {
        matches!(self, Self::Unresponsive(_) | Self::Interrupted | Self::Unknown | Self::Source)
    }

    /// Returns the reason for an error to write after `written` bytes.
    pub fn of_write_error(error: &std::io::Error, written: u64) -> Self {
        use std::io::ErrorKind::{NotFound, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => Self::DiskFull(written),
            kind => {
                let number = error.raw_os_error().and_then(|number| u64::try_from(number).ok());
                // `tempfile` wraps errors with the path, which hides the system's code.
                let otherwise = if kind == NotFound { Errno::ENOENT } else { Errno::EIO };
                Self::Storage(number.unwrap_or(otherwise as u64))
            }
        }
    }
}
