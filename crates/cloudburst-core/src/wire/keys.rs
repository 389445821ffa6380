//! From a pre-shared key and both incarnations to the keys of a session.
//!
//! All derivation is BLAKE3 in its key-derivation mode, with one context string a purpose.

use super::hello::{HelloAck, HelloKey};
use crate::id::{Digest, MessageId, SessionId};

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
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

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
        HelloKey(blake3::derive_key("cloudburst v1 hello", &self.0))
    }

    /// The keys of the session that a HELLO_ACK concludes.
    ///
    /// Both ends put something in that they never used before (the initiator its `nonce`, the
    /// responder its `session_nonce`), so that neither a replay nor an end that forgot the
    /// session can bring its keys, and with them its packet numbers, back.
    pub fn session(&self, ack: &HelloAck) -> SessionKeys {
        let mut hasher = blake3::Hasher::new_derive_key("cloudburst v1 session");
        hasher
            .update(&self.0)
            .update(&ack.initiator.0)
            .update(&ack.nonce.to_be_bytes())
            .update(&ack.responder.0)
            .update(&ack.session_nonce);
        let secret: [u8; 32] = hasher.finalize().into();
        let flow = |symbols, answers, digest| FlowKeys {
            symbols: DirectionKey::derive(symbols, &secret),
            answers: DirectionKey::derive(answers, &secret),
            digest: DigestKey(blake3::derive_key(digest, &secret)),
        };
        SessionKeys {
            forward: flow(
                "cloudburst v1 forward symbols",
                "cloudburst v1 forward answers",
                "cloudburst v1 forward digests",
            ),
            backward: flow(
                "cloudburst v1 backward symbols",
                "cloudburst v1 backward answers",
                "cloudburst v1 backward digests",
            ),
        }
    }
}

impl DirectionKey {
    fn derive(context: &str, secret: &[u8; 32]) -> Self {
        let mut output = [0; 40];
        let mut hasher = blake3::Hasher::new_derive_key(context);
        hasher.update(secret).finalize_xof().fill(&mut output);
        let (secret, session) = output.split_at(32);
        let mut key = Self { session: SessionId(0), secret: [0; 32] };
        key.secret.copy_from_slice(secret);
        let mut name = [0; 8];
        name.copy_from_slice(session);
        key.session = SessionId(u64::from_be_bytes(name));
        key
    }
}

impl DigestKey {
    /// The digest of one block: of the message's bytes in it, without padding.
    pub fn block(&self, message: MessageId, block: u32, bytes: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"b").update(&message.0.to_be_bytes()).update(&block.to_be_bytes());
        finish(hasher.update(bytes))
    }

    /// The digest of a message: its block's, or, of more than one block, that of their digests.
    pub fn message(&self, message: MessageId, blocks: &[Digest]) -> Digest {
        if let [only] = blocks {
            return *only;
        }
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"m").update(&message.0.to_be_bytes());
        for block in blocks {
            hasher.update(&block.0);
        }
        finish(&hasher)
    }
}

fn finish(hasher: &blake3::Hasher) -> Digest {
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
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
