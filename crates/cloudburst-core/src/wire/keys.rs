//! From a pre-shared key and both incarnations to the keys of a session.
//!
//! All derivation is BLAKE3 in its key-derivation mode, with one context string a purpose.

use super::hello::{HelloAck, HelloKey};
use crate::id::{Digest, MessageId, SessionId};
use twox_hash::XxHash3_128;

/// The shared secret of a set of endpoints.
#[derive(Clone)]
pub struct PresharedKey([u8; 32]);

/// The secrets of one direction of messages: its symbols one way, its answers the other.
#[derive(Clone, Debug)]
pub struct FlowKeys {
    /// Seals the symbols.
    pub symbols: DirectionKey,
    /// Seals the answers.
    pub answers: DirectionKey,
    /// Keys the digests of blocks and messages.
    pub digest: DigestKey,
}

/// The secret and the name of the packets of one direction.
#[derive(Clone)]
pub struct DirectionKey {
    /// What the packets of this direction carry.
    pub session: SessionId,
    pub(super) secret: [u8; 32],
}

/// Makes the digests of blocks and messages.
///
/// Whoever could forge one holds the keys that packets are sealed with, so a digest need only tell
/// damage: the bytes go through XXH3, which takes a thirtieth of the time of a cryptographic hash.
/// But digests are seen by whoever sees the packets, and a guess of the bytes must not be confirmed
/// by one: so each is masked with a keyed hash of the block's name, which no other block has.
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
    /// Wraps 32 bytes that only the endpoints which may talk to each other know.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The key that authenticates handshakes under this key.
    pub fn hello_key(&self) -> HelloKey {
        HelloKey(blake3::derive_key("cloudburst v2 hello", &self.0))
    }

    /// The keys of the session that a HELLO_ACK concludes.
    ///
    /// Both ends put something in that they never used before (the initiator its `nonce`, the
    /// responder its `session_nonce`), so that neither a replay nor an end that forgot the
    /// session can bring its keys, and with them its packet numbers, back.
    pub fn session(&self, ack: &HelloAck) -> SessionKeys {
        let secret = |context| {
            let mut hasher = blake3::Hasher::new_derive_key(context);
            hasher
                .update(&self.0)
                .update(&ack.initiator.0)
                .update(&ack.nonce.to_be_bytes())
                .update(&ack.responder.0)
                .update(&ack.session_nonce);
            hasher.finalize().into()
        };
        let (forward, backward): ([u8; 32], [u8; 32]) =
            (secret("cloudburst v2 to the responder"), secret("cloudburst v2 to the initiator"));
        let name = |secret: &[u8; 32]| {
            let [a, b, c, d, ..] = blake3::derive_key("cloudburst v2 session id", secret);
            SessionId(u32::from_be_bytes([a, b, c, d]))
        };
        SessionKeys::new(&forward, &backward, name(&backward), name(&forward))
    }
}

impl SessionKeys {
    /// The keys that follow from the secrets of a handshake: that of packets to the responder, and
    /// that of packets to the initiator. Packets carry the session as their receiver knows it.
    pub fn new(
        to_responder: &[u8; 32],
        to_initiator: &[u8; 32],
        initiator: SessionId,
        responder: SessionId,
    ) -> Self {
        let forth = (to_responder, responder);
        let back = (to_initiator, initiator);
        let flow = |symbols: (&[u8; 32], SessionId), answers: (&[u8; 32], SessionId)| FlowKeys {
            symbols: DirectionKey::derive("cloudburst v2 symbols", symbols.0, symbols.1),
            answers: DirectionKey::derive("cloudburst v2 answers", answers.0, answers.1),
            digest: DigestKey::derive(symbols.0),
        };
        Self { forward: flow(forth, back), backward: flow(back, forth) }
    }
}

impl DirectionKey {
    fn derive(context: &str, secret: &[u8; 32], session: SessionId) -> Self {
        Self { session, secret: blake3::derive_key(context, secret) }
    }
}

impl DigestKey {
    fn derive(secret: &[u8; 32]) -> Self {
        let (mut key, mut seed) = ([0; 32], [0; 8]);
        let mut hasher = blake3::Hasher::new_derive_key("cloudburst v2 digests");
        let mut output = hasher.update(secret).finalize_xof();
        output.fill(&mut key);
        output.fill(&mut seed);
        Self { key, seed: u64::from_be_bytes(seed) }
    }

    /// The digest of one block: of the message's bytes in it, without padding.
    pub fn block(&self, message: MessageId, block: u32, bytes: &[u8]) -> Digest {
        let mut name = [b'b'; 13];
        name[1..9].copy_from_slice(&message.0.to_be_bytes());
        name[9..].copy_from_slice(&block.to_be_bytes());
        let Digest(mask) = first_16(&blake3::keyed_hash(&self.key, &name));
        let sum = XxHash3_128::oneshot_with_seed(self.seed, bytes);
        Digest((sum ^ u128::from_be_bytes(mask)).to_be_bytes())
    }

    /// The digest of a message: its block's, or, of more than one block, that of their digests.
    pub fn message(&self, message: MessageId, blocks: &[Digest]) -> Digest {
        if let [only] = blocks {
            return *only;
        }
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"m").update(&message.0.to_be_bytes());
        for block in blocks {
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

macro_rules! opaque_debug {
    ($($name:ident),*) => {$(
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    )*};
}
opaque_debug!(PresharedKey, DirectionKey, DigestKey);
