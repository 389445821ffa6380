//! What a process reports of its messages, and the messages themselves.

use bytes::Bytes;
use cloudburst_core::rng::SplitMix64;
use std::io::{self, Read};

/// Bytes of a message before its contents, which follow from them.
pub const HEADER: usize = 16;
const KEY: u64 = 0x5eed_50a4_0000_0001;

/// A message: who sends it, in which of its lives, and which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The life of its sender: a number for each process.
    pub life: u32,
    pub number: u32,
}

/// The bytes of a message, or of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub key: Key,
    pub len: u32,
    /// Of a request: bytes in its response. Of a response: [`RESPONSE`].
    pub response: u32,
}

/// The field `response` of a response.
pub const RESPONSE: u32 = u32::MAX;

impl Content {
    pub fn bytes(self) -> Bytes {
        let mut bytes = vec![0; self.len.max(HEADER as u32) as usize];
        let fields = [self.key.life, self.key.number, self.len, self.response];
        for (field, chunk) in fields.iter().zip(bytes.chunks_mut(4)) {
            chunk.copy_from_slice(&field.to_le_bytes());
        }
        let low = u64::from(self.key.number) << 32 | u64::from(self.key.life);
        let high = u64::from(self.response) << 32 | u64::from(self.len);
        let mut stream = SplitMix64::new(SplitMix64::new(KEY ^ low).next_u64() ^ high);
        for chunk in bytes[HEADER..].chunks_mut(8) {
            chunk.copy_from_slice(&stream.next_u64().to_le_bytes()[..chunk.len()]);
        }
        bytes.into()
    }

    /// Returns whose message this is, if not a bit of it differs from what was sent.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let field = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let key = Key { life: field(0)?, number: field(4)? };
        let content = Self { key, len: field(8)?, response: field(12)? };
        (content.len as usize == bytes.len() && content.bytes() == bytes).then_some(content)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The endpoint is open: `value` is its port.
    Open = 1,
    /// A message is about to be sent: `value` is its deadline in milliseconds, `detail` 1 a call.
    Begin,
    /// Its outcome: `detail` is a [`Promise`], `text` its name, `value` its [times](Record::times).
    End,
    /// The application has a plain message, or handles a request.
    Taken,
    /// A message or response that nobody sent. `text` says where.
    Altered,
    /// A count since the process began: `text` is its name.
    Count,
    /// The process ends in order. `value` messages have no outcome.
    Bye,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        use Kind::{Altered, Begin, Bye, Count, End, Open, Taken};
        [Open, Begin, End, Taken, Altered, Count, Bye].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// What an outcome promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Promise {
    Delivered = 1,
    /// Not delivered, and never will be.
    Never,
    Perhaps,
}

/// The bit of `detail` that says that the deadline passed.
pub const TIMEOUT: u8 = 8;

/// A line of the log, in 48 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: Kind,
    pub detail: u8,
    /// The node that the message goes to, or was taken by.
    pub node: u8,
    pub len: u32,
    pub key: Key,
    /// Microseconds since the program began, by the clock of the calendar.
    pub at: u64,
    pub value: u64,
    pub text: [u8; 16],
}

pub const RECORD: usize = 48;

impl Record {
    pub fn write(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..3].copy_from_slice(&[self.kind as u8, self.detail, self.node]);
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.key.life.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.key.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.at.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.value.to_le_bytes());
        bytes[32..].copy_from_slice(&self.text);
        bytes
    }

    /// Returns the next record; `None` at the end of a process, which may be in the middle of one.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; RECORD];
        match from.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let [kind, detail, node, ..] = bytes;
        let four = |at| u32::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        let eight = |at| u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        let kind = Kind::of(kind).ok_or_else(|| io::Error::other("not a record"))?;
        let key = Key { life: four(8), number: four(12) };
        let text = core::array::from_fn(|i| bytes[32 + i]);
        Ok(Some(Self {
            kind,
            detail,
            node,
            len: four(4),
            key,
            at: eight(16),
            value: eight(24),
            text,
        }))
    }

    /// The milliseconds that a message took, by its sender's clock, and those of its deadline, in `value`.
    pub const fn times(&self) -> (u64, u64) {
        (self.value & 0xffff_ffff, self.value >> 32)
    }

    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.text).trim_end_matches('\0').to_owned()
    }
}

/// The first 16 letters of a name.
pub fn text(name: &str) -> [u8; 16] {
    let letters = name.as_bytes();
    core::array::from_fn(|at| letters.get(at).copied().unwrap_or(0))
}
