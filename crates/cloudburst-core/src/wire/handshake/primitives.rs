//! The primitives of the Noise handshake: AES-256-GCM and SHA-256 by `ring`, X25519 by
//! `curve25519-dalek`, and one ephemeral secret in place of a random generator.
//!
//! `snow` has resolvers of its own, but they pull in other implementations of all of these and the
//! operating system's random generator.

use crate::wire::seal;
use curve25519_dalek::MontgomeryPoint;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Tag, UnboundKey};
use ring::digest;
use snow::{
    Error,
    params::{CipherChoice, DHChoice, HashChoice},
    resolvers::CryptoResolver,
    types::{Cipher, Dh, Hash, Random},
};
use std::cell::Cell;

/// Bytes of an X25519 key, public or secret.
const KEY_LEN: usize = 32;
/// Bytes of the tag after sealed bytes.
const TAG_LEN: usize = 16;

/// Returns the bytes of a Noise message that carries this many bytes of fields.
pub(super) const fn sealed_len(fields: usize) -> usize {
    KEY_LEN + fields + TAG_LEN
}

/// Supplies the primitives to one handshake.
// A cell, because `snow` resolves through a shared reference.
pub(super) struct Resolver(Cell<Option<[u8; KEY_LEN]>>);

/// Returns the ephemeral secret once. Further requests get an error, never the same bytes.
struct Ephemeral(Option<[u8; KEY_LEN]>);

#[derive(Default)]
struct X25519 {
    secret: [u8; KEY_LEN],
    public: [u8; KEY_LEN],
}

#[derive(Default)]
struct Aes256Gcm(Option<LessSafeKey>);

struct Sha256(digest::Context);

impl Resolver {
    /// Creates the resolver of a handshake with this ephemeral secret.
    pub(super) const fn new(ephemeral: [u8; KEY_LEN]) -> Self {
        Self(Cell::new(Some(ephemeral)))
    }
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Ephemeral(Some(self.0.take()?))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::new(X25519::default()) as _)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        (*choice == HashChoice::SHA256).then(|| Box::new(Sha256::new()) as _)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        (*choice == CipherChoice::AESGCM).then(|| Box::new(Aes256Gcm::default()) as _)
    }
}

impl Random for Ephemeral {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let dest: &mut [u8; KEY_LEN] = dest.try_into().map_err(|_| Error::Rng)?;
        *dest = self.0.take().ok_or(Error::Rng)?;
        Ok(())
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_LEN
    }

    fn priv_len(&self) -> usize {
        KEY_LEN
    }

    fn set(&mut self, secret: &[u8]) {
        self.secret.copy_from_slice(secret);
        self.public = MontgomeryPoint::mul_base_clamped(self.secret).to_bytes();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut secret = [0; KEY_LEN];
        rng.try_fill_bytes(&mut secret)?;
        self.set(&secret);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.secret
    }

    /// Accepts every public key: an output of zeros is treated like any other, as the Noise
    /// specification advises (section 12.1).
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        // `snow` passes buffers large enough for the keys of other curves.
        let public = public.first_chunk().ok_or(Error::Dh)?;
        let out = out.first_chunk_mut().ok_or(Error::Dh)?;
        *out = MontgomeryPoint(*public).mul_clamped(self.secret).to_bytes();
        Ok(())
    }
}

impl Aes256Gcm {
    const fn key(&self) -> &LessSafeKey {
        self.0.as_ref().expect("snow sets the key of a cipher before it uses the cipher")
    }
}

impl Cipher for Aes256Gcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, key: &[u8; 32]) {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("AES-256 keys have 32 bytes");
        self.0 = Some(LessSafeKey::new(key));
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (sealed, rest) = out.split_at_mut(plaintext.len());
        sealed.copy_from_slice(plaintext);
        let tag = self
            .key()
            .seal_in_place_separate_tag(seal::nonce(nonce), Aad::from(authtext), sealed)
            .expect("a message is far shorter than the cipher's limit of 64 GiB");
        rest[..TAG_LEN].copy_from_slice(tag.as_ref());
        plaintext.len() + TAG_LEN
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let (sealed, tag) = ciphertext.split_last_chunk::<TAG_LEN>().ok_or(Error::Decrypt)?;
        let out = out.get_mut(..sealed.len()).ok_or(Error::Decrypt)?;
        out.copy_from_slice(sealed);
        let nonce = seal::nonce(nonce);
        let tag = Tag::from(*tag);
        self.key()
            .open_in_place_separate_tag(nonce, Aad::from(authtext), tag, out, 0..)
            .map_err(|_| Error::Decrypt)?;
        Ok(sealed.len())
    }
}

impl Sha256 {
    fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        digest::SHA256.block_len()
    }

    fn hash_len(&self) -> usize {
        digest::SHA256_OUTPUT_LEN
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let Self(context) = core::mem::replace(self, Self::new());
        out[..digest::SHA256_OUTPUT_LEN].copy_from_slice(context.finish().as_ref());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Seals `plaintext` as the first message under `key`.
    pub(in super::super) fn seal(key: [u8; 32], plaintext: &[u8]) -> Vec<u8> {
        let mut cipher = Aes256Gcm::default();
        cipher.set(&key);
        let mut sealed = vec![0; plaintext.len() + TAG_LEN];
        assert_eq!(cipher.encrypt(0, &[], plaintext, &mut sealed), sealed.len());
        sealed
    }

    #[test]
    fn an_ephemeral_secret_is_handed_out_once() {
        let resolver = Resolver::new([7; 32]);
        let mut rng = resolver.resolve_rng().unwrap();
        assert!(resolver.resolve_rng().is_none());
        let mut bytes = [0; 32];
        assert_eq!(rng.try_fill_bytes(&mut [0; 31]), Err(Error::Rng));
        assert_eq!(rng.try_fill_bytes(&mut bytes), Ok(()));
        assert_eq!(bytes, [7; 32]);
        assert_eq!(rng.try_fill_bytes(&mut bytes), Err(Error::Rng));
    }

    #[test]
    fn changed_or_overlong_ciphertexts_do_not_open() {
        let mut cipher = Aes256Gcm::default();
        cipher.set(&[1; 32]);
        let sealed = seal([1; 32], b"text");
        let mut out = [0; 4];
        assert_eq!(cipher.decrypt(0, &[], &sealed, &mut out), Ok(4));
        assert_eq!(&out, b"text");
        assert_eq!(cipher.decrypt(1, &[], &sealed, &mut out), Err(Error::Decrypt));
        assert_eq!(cipher.decrypt(0, b"a", &sealed, &mut out), Err(Error::Decrypt));
        assert_eq!(cipher.decrypt(0, &[], &sealed, &mut out[..3]), Err(Error::Decrypt));
        assert_eq!(cipher.decrypt(0, &[], &sealed[..15], &mut out), Err(Error::Decrypt));
    }
}
