//! The two ends of Noise_NNpsk0_25519_AESGCM_SHA256: the pre-shared key authenticates, and ephemeral
//! keys yield the secrets.
//!
//! The prologue binds both messages to the handshake's nonce.

use super::{
    fields::{AcceptFields, OpenFields},
    open::{ACCEPT_MESSAGE_LEN, Accept, OPEN_MESSAGE_LEN, Open},
    primitives,
    token::Token,
};
use crate::id::PathId;
use crate::wire::keys::SessionSecrets;
use snow::{Builder, HandshakeState};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
const PROLOGUE: &[u8; 13] = b"cloudburst v3";

/// The initiator's end, from OPEN to ACCEPT.
pub struct Initiation {
    nonce: u64,
    message: [u8; OPEN_MESSAGE_LEN],
    state: HandshakeState,
}

/// The responder's end, from OPEN to ACCEPT.
pub struct Response(HandshakeState);

opaque_debug!(Initiation, Response);

impl Initiation {
    /// Makes Noise message 1, at the cost of one X25519 multiplication.
    ///
    /// `ephemeral` must be drawn anew for each initiation: the session's secrets depend on it, and so
    /// does the key that seals the fields, which must not seal any others.
    pub fn new(psk: &[u8; 32], nonce: u64, ephemeral: [u8; 32], fields: &OpenFields) -> Self {
        let mut state = builder(psk, &prologue(nonce), ephemeral)
            .build_initiator()
            .expect("the pattern needs no key but the pre-shared one");
        let mut message = [0; OPEN_MESSAGE_LEN];
        state
            .write_message(&fields.to_bytes(), &mut message)
            .expect("the message is the initiator's first and has room for the fields");
        Self { nonce, message, state }
    }

    /// Returns the OPEN to send. Copies differ only in these arguments.
    pub const fn open(&self, path: PathId, return_path: u8, token: Token) -> Open {
        Open { path, return_path, nonce: self.nonce, token, message: self.message }
    }

    /// Opens the message of an ACCEPT, at the cost of one X25519 multiplication.
    ///
    /// Returns `None` if it is not an answer to this OPEN by a holder of the pre-shared key; the
    /// authentic one can still arrive. Also returns `None` for any ACCEPT after the authentic one, or
    /// if the fields of the authentic one are invalid.
    pub fn accept(&mut self, accept: &Accept) -> Option<(AcceptFields, SessionSecrets)> {
        if accept.nonce != self.nonce {
            return None;
        }
        let mut fields = [0; AcceptFields::LEN];
        // On failure `snow` leaves hash, chaining key and turn unchanged. It does change the
        // responder's key and the cipher's, but the next message overwrites both before use.
        self.state.read_message(&accept.message, &mut fields).ok()?;
        let fields = AcceptFields::from_bytes(&fields).ok()?;
        Some((fields, secrets(&mut self.state)))
    }
}

impl Open {
    /// Opens the message, at the cost of the ciphers only. Returns `None` if it was not made under
    /// `psk` and for this nonce, or if its fields are invalid.
    ///
    /// `ephemeral` must be drawn anew for each response.
    pub fn read(&self, psk: &[u8; 32], ephemeral: [u8; 32]) -> Option<(OpenFields, Response)> {
        let mut state = builder(psk, &prologue(self.nonce), ephemeral)
            .build_responder()
            .expect("the pattern needs no key but the pre-shared one");
        let mut fields = [0; OpenFields::LEN];
        state.read_message(&self.message, &mut fields).ok()?;
        Some((OpenFields::from_bytes(&fields).ok()?, Response(state)))
    }
}

impl Response {
    /// Makes Noise message 2 and the secrets, at the cost of two X25519 multiplications.
    pub fn accept(mut self, fields: &AcceptFields) -> ([u8; ACCEPT_MESSAGE_LEN], SessionSecrets) {
        let mut message = [0; ACCEPT_MESSAGE_LEN];
        self.0
            .write_message(&fields.to_bytes(), &mut message)
            .expect("message 1 was read, and the message has room for the fields");
        (message, secrets(&mut self.0))
    }
}

fn prologue(nonce: u64) -> [u8; PROLOGUE.len() + 8] {
    let mut prologue = [0; PROLOGUE.len() + 8];
    prologue[..PROLOGUE.len()].copy_from_slice(PROLOGUE);
    prologue[PROLOGUE.len()..].copy_from_slice(&nonce.to_be_bytes());
    prologue
}

fn builder<'a>(psk: &'a [u8; 32], prologue: &'a [u8], ephemeral: [u8; 32]) -> Builder<'a> {
    let pattern = PATTERN.parse().expect("a pattern that the Noise specification lists");
    Builder::with_resolver(pattern, Box::new(primitives::Resolver::new(ephemeral)))
        .psk(0, psk)
        .and_then(|builder| builder.prologue(prologue))
        .expect("neither was set before")
}

/// Returns the secrets of a handshake of which both messages were processed.
fn secrets(state: &mut HandshakeState) -> SessionSecrets {
    debug_assert!(state.is_handshake_finished());
    let (k1, k2) = state.dangerously_get_raw_split();
    SessionSecrets { k1, k2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// From the test vectors of cacophony, which `snow` carries.
    #[test]
    fn the_primitives_give_the_published_bytes() {
        let psk = b"This is my Austrian perspective!";
        let ephemeral = |text| unhex(text).try_into().unwrap();
        let initiator = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a";
        let responder = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b";
        let mut ends = [
            builder(psk, b"John Galt", ephemeral(initiator)).build_initiator().unwrap(),
            builder(psk, b"John Galt", ephemeral(responder)).build_responder().unwrap(),
        ];
        let messages: [(&[u8], &str); 2] = [
            (
                b"Ludwig von Mises",
                "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
                 7c37a89fc17813788d30df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1",
            ),
            (
                b"Murray Rothbard",
                "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
                 2f29d79368ef9de4e1ae7a362fb05bf0ad668e026bf5714554497b3a720461",
            ),
        ];
        for (payload, expected) in messages {
            let mut message = [0; 64];
            let mut read = [0; 16];
            let len = ends[0].write_message(payload, &mut message).unwrap();
            assert_eq!(message[..len], unhex(expected));
            let len = ends[1].read_message(&message[..len], &mut read).unwrap();
            assert_eq!(read[..len], *payload);
            ends.reverse();
        }
        let hash = "9f3b1f9afd7767767b5b9d1069844a6154fdbdcc36dfb3e31c0fffc5c973d530";
        assert!(ends.iter().all(|end| end.get_handshake_hash() == unhex(hash)));
        let [SessionSecrets { k1, k2 }, theirs] = ends.each_mut().map(secrets);
        assert_eq!((k1, k2), (theirs.k1, theirs.k2));
        // The first packet that each end seals shows that these are the keys of the specification.
        let sealed = [
            (k1, "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6"),
            (k2, "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0"),
        ];
        let payloads: [&[u8]; 2] = [b"F. A. Hayek", b"Carl Menger"];
        for ((key, expected), payload) in sealed.into_iter().zip(payloads) {
            assert_eq!(primitives::tests::seal(key, payload), unhex(expected));
        }
    }
}
