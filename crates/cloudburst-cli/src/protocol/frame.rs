//! Frames and their encoding.

use super::error::{FrameError, within};
use super::fields::{get_address, get_array, put_address};
use super::id::{InvocationId, TransferId};
use super::limits::{CHUNK_HEAD_LEN, MAX_CHUNK, MAX_LINK, MAX_PREFIXES, MAX_WINDOW, VERSION};
use super::name::{FilePath, NameError};
use super::reason::Reason;
use super::vitals::Vitals;
use bytes::{Buf, Bytes};
use core::mem;
use core::time::Duration;
use std::net::SocketAddr;

const MAGIC: [u8; 3] = *b"CBF";
/// The size field of a file whose size is not known beforehand.
const UNKNOWN_SIZE: u64 = u64::MAX;
/// The entry type of a regular file with holes. Other types are those of [`Entry`].
const SPARSE: u8 = 3;
/// The permissions field of an entry without attributes.
const NO_ATTRIBUTES: u16 = u16::MAX;

/// A frame. A decoded frame is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The transfer that it belongs to.
    pub transfer: TransferId,
    /// The kind of frame and its fields.
    pub body: Body,
}

/// The kind of a frame and its fields. The [module](super) says which end sends it, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// "Here is a file."
    Offer(Offer),
    /// "Send it."
    Accept {
        /// Chunks that the receiver takes, counted from the first missing one.
        window: u16,
        /// How long the receiver waits for a sign of life.
        patience: Duration,
        /// Prefixes of the file that it has from an earlier attempt, the shortest first.
        prefixes: Vec<Prefix>,
    },
    /// "I continue from there." The answer to an ACCEPT with prefixes.
    Resume {
        /// Bytes of the longest prefix that matches the file; 0 if none does.
        len: u64,
    },
    /// A piece of the file.
    Chunk {
        /// Its number, from 0. All but the last chunk have the length in the OFFER.
        number: u64,
        /// Its bytes, never empty.
        bytes: Bytes,
    },
    /// "That was all."
    Finish {
        /// Bytes in the file.
        size: u64,
        /// BLAKE3 digest of the file.
        digest: [u8; 32],
    },
    /// "The file is safe under its name."
    Done,
    /// "It is over."
    Failed(Reason),
    /// "I am still here."
    Alive,
    /// "I have no more files."
    Bye,
    /// "How are you?"
    Examine {
        /// Whether an answer is wanted. Otherwise the frame is only counted.
        answer: bool,
        /// The port to answer to, at the requester's IP address; 0: the port it came from.
        answer_to: u16,
        /// The address that the requester sends this to.
        addressed: Option<SocketAddr>,
        /// Padding, which is ignored.
        padding: Bytes,
    },
    /// "This is my state."
    Vitals(Vitals),
}

/// The description of a file that the sender offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Files in the session: more than this file's number.
    pub files: u32,
    /// Bytes in each chunk except the last, 1 to [`MAX_CHUNK`].
    pub chunk: u32,
    /// Bytes in the file; `None` if not known beforehand.
    pub size: Option<u64>,
    /// How long the sender waits for a sign of life.
    pub patience: Duration,
    /// The type of the file.
    pub entry: Entry,
    /// Whether it is a regular file with holes. All its bytes are sent.
    pub sparse: bool,
    /// The attributes to set on it.
    pub attributes: Option<Attributes>,
    /// The name to store it under. An invalid one is kept as an error, since the OFFER must be answered.
    pub name: Result<FilePath, NameError>,
}

/// The type of a file in an OFFER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File,
    /// A directory, which has no bytes.
    Directory,
    /// A symbolic link, whose bytes are its target: 1 to [`MAX_LINK`] of them.
    Link,
}

/// The beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its length in bytes: whole chunks, or the whole file.
    pub len: u64,
    /// Its BLAKE3 digest.
    pub digest: [u8; 32],
}

/// Attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions: the lowest nine bits of the mode.
    pub permissions: u16,
    /// The time of the last modification, in seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// Nanoseconds to add to `seconds`, less than 10^9.
    pub nanoseconds: u32,
}

impl Frame {
    /// Encodes the frame.
    pub fn encode(&self) -> Bytes {
        self.encode_as(VERSION)
    }

    /// Encodes the frame as one of `version`. FAILED is the same in all versions, so that a peer can be refused
    /// in its own.
    pub fn encode_as(&self, version: u8) -> Bytes {
        let mut out = Vec::with_capacity(64);
        self.body.kind().write_head(version, self.transfer, &mut out);
        match &self.body {
            Body::Offer(offer) => {
                let &Offer { files, chunk, size, patience, entry, sparse, attributes, .. } = offer;
                out.extend_from_slice(&files.to_be_bytes());
                out.extend_from_slice(&chunk.to_be_bytes());
                out.extend_from_slice(&size.unwrap_or(UNKNOWN_SIZE).to_be_bytes());
                out.extend_from_slice(&millis(patience).to_be_bytes());
                out.push(if sparse { SPARSE } else { entry as u8 });
                let none = Attributes { permissions: NO_ATTRIBUTES, seconds: 0, nanoseconds: 0 };
                let attributes = attributes.unwrap_or(none);
                out.extend_from_slice(&attributes.permissions.to_be_bytes());
                out.extend_from_slice(&attributes.seconds.to_be_bytes());
                out.extend_from_slice(&attributes.nanoseconds.to_be_bytes());
                out.extend_from_slice(offer.name.as_ref().map_or("", FilePath::as_str).as_bytes());
            }
            Body::Accept { window, patience, prefixes } => {
                out.extend_from_slice(&window.to_be_bytes());
                out.extend_from_slice(&millis(*patience).to_be_bytes());
                for prefix in prefixes {
                    out.extend_from_slice(&prefix.len.to_be_bytes());
                    out.extend_from_slice(&prefix.digest);
                }
            }
            Body::Resume { len } => out.extend_from_slice(&len.to_be_bytes()),
            Body::Chunk { number, bytes } => {
                out.extend_from_slice(&number.to_be_bytes());
                out.extend_from_slice(bytes);
            }
            Body::Finish { size, digest } => {
                out.extend_from_slice(&size.to_be_bytes());
                out.extend_from_slice(digest);
            }
            Body::Failed(reason) => {
                let (code, number) = reason.to_wire();
                out.push(code);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Body::Examine { answer, answer_to, addressed, padding } => {
                out.push((*answer).into());
                out.extend_from_slice(&answer_to.to_be_bytes());
                put_address(*addressed, &mut out);
                out.extend_from_slice(padding);
            }
            Body::Vitals(vitals) => vitals.encode(&mut out),
            Body::Done | Body::Alive | Body::Bye => {}
        }
        out.into()
    }

    /// Returns the beginning of a CHUNK, to which the bytes of the file are appended.
    pub fn begin_chunk(transfer: TransferId, number: u64, chunk: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(CHUNK_HEAD_LEN + chunk);
        Kind::Chunk.write_head(VERSION, transfer, &mut out);
        out.extend_from_slice(&number.to_be_bytes());
        out
    }

    /// Returns the number of bytes of the file in an encoded CHUNK.
    pub fn chunk_len(frame: &[u8]) -> u64 {
        frame.len().saturating_sub(CHUNK_HEAD_LEN) as u64
    }

    /// Decodes a receiver's answer. An answer in another version of the protocol counts as a refusal.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode), but for [`FrameError::Version`].
    pub fn decode_answer(bytes: &Bytes) -> Result<Self, FrameError> {
        match Self::decode(bytes) {
            Err(FrameError::Version { transfer, got }) => {
                Ok(Self { transfer, body: Body::Failed(Reason::Version(got.into())) })
            }
            result => result,
        }
    }

    /// Decodes a frame. A chunk's bytes are shared with `bytes`, not copied.
    ///
    /// # Errors
    ///
    /// The first field that is invalid: see [`FrameError`].
    pub fn decode(bytes: &Bytes) -> Result<Self, FrameError> {
        let mut rest = bytes.clone();
        if get_array(&mut rest)? != MAGIC {
            return Err(FrameError::Magic);
        }
        let version = rest.try_get_u8()?;
        let kind = rest.try_get_u8()?;
        let session = InvocationId(get_array(&mut rest)?);
        let transfer = TransferId { session, file: rest.try_get_u32()? };
        if version != VERSION {
            return Err(FrameError::Version { transfer, got: version });
        }
        let body = match Kind::from_wire(kind)? {
            Kind::Offer => Body::Offer(Offer::decode(transfer.file, &mut rest)?),
            Kind::Accept => {
                let window = rest.try_get_u16()?;
                within("window", window.into(), 1, MAX_WINDOW.into())?;
                let patience = patience(rest.try_get_u32()?)?;
                Body::Accept { window, patience, prefixes: Prefix::decode_all(&mut rest)? }
            }
            Kind::Chunk => {
                let number = rest.try_get_u64()?;
                let bytes = mem::take(&mut rest);
                within("chunk length", bytes.len() as u64, 1, MAX_CHUNK as u64)?;
                Body::Chunk { number, bytes }
            }
            Kind::Finish => {
                Body::Finish { size: rest.try_get_u64()?, digest: get_array(&mut rest)? }
            }
            Kind::Done => Body::Done,
            Kind::Failed => {
                Body::Failed(Reason::from_wire(rest.try_get_u8()?, rest.try_get_u64()?))
            }
            Kind::Alive => Body::Alive,
            Kind::Bye => Body::Bye,
            Kind::Examine => {
                let answer = rest.try_get_u8()?;
                within("answer", answer.into(), 0, 1)?;
                let answer_to = rest.try_get_u16()?;
                let addressed = get_address(&mut rest)?;
                let padding = mem::take(&mut rest);
                Body::Examine { answer: answer == 1, answer_to, addressed, padding }
            }
            Kind::Vitals => Body::Vitals(Vitals::decode(&mut rest)?),
            Kind::Resume => Body::Resume { len: rest.try_get_u64()? },
        };
        match rest.len() {
            0 => Ok(Self { transfer, body }),
            extra => Err(FrameError::TooLong { extra }),
        }
    }
}

impl Offer {
    fn decode(file: u32, rest: &mut Bytes) -> Result<Self, FrameError> {
        let files = rest.try_get_u32()?;
        within("files", files.into(), u64::from(file) + 1, u32::MAX.into())?;
        let chunk = rest.try_get_u32()?;
        within("chunk", chunk.into(), 1, MAX_CHUNK as u64)?;
        let size = rest.try_get_u64()?;
        let size = (size != UNKNOWN_SIZE).then_some(size);
        let patience = patience(rest.try_get_u32()?)?;
        let kind = rest.try_get_u8()?;
        let entry = match kind {
            0 | SPARSE => Entry::File,
            1 => Entry::Directory,
            2 => Entry::Link,
            _ => return Err(FrameError::Undefined { field: "entry", got: kind.into() }),
        };
        let sparse = kind == SPARSE;
        match entry {
            Entry::File => {}
            Entry::Directory => within("size", size.unwrap_or(UNKNOWN_SIZE), 0, 0)?,
            Entry::Link => within("size", size.unwrap_or(UNKNOWN_SIZE), 1, MAX_LINK)?,
        }
        let permissions = rest.try_get_u16()?;
        let attributes = Attributes {
            permissions,
            seconds: rest.try_get_i64()?,
            nanoseconds: rest.try_get_u32()?,
        };
        let attributes = (permissions != NO_ATTRIBUTES).then_some(attributes);
        if attributes.is_some() {
            within("permissions", permissions.into(), 0, 0o777)?;
        }
        within(
            "nanoseconds",
            attributes.map_or(0, |them| them.nanoseconds).into(),
            0,
            999_999_999,
        )?;
        let name = FilePath::from_bytes(&mem::take(rest));
        Ok(Self { files, chunk, size, patience, entry, sparse, attributes, name })
    }
}

impl Prefix {
    fn decode_all(rest: &mut Bytes) -> Result<Vec<Self>, FrameError> {
        let mut prefixes: Vec<Self> = Vec::new();
        while rest.has_remaining() {
            within("prefixes", prefixes.len() as u64 + 1, 1, MAX_PREFIXES as u64)?;
            let least = prefixes.last().map_or(0, |last| last.len) + 1;
            let prefix = Self { len: rest.try_get_u64()?, digest: get_array(rest)? };
            within("prefix length", prefix.len, least, u64::MAX - 1)?;
            prefixes.push(prefix);
        }
        Ok(prefixes)
    }
}

impl Body {
    const fn kind(&self) -> Kind {
        match self {
            Self::Offer(_) => Kind::Offer,
            Self::Accept { .. } => Kind::Accept,
            Self::Chunk { .. } => Kind::Chunk,
            Self::Finish { .. } => Kind::Finish,
            Self::Done => Kind::Done,
            Self::Failed(_) => Kind::Failed,
            Self::Alive => Kind::Alive,
            Self::Bye => Kind::Bye,
            Self::Examine { .. } => Kind::Examine,
            Self::Vitals(_) => Kind::Vitals,
            Self::Resume { .. } => Kind::Resume,
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Offer = 1,
    Accept,
    Chunk,
    Finish,
    Done,
    Failed,
    Alive,
    Bye,
    Examine,
    Vitals,
    Resume,
}

impl Kind {
    fn from_wire(got: u8) -> Result<Self, FrameError> {
        Ok(match got {
            1 => Self::Offer,
            2 => Self::Accept,
            3 => Self::Chunk,
            4 => Self::Finish,
            5 => Self::Done,
            6 => Self::Failed,
            7 => Self::Alive,
            8 => Self::Bye,
            9 => Self::Examine,
            10 => Self::Vitals,
            11 => Self::Resume,
            _ => return Err(FrameError::Undefined { field: "kind", got: got.into() }),
        })
    }

    fn write_head(self, version: u8, transfer: TransferId, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[version, self as u8]);
        out.extend_from_slice(&transfer.session.0);
        out.extend_from_slice(&transfer.file.to_be_bytes());
    }
}

/// Encodes a patience in milliseconds.
fn millis(patience: Duration) -> u32 {
    u32::try_from(patience.as_millis()).unwrap_or(u32::MAX)
}

/// Decodes a patience in milliseconds.
fn patience(millis: u32) -> Result<Duration, FrameError> {
    within("patience", millis.into(), 1, u32::MAX.into())?;
    Ok(Duration::from_millis(millis.into()))
}
