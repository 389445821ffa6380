//! Reads a file ahead of the network, and computes its digest.

use crate::courier::LoopWaker;
use crate::plan::{Source, open_without_links};
use crate::prefix::hash_exactly;
use crate::protocol::{Frame, Prefix, TransferId};
use bytes::Bytes;
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Chunks to read ahead of the network.
const READ_AHEAD: usize = 2;

/// Why a file was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    #[error("it had {expected} bytes and now has {got}: send it when no process writes to it")]
    Resized { expected: u64, got: u64 },
    #[error("it was modified while it was sent: send it when no process writes to it")]
    Modified,
    #[error("another file took its place after its directory was read: send it again")]
    Replaced,
}

/// A piece of the file. Pieces come in order.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The longest prefix at the receiver that matches: `len` bytes, in `chunks` chunks.
    Resumed { len: u64, chunks: u64 },
    /// The next chunk, as a frame.
    Chunk(Bytes),
    /// The end of the file.
    End { size: u64, digest: [u8; 32] },
    /// The file could not be read to its end.
    Failed(SourceError),
}

/// A file and the thread that reads it, which wakes the loop for each piece.
pub(crate) struct Reader {
    transfer: TransferId,
    chunk: usize,
    size: Option<u64>,
    is_sparse: bool,
    /// Taken when reading starts.
    input: Option<Input>,
    pieces: Option<Receiver<Piece>>,
}

/// Where bytes come from.
enum Input {
    Stream(Box<dyn Read + Send>),
    File(Watched),
}

impl Input {
    /// Returns the input and its size, if that is known.
    fn of_file(file: File) -> io::Result<(Self, Option<u64>)> {
        let before = file.metadata()?;
        let size = before.len();
        // The sizes of pipes, devices and files in /proc are meaningless.
        Ok(if before.is_file() && size > 0 {
            (Self::File(Watched { file, before }), Some(size))
        } else {
            (Self::Stream(Box::new(file)), None)
        })
    }

    /// Whether the file system has allocated less than the size: the test of cp and tar. Space that is allocated
    /// but not written is not a hole.
    fn is_sparse(&self) -> bool {
        matches!(self, Self::File(Watched { before, .. }) if before.blocks() < before.len() / 512)
    }
}

/// Opens a file without following links or waiting for the other end of a pipe.
fn open_found(path: &Path) -> Result<File, SourceError> {
    match open_without_links(path, OFlag::O_NONBLOCK) {
        Ok(file) => Ok(file.into()),
        // A link in its place, a link in its path, and a socket in its place.
        Err(Errno::ELOOP | Errno::ENOTDIR | Errno::ENXIO) => Err(SourceError::Replaced),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

impl Reader {
    /// Opens the file, to be read in chunks of `chunk` bytes.
    ///
    /// # Errors
    ///
    /// The system's error, or [`SourceError::Replaced`].
    pub(crate) fn open(
        source: &Source,
        transfer: TransferId,
        chunk: usize,
    ) -> Result<Self, SourceError> {
        let (input, size) = match source {
            Source::StandardInput => (Input::Stream(Box::new(io::stdin())), None),
            Source::Directory => (Input::Stream(Box::new(io::empty())), Some(0)),
            Source::Link(target) => {
                let size = target.len() as u64;
                (Input::Stream(Box::new(io::Cursor::new(target.clone()))), Some(size))
            }
            Source::Path(path) => Input::of_file(File::open(path)?)?,
            Source::Found { path, device, inode } => {
                let file = open_found(path)?;
                let metadata = file.metadata()?;
                // The system may have reused the inode.
                if !metadata.is_file() || (metadata.dev(), metadata.ino()) != (*device, *inode) {
                    return Err(SourceError::Replaced);
                }
                Input::of_file(file)?
            }
        };
        let is_sparse = input.is_sparse();
        Ok(Self { transfer, chunk, size, is_sparse, input: Some(input), pieces: None })
    }

    /// Returns the number of bytes in the file, if that is known.
    pub(crate) const fn size(&self) -> Option<u64> {
        self.size
    }

    /// Whether the file has holes.
    pub(crate) const fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    /// Starts to read, unless it has started. The first piece is the longest of the receiver's `prefixes` that
    /// matches the file.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub(crate) fn start(&mut self, prefixes: &[Prefix], waker: Arc<LoopWaker>) -> io::Result<()> {
        let Some(input) = self.input.take() else { return Ok(()) };
        let (sender, pieces) = bounded(READ_AHEAD);
        let prefixes = prefixes.to_vec();
        let transfer = self.transfer;
        let chunk = self.chunk;
        thread::Builder::new().name("file reader".into()).spawn(move || {
            let send_and_wake = |piece| {
                let is_wanted = sender.send(piece).is_ok();
                waker.wake_loop();
                is_wanted
            };
            match read_all(input, transfer, chunk, &prefixes, &send_and_wake) {
                Ok(Some(end)) => send_and_wake(end),
                Ok(None) => false,
                Err(error) => send_and_wake(Piece::Failed(error)),
            }
        })?;
        self.pieces = Some(pieces);
        Ok(())
    }

    /// Returns the next piece if it is ready.
    pub(crate) fn try_next(&self) -> Option<Piece> {
        match self.pieces.as_ref()?.try_recv() {
            Ok(piece) => Some(piece),
            Err(TryRecvError::Empty) => None,
            // Not called after the last piece; before it, the thread must have panicked.
            Err(TryRecvError::Disconnected) => {
                Some(Piece::Failed(io::Error::other("the reading thread ended").into()))
            }
        }
    }
}

/// Reads to the end; `None` if the pieces are no longer wanted.
fn read_all(
    input: Input,
    transfer: TransferId,
    chunk: usize,
    prefixes: &[Prefix],
    send: &dyn Fn(Piece) -> bool,
) -> Result<Option<Piece>, SourceError> {
    let mut hasher = blake3::Hasher::new();
    let mut read = 0;
    let (mut input, watched): (Box<dyn Read>, _) = match input {
        Input::Stream(stream) => (stream, None),
        Input::File(watched) => {
            (hasher, read) = watched.longest_match(prefixes)?;
            let rest = watched.before.len().saturating_sub(read);
            (Box::new(watched.file.try_clone()?.take(rest)), Some(watched))
        }
    };
    let chunks = read.div_ceil(chunk as u64);
    if !send(Piece::Resumed { len: read, chunks }) {
        return Ok(None);
    }
    for number in chunks.. {
        let mut frame = Frame::begin_chunk(transfer, number, chunk);
        let head = frame.len();
        let got = (&mut input).take(chunk as u64).read_to_end(&mut frame)?;
        read += got as u64;
        hasher.update(&frame[head..]);
        // Before a short chunk leaves: the receiver takes only the last one as such, by the size in the OFFER.
        if got < chunk
            && let Some(watched) = &watched
        {
            watched.check(read)?;
        }
        if got > 0 && !send(Piece::Chunk(frame.into())) {
            return Ok(None);
        }
        if got < chunk {
            break;
        }
    }
    Ok(Some(Piece::End { size: read, digest: *hasher.finalize().as_bytes() }))
}

/// A regular file that must not change while it is read.
struct Watched {
    file: File,
    before: Metadata,
}

impl Watched {
    /// Returns the length of the longest prefix that matches and the hasher after it, and seeks to its end.
    fn longest_match(&self, prefixes: &[Prefix]) -> io::Result<(blake3::Hasher, u64)> {
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        let mut matching = (hasher.clone(), 0);
        for prefix in prefixes {
            if prefix.len > self.before.len() {
                break;
            }
            // Prefixes are in order of length.
            hash_exactly(&self.file, prefix.len - at, &mut hasher)?;
            at = prefix.len;
            if hasher.finalize() != prefix.digest {
                break;
            }
            matching = (hasher.clone(), at);
        }
        (&self.file).seek(SeekFrom::Start(matching.1))?;
        Ok(matching)
    }

    /// Checks that the file has not changed, after `read` bytes of it were read.
    fn check(&self, read: u64) -> Result<(), SourceError> {
        let now = self.file.metadata()?;
        let expected = self.before.len();
        if now.len() != expected {
            return Err(SourceError::Resized { expected, got: now.len() });
        }
        // It may have been shorter for a while.
        if read != expected || now.modified()? != self.before.modified()? {
            return Err(SourceError::Modified);
        }
        Ok(())
    }
}
