//! The last 16 bytes of every handshake packet: a keyed BLAKE3 hash of all bytes before them.
//!
//! With a pre-shared key they prove that the sender holds it; on a trusted network, where the key is
//! public, they are a checksum.

use subtle::ConstantTimeEq;

/// Bytes of a MAC.
pub(super) const MAC_LEN: usize = 16;

/// Authenticates handshake packets under one pre-shared key, in every version.
#[derive(Clone)]
pub struct HelloKey([u8; 32]);

opaque_debug!(HelloKey);

impl HelloKey {
    /// Derives the key from a pre-shared key.
    pub fn new(psk: &[u8; 32]) -> Self {
        Self(blake3::derive_key("cloudburst hello", psk))
    }

    /// Appends the MAC of all bytes from `start` on.
    pub(super) fn append(&self, start: usize, out: &mut Vec<u8>) {
        let hash = blake3::keyed_hash(&self.0, &out[start..]);
        out.extend_from_slice(&hash.as_bytes()[..MAC_LEN]);
    }

    /// Returns whether `packet` ends in the MAC of the bytes before it.
    pub(super) fn holds(&self, packet: &[u8]) -> bool {
        let Some((fields, mac)) = packet.split_last_chunk::<MAC_LEN>() else { return false };
        // In constant time: the comparison must not reveal how many bytes were right.
        blake3::keyed_hash(&self.0, fields).as_bytes()[..MAC_LEN].ct_eq(mac).into()
    }
}

/// Returns which of `keys` made the packet's MAC.
pub(super) fn holder(keys: &[HelloKey], packet: &[u8]) -> Option<usize> {
    // There are several while keys are being changed.
    keys.iter().position(|key| key.holds(packet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_holds_for_its_bytes_and_its_key_alone() {
        let [key, other] = [1, 2].map(|byte| HelloKey::new(&[byte; 32]));
        let mut packet = b"before fields".to_vec();
        key.append(7, &mut packet);
        let packet = &mut packet[7..];
        assert_eq!(holder(&[other.clone(), key.clone()], packet), Some(1));
        assert_eq!(holder(&[other], packet), None);
        for at in 0..packet.len() {
            packet[at] ^= 0x80;
            assert!(!key.holds(packet), "byte {at} was changed");
            packet[at] ^= 0x80;
        }
        assert!(!key.holds(&packet[..MAC_LEN - 1]));
    }
}
