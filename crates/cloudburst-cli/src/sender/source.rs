//! Reads a file ahead of the network, and its digest with it.

use crate::plan::Source;
use crate::protocol::{Frame, TransferId};
use bytes::Bytes;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

/// Chunks that are read before the network wants them.
const READ_AHEAD: usize = 2;

/// Why a file was not read to its end. Nothing of it remains at the receiver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    #[error("it had {expected} bytes and now has {got}: send it when nobody writes to it")]
    Resized { expected: u64, got: u64 },
    #[error("somebody wrote to it while it was sent: send it when nobody does")]
    Modified,
}

/// What comes from the file, in order.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The next chunk, as a frame.
    Chunk(Bytes),
    /// That was all.
    End { size: u64, digest: [u8; 32] },
    /// That was not all.
    Failed(SourceError),
}

/// A file that a thread of its own reads. The thread that opened it is unparked for each piece.
#[derive(Debug)]
pub(crate) struct Reader {
    pieces: Receiver<Piece>,
    size: Option<u64>,
}

impl Reader {
    /// Opens the file and starts to read it in chunks of `chunk` bytes.
    ///
    /// # Errors
    ///
    /// What the system says of the file, or of the thread.
    pub(crate) fn open(source: &Source, transfer: TransferId, chunk: usize) -> io::Result<Self> {
        let (input, watched): (Box<dyn Read + Send>, _) = match source {
            Source::StandardInput => (Box::new(io::stdin()), None),
            Source::Directory => (Box::new(io::empty()), None),
            Source::Link(leads) => (Box::new(io::Cursor::new(leads.clone())), None),
            Source::Path(path) => {
                let file = File::open(path)?;
                let metadata = file.metadata()?;
                // Pipes and devices have no size that means anything, nor have files in /proc.
                if metadata.is_file() && metadata.len() > 0 {
                    let input = file.try_clone()?.take(metadata.len());
                    (Box::new(input), Some(Watched { file, before: metadata }))
                } else {
                    (Box::new(file), None)
                }
            }
        };
        let size = match source {
            Source::Directory => Some(0),
            Source::Link(leads) => Some(leads.len() as u64),
            _ => watched.as_ref().map(|watched| watched.before.len()),
        };
        let (give, pieces) = sync_channel(READ_AHEAD);
        let main = thread::current();
        thread::Builder::new().name("file reader".into()).spawn(move || {
            let give_and_wake = |piece| {
                let taken = give_to(&give, piece);
                main.unpark();
                taken
            };
            let end = read_all(input, transfer, chunk, watched.as_ref(), &give_and_wake);
            match end {
                Ok(Some(end)) => give_and_wake(end),
                Ok(None) => false,
                Err(error) => give_and_wake(Piece::Failed(error)),
            }
        })?;
        Ok(Self { pieces, size })
    }

    /// Bytes in the file, where that is known.
    pub(crate) const fn size(&self) -> Option<u64> {
        self.size
    }

    /// The next piece if it is there.
    pub(crate) fn try_next(&self) -> Option<Piece> {
        match self.pieces.try_recv() {
            Ok(piece) => Some(piece),
            Err(TryRecvError::Empty) => None,
            // After the last piece nobody asks; before it, the thread must have panicked.
            Err(TryRecvError::Disconnected) => {
                Some(Piece::Failed(io::Error::other("the reading thread ended").into()))
            }
        }
    }
}

fn give_to(give: &SyncSender<Piece>, piece: Piece) -> bool {
    give.send(piece).is_ok()
}

/// Reads to the end; `None` if nobody wants the pieces any more.
fn read_all(
    mut input: Box<dyn Read + Send>,
    transfer: TransferId,
    chunk: usize,
    watched: Option<&Watched>,
    give: &dyn Fn(Piece) -> bool,
) -> Result<Option<Piece>, SourceError> {
    let mut hasher = blake3::Hasher::new();
    let mut read = 0;
    for number in 0.. {
        let mut frame = Frame::begin_chunk(transfer, number, chunk);
        let head = frame.len();
        let got = (&mut input).take(chunk as u64).read_to_end(&mut frame)?;
        read += got as u64;
        hasher.update(&frame[head..]);
        if got > 0 && !give(Piece::Chunk(frame.into())) {
            return Ok(None);
        }
        if got < chunk {
            break;
        }
    }
    watched.map_or(Ok(()), |watched| watched.check(read))?;
    Ok(Some(Piece::End { size: read, digest: *hasher.finalize().as_bytes() }))
}

/// A regular file that must not change while it is read.
struct Watched {
    file: File,
    before: Metadata,
}

impl Watched {
    /// Whether it is as it was, when `read` bytes of it were read.
    fn check(&self, read: u64) -> Result<(), SourceError> {
        let (now, expected) = (self.file.metadata()?, self.before.len());
        for got in [read, now.len()] {
            if got != expected {
                return Err(SourceError::Resized { expected, got });
            }
        }
        if now.modified()? != self.before.modified()? {
            return Err(SourceError::Modified);
        }
        Ok(())
    }
}
