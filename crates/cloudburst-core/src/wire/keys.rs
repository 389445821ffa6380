//! Derives the keys of a session from the secrets of a handshake.
//!
//! All derivation is BLAKE3 in its key-derivation mode, with one context string per purpose.

use crate::id::{Digest, MessageId, SessionId};
use core::str::FromStr;
use twox_hash::XxHash3_128;

/// The shared secret of a set of endpoints: 32 bytes that only they know. `Debug` does not show them.
///
/// Its text form, as in key files, is 64 hexadecimal digits; whitespace around them is ignored.
#[derive(Clone)]
pub struct PresharedKey([u8; 32]);

/// Bytes or text that are not a key. The error does not contain them, since they may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Text of another length.
    #[error("a key must have 64 hexadecimal digits, but this text has {len} bytes")]
    Text {
        /// Bytes of text, without surrounding whitespace.
        len: usize,
    },
    /// Text with a character that is not a hexadecimal digit.
    #[error("a key must have 64 hexadecimal digits, but character {position} is not one")]
    Digit {
        /// Its position, counted from 1.
        position: usize,
    },
    /// Another number of bytes.
    #[error("a key must have 32 bytes, but this one has {len}")]
    Bytes {
        /// The number of bytes.
        len: usize,
    },
}

/// The secrets of a session, from which the keys of both directions are derived.
///
/// An observer of the handshake cannot compute them, not even with the pre-shared key; nor can the
/// two ends, once they have erased their ephemeral secrets.
#[derive(Clone)]
pub struct SessionSecrets {
    /// The secret for packets that the initiator seals.
    pub k1: [u8; 32],
    /// The secret for packets that the responder seals.
    pub k2: [u8; 32],
}

/// The secrets of one direction of messages: symbols one way, and answers the other.
#[derive(Clone, Debug)]
pub struct FlowKeys {
    /// Seals the symbols.
    pub symbols: DirectionKey,
    /// Seals the answers.
    pub answers: DirectionKey,
    /// Keys the digests of blocks and messages.
    pub digest: DigestKey,
}

/// The secret and the session id of the packets of one direction.
#[derive(Clone)]
pub struct DirectionKey {
    /// The session id that packets of this direction carry.
    pub session: SessionId,
    pub(super) secret: [u8; 32],
}

/// Bytes of a [`HeaderKey::tag`].
pub const HEADER_TAG_LEN: usize = 8;

/// The tag of a symbol's header.
pub type HeaderTag = [u8; HEADER_TAG_LEN];

/// Makes the header tags of one direction's symbols.
#[derive(Clone)]
pub struct HeaderKey([u8; 32]);

/// Makes the digests of blocks and messages.
///
/// Only a holder of the keys that seal packets could forge a digest, so it need only detect damage: the
/// bytes go through XXH3, which takes a thirtieth of the time of a cryptographic hash. But an
/// eavesdropper sees digests, and must not be able to confirm a guess of the bytes: each digest is
/// therefore masked with a keyed hash of the block's unique name.
#[derive(Clone)]
pub struct DigestKey {
    key: [u8; 32],
    seed: u64,
}

/// The keys of both directions of messages in one session.
#[derive(Clone, Debug)]
pub struct SessionKeys {
    /// Messages from the initiator to the responder.
    pub forward: FlowKeys,
    /// Messages from the responder to the initiator.
    pub backward: FlowKeys,
}

impl PresharedKey {
    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for PresharedKey {
    fn from(key: [u8; 32]) -> Self {
        Self(key)
    }
}

impl From<&[u8; 32]> for PresharedKey {
    fn from(key: &[u8; 32]) -> Self {
        Self(*key)
    }
}

impl TryFrom<Vec<u8>> for PresharedKey {
    type Error = KeyError;

    fn try_from(key: Vec<u8>) -> Result<Self, KeyError> {
        key.as_slice().try_into()
    }
}

impl TryFrom<&[u8]> for PresharedKey {
    type Error = KeyError;

    fn try_from(key: &[u8]) -> Result<Self, KeyError> {
        key.try_into().map(Self).map_err(|_| KeyError::Bytes { len: key.len() })
    }
}

impl FromStr for PresharedKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim().as_bytes();
        if digits.len() != 64 {
            return Err(KeyError::Text { len: digits.len() });
        }
        let mut key = [0; 32];
        for (at, &digit) in digits.iter().enumerate() {
            let value =
                char::from(digit).to_digit(16).ok_or(KeyError::Digit { position: at + 1 })?;
            key[at / 2] = key[at / 2] << 4 | value as u8;
        }
        Ok(Self(key))
    }
}

impl SessionKeys {
    /// Derives the keys from the secrets of a handshake. Packets carry the session id of their
    /// receiver: that of the `initiator`, or that of the `responder`.
    pub fn new(secrets: &SessionSecrets, initiator: SessionId, responder: SessionId) -> Self {
        let forth = (&secrets.k1, responder);
        let back = (&secrets.k2, initiator);
        let direction = |context, (secret, session): (&[u8; 32], SessionId)| DirectionKey {
            session,
            secret: blake3::derive_key(context, secret),
        };
        let flow = |symbols: (&[u8; 32], SessionId), answers: (&[u8; 32], SessionId)| FlowKeys {
            symbols: direction("cloudburst v3 symbols", symbols),
            answers: direction("cloudburst v3 answers", answers),
            digest: DigestKey::derive(symbols.0),
        };
        Self { forward: flow(forth, back), backward: flow(back, forth) }
    }
}

impl DirectionKey {
    /// Returns the key of header tags in this direction.
    pub fn header_key(&self) -> HeaderKey {
        HeaderKey(blake3::derive_key("cloudburst v3 header tags", &self.secret))
    }
}

impl HeaderKey {
    /// Returns the tag of a header: a keyed hash. No two packets of a direction have the same header,
    /// because it contains the packet number.
    pub fn tag(&self, header: &[u8]) -> HeaderTag {
        let mut tag = HeaderTag::default();
        tag.copy_from_slice(&blake3::keyed_hash(&self.0, header).as_bytes()[..HEADER_TAG_LEN]);
        tag
    }
}

impl DigestKey {
    fn derive(secret: &[u8; 32]) -> Self {
        let mut key = [0; 32];
        let mut seed = [0; 8];
        let mut hasher = blake3::Hasher::new_derive_key("cloudburst v3 digests");
        let mut output = hasher.update(secret).finalize_xof();
        output.fill(&mut key);
        output.fill(&mut seed);
        Self { key, seed: u64::from_be_bytes(seed) }
    }

    /// Returns the digest of one block: of the message's bytes in it, without padding.
    pub fn block(&self, message: MessageId, block: u32, bytes: &[u8]) -> Digest {
        let mut name = [b'b'; 13];
        name[1..9].copy_from_slice(&message.0.to_be_bytes());
        name[9..].copy_from_slice(&block.to_be_bytes());
        // The seed of XXH3 might be found from digests of known bytes, and STOPs show digests in
        // clear: without the mask, guesses of unknown bytes could be tested.
        let Digest(mask) = first_16(&blake3::keyed_hash(&self.key, &name));
        // 64 ns for 1.5 KB; keyed BLAKE3 took 2.4 us, a fifth of all processor time under a flood
        // of 5 KB messages.
        let sum = XxHash3_128::oneshot_with_seed(self.seed, bytes);
        Digest((sum ^ u128::from_be_bytes(mask)).to_be_bytes())
    }

    /// Returns the digest of a message: that of its only block, or a digest of the digests of its blocks.
    pub fn message<'a>(
        &self,
        message: MessageId,
        blocks: impl IntoIterator<Item = &'a Digest>,
    ) -> Digest {
        let mut blocks = blocks.into_iter().peekable();
        let first = blocks.next();
        if let (Some(only), None) = (first, blocks.peek()) {
            return *only;
        }
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"m").update(&message.0.to_be_bytes());
        for block in first.into_iter().chain(blocks) {
            hasher.update(&block.0);
        }
        first_16(&hasher.finalize())
    }
}

fn first_16(hash: &blake3::Hash) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.as_bytes()[..16]);
    Digest(digest)
}

opaque_debug!(PresharedKey, SessionSecrets, DirectionKey, HeaderKey, DigestKey);
