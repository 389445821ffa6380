//! Sealing: AES-128-GCM over every packet of a session.
//!
//! Header fields are authenticated in the clear; a symbol's payload is encrypted as well. The
//! nonce is the packet number, which one [`Sealer`] counts and which never repeats. The key changes
//! after every [`EPOCH_PACKETS`] packets, far below the limits of the cipher (RFC 9001, section
//! 6.6), without signalling on the wire.

use super::keys::{DirectionKey, HeaderKey, HeaderTag};
use super::packet::MAX_NUMBER;
use super::window::ReplayWindow;
use crate::id::SessionId;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Bytes of the authentication tag at the end of a packet.
pub const TAG_LEN: usize = 16;

/// Packets sealed under one key.
// Random worlds with small limits reach the change of keys; no test can send 2^24 packets.
pub const EPOCH_PACKETS: u64 = if cfg!(feature = "small-limits") { 1 << 7 } else { 1 << 24 };

/// Why a packet was not opened. Such packets get no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its number was seen before, or is older than the replay window.
    #[error("packet is a replay, or older than the replay window")]
    Replayed,
    /// It is not authentic.
    #[error("packet is not authentic")]
    Forged,
}

/// Numbers and seals the packets of one direction.
#[derive(Debug)]
pub struct Sealer {
    direction: DirectionKey,
    epoch: u64,
    key: LessSafeKey,
    next: u64,
}

/// Opens the packets of one direction, each once.
#[derive(Debug)]
pub struct Opener {
    direction: DirectionKey,
    /// The last epochs and their keys: packets of two epochs may arrive interleaved.
    keys: [(u64, LessSafeKey); 2],
    window: ReplayWindow,
    /// The verifier of trimmed packets, if packets of this direction carry header tags.
    headers: Option<Box<HeaderVerifier>>,
}

/// Verifies the headers of trimmed packets, each once. It has its own window: an untrimmed duplicate
/// with the same number may arrive later, and must still be opened.
#[derive(Debug)]
struct HeaderVerifier {
    key: HeaderKey,
    window: ReplayWindow,
}

impl Sealer {
    /// Starts at packet number 0.
    ///
    /// There must never be more than one sealer per direction: two would repeat nonces.
    pub fn new(direction: DirectionKey) -> Self {
        let key = epoch_key(&direction, 0);
        Self { direction, epoch: 0, key, next: 0 }
    }

    /// Returns the session id that packets of this direction carry.
    pub const fn session(&self) -> SessionId {
        self.direction.session
    }

    /// Returns the number that the next packet's prefix must carry.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Seals the packet that starts at `start` in `buffer` and carries [`next_number`]: encrypts it
    /// from `payload_at` (an index into the packet), authenticates all of it, and appends the tag.
    ///
    /// # Panics
    ///
    /// If `payload_at` lies outside the packet, or after 2^48 packets.
    ///
    /// [`next_number`]: Self::next_number
    pub fn seal(&mut self, buffer: &mut Vec<u8>, start: usize, payload_at: usize) {
        let number = self.next;
        assert!(number < MAX_NUMBER, "no process lives long enough to seal 2^48 packets");
        self.next = number + 1;
        if number / EPOCH_PACKETS != self.epoch {
            self.epoch = number / EPOCH_PACKETS;
            self.key = epoch_key(&self.direction, self.epoch);
        }
        // Headers stay readable, so that operators see messages, blocks and paths in a capture.
        // Header protection would also cost a block of AES a packet.
        let (header, payload) = buffer[start..].split_at_mut(payload_at);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(number), Aad::from(&*header), payload)
            .expect("a packet is far shorter than the cipher's limit of 64 GiB");
        buffer.extend_from_slice(tag.as_ref());
    }
}

impl Opener {
    /// Creates an opener that expects packets from number 0.
    pub fn new(direction: DirectionKey) -> Self {
        let keys = [0, 1].map(|epoch| (epoch, epoch_key(&direction, epoch)));
        Self { direction, keys, window: ReplayWindow::default(), headers: None }
    }

    /// Creates an opener that expects packets with header tags from number 0.
    pub fn with_header_tags(direction: DirectionKey) -> Self {
        let key = direction.header_key();
        let headers = HeaderVerifier { key, window: ReplayWindow::default() };
        Self { headers: Some(Box::new(headers)), ..Self::new(direction) }
    }

    /// Returns the session id that packets of this direction carry.
    pub const fn session(&self) -> SessionId {
        self.direction.session
    }

    /// Authenticates `packet`, decrypts the bytes between `payload_at` and the tag, and returns them.
    /// The packet's number counts as seen only if this succeeds.
    ///
    /// # Errors
    ///
    /// [`OpenError`] for a replay, or for a packet that a holder of the key did not make; `packet` is
    /// then garbled.
    pub fn open<'a>(
        &mut self,
        number: u64,
        packet: &'a mut [u8],
        payload_at: usize,
    ) -> Result<&'a mut [u8], OpenError> {
        if number >= MAX_NUMBER || !self.window.is_fresh(number) {
            return Err(OpenError::Replayed);
        }
        let (header, sealed) = packet.split_at_mut_checked(payload_at).ok_or(OpenError::Forged)?;
        let epoch = number / EPOCH_PACKETS;
        let known = self.keys.iter().find(|(of, _)| *of == epoch);
        // Packets carry the full number, so its epoch is known however many packets were lost.
        let fresh = known.is_none().then(|| epoch_key(&self.direction, epoch));
        let key = known.map(|(_, key)| key).or(fresh.as_ref()).expect("it is known or fresh");
        let payload = key
            .open_in_place(nonce(number), Aad::from(&*header), sealed)
            .map_err(|_| OpenError::Forged)?;
        self.window.mark(number);
        // Only an authentic packet replaces a key: a forged number costs one derivation and nothing
        // else.
        if let Some(key) = fresh {
            let oldest = usize::from(self.keys[1].0 < self.keys[0].0);
            self.keys[oldest] = (epoch, key);
        }
        Ok(payload)
    }

    /// Returns whether an authentic trimmed copy of packet `number` has arrived.
    pub fn was_trimmed(&self, number: u64) -> bool {
        self.headers.as_ref().is_some_and(|headers| !headers.window.is_fresh(number))
    }

    /// Authenticates the header of a trimmed packet. Its number then counts as seen for trimmed
    /// packets, but not for whole ones.
    ///
    /// # Errors
    ///
    /// [`OpenError`] for a replay of a whole or trimmed packet, or for a header that a holder of the
    /// key did not make. Without header tags, every header is refused.
    pub fn verify_header(
        &mut self,
        number: u64,
        header: &[u8],
        tag: HeaderTag,
    ) -> Result<(), OpenError> {
        let headers = self.headers.as_mut().ok_or(OpenError::Forged)?;
        let is_fresh = self.window.is_fresh(number) && headers.window.is_fresh(number);
        if number >= MAX_NUMBER || !is_fresh {
            return Err(OpenError::Replayed);
        }
        // One comparison of 64 bits takes the same time for all tags.
        if u64::from_be_bytes(headers.key.tag(header)) != u64::from_be_bytes(tag) {
            return Err(OpenError::Forged);
        }
        headers.window.mark(number);
        Ok(())
    }
}

/// Returns the nonce: 32 zero bits, then the number, big-endian (Noise, section 12.3).
pub(super) fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn epoch_key(direction: &DirectionKey, epoch: u64) -> LessSafeKey {
    let mut hasher = blake3::Hasher::new_derive_key("cloudburst v3 packet key");
    hasher.update(&direction.secret).update(&epoch.to_be_bytes());
    let key: [u8; 32] = hasher.finalize().into();
    LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..16]).expect("AES-128 keys have 16 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PathId;
    use crate::wire::keys::SessionKeys;
    use crate::wire::keys::SessionSecrets;
    use crate::wire::packet::{PREFIX_LEN, Prefix};

    fn direction() -> DirectionKey {
        let secrets = SessionSecrets { k1: [1; 32], k2: [2; 32] };
        SessionKeys::new(&secrets, SessionId(3), SessionId(4)).forward.symbols
    }

    fn seal_as(sealer: &mut Sealer, number: u64) -> Vec<u8> {
        sealer.next = number;
        let session = sealer.session();
        let prefix = Prefix::answer(0, PathId(0), session, number);
        let mut packet = Vec::new();
        prefix.write(&mut packet);
        packet.extend_from_slice(b"payload");
        sealer.seal(&mut packet, 0, PREFIX_LEN);
        packet
    }

    #[test]
    fn keys_change_with_the_epoch_and_the_opener_follows() {
        let mut sealer = Sealer::new(direction());
        let mut opener = Opener::new(direction());
        let mut open = |number: u64, mut packet: Vec<u8>| {
            opener.open(number, &mut packet, PREFIX_LEN).map(|payload| payload.to_vec())
        };
        let early = EPOCH_PACKETS - 2;
        let late_packet = seal_as(&mut sealer, early + 1);
        for number in
            [0, early, EPOCH_PACKETS, EPOCH_PACKETS + 1, EPOCH_PACKETS * 3 / 2, EPOCH_PACKETS * 2]
        {
            let packet = seal_as(&mut sealer, number);
            assert_eq!(open(number, packet), Ok(b"payload".to_vec()), "number {number}");
            if number == EPOCH_PACKETS + 1 {
                // Late, from the previous epoch: can still be opened.
                assert!(open(early + 1, late_packet.clone()).is_ok());
            }
        }
    }

    #[test]
    fn a_packet_opens_however_many_were_lost_before_it() {
        let mut sealer = Sealer::new(direction());
        let mut opener = Opener::new(direction());
        let far = EPOCH_PACKETS * 9;
        for number in [far, far - 1, EPOCH_PACKETS * 900, MAX_NUMBER - 1] {
            let mut packet = seal_as(&mut sealer, number);
            let mut forged = packet.clone();
            forged[PREFIX_LEN] ^= 1;
            assert_eq!(opener.open(number, &mut forged, PREFIX_LEN), Err(OpenError::Forged));
            let payload = opener.open(number, &mut packet, PREFIX_LEN);
            assert_eq!(payload.unwrap(), b"payload", "number {number}");
        }
        let mut late = seal_as(&mut sealer, far + 1);
        assert_eq!(opener.open(far + 1, &mut late, PREFIX_LEN), Err(OpenError::Replayed));
    }

    #[test]
    fn a_trimmed_header_is_believed_once_and_burns_no_number() {
        let direction = direction();
        let mut sealer = Sealer::new(direction.clone());
        let key = direction.header_key();
        let mut opener = Opener::with_header_tags(direction.clone());
        let packet = seal_as(&mut sealer, 7);
        let header = &packet[..PREFIX_LEN];
        let tag = key.tag(header);
        for bit in 0..64 {
            let forged = (u64::from_be_bytes(tag) ^ 1 << bit).to_be_bytes();
            assert_eq!(opener.verify_header(7, header, forged), Err(OpenError::Forged));
        }
        assert_eq!(opener.verify_header(7, header, tag), Ok(()));
        assert_eq!(opener.verify_header(7, header, tag), Err(OpenError::Replayed));
        assert!(opener.open(7, &mut packet.clone(), PREFIX_LEN).is_ok(), "the number is not burnt");
        let other = seal_as(&mut sealer, 8);
        assert!(opener.open(8, &mut other.clone(), PREFIX_LEN).is_ok());
        let header = &other[..PREFIX_LEN];
        assert_eq!(opener.verify_header(8, header, key.tag(header)), Err(OpenError::Replayed));
        let mut without = Opener::new(direction);
        assert_eq!(without.verify_header(7, header, key.tag(header)), Err(OpenError::Forged));
    }

    #[test]
    fn the_same_text_is_sealed_differently_in_each_epoch() {
        let mut sealer = Sealer::new(direction());
        let texts = [0, EPOCH_PACKETS, 1].map(|number| {
            let packet = seal_as(&mut sealer, number);
            packet[PREFIX_LEN..].to_vec()
        });
        assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
    }
}
