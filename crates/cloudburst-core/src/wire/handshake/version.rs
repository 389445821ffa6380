//! VERSION: a responder's answer to a HELLO of a version that it does not speak.
//!
//! It belongs to no version, so its format is the same in all of them, as are four properties of a
//! HELLO: its first byte has the version in the high nibble and 1 in the low one, its nonce is in
//! bytes 4 to 11, it has at least 64 bytes, and it ends in a MAC under the same key.

use super::{
    super::{cursor::Cursor, error::WireError, packet::VERSION},
    head::{HEAD_LEN, Head, check_len},
    mac::{HelloKey, MAC_LEN, holder},
};
use crate::id::PathId;
use arrayvec::ArrayVec;

/// The maximum number of versions in a VERSION.
pub const MAX_VERSIONS: usize = 15;

const FIRST_BYTE: u8 = 0x0f;
const KIND_HELLO: u8 = 1;
const MIN_HELLO_LEN: usize = 64;

/// VERSION: the versions that a responder speaks. A hint: it does not end a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The nonce of the HELLO that this answers.
    pub nonce: u64,
    /// The versions, in no particular order.
    pub versions: ArrayVec<u8, MAX_VERSIONS>,
}

impl Versions {
    /// Appends the packet, which is always shorter than a HELLO.
    pub fn write(&self, key: &HelloKey, out: &mut Vec<u8>) {
        let start = out.len();
        let second = u8::try_from(self.versions.len()).expect("it holds at most 15");
        Head { second, path: PathId(0), nonce: self.nonce }.write_after(FIRST_BYTE, out);
        out.extend_from_slice(&self.versions);
        key.append(start, out);
    }

    /// Reads a VERSION; returns `None` if it is not authentic.
    ///
    /// # Errors
    ///
    /// [`WireError`] for another kind of packet, for more than [`MAX_VERSIONS`] versions, or for a
    /// length that does not match their number.
    pub fn parse(key: &HelloKey, packet: &[u8]) -> Result<Option<Self>, WireError> {
        let mut cursor = Cursor::new(packet);
        let first = cursor.u8()?;
        if first >> 4 != FIRST_BYTE >> 4 {
            return Err(WireError::Version { expected: FIRST_BYTE >> 4, got: first >> 4 });
        }
        if first != FIRST_BYTE {
            return Err(WireError::Undefined { field: "kind", got: first & 0x0f });
        }
        let head = Head::read_after_first(&mut cursor)?;
        let count = usize::from(head.second);
        if count > MAX_VERSIONS {
            return Err(WireError::Undefined { field: "k", got: head.second });
        }
        check_len(HEAD_LEN + count + MAC_LEN, packet)?;
        let versions = cursor.take(count)?.iter().copied().collect();
        let versions = Self { nonce: head.nonce, versions };
        Ok(key.holds(packet).then_some(versions))
    }
}

/// Returns which of `keys` authenticates a HELLO of another version, and its nonce; `None` if `packet`
/// is not such a HELLO, or no key authenticates it.
pub fn other_hello(keys: &[HelloKey], packet: &[u8]) -> Option<(usize, u64)> {
    let (&first, &[_, _, _, a, b, c, d, e, f, g, h, ..]) = packet.split_first()? else {
        return None;
    };
    let version = first >> 4;
    // Version 0 has no HELLO: it stands for the packets that belong to no version.
    let is_other_hello = first & 0x0f == KIND_HELLO && version != 0 && version != VERSION;
    if !is_other_hello || packet.len() < MIN_HELLO_LEN {
        return None;
    }
    Some((holder(keys, packet)?, u64::from_be_bytes([a, b, c, d, e, f, g, h])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::handshake::{HELLO_LEN, Hello};

    const NONCE: u64 = 0x0102_0304_0506_0708;

    #[test]
    fn lists_of_up_to_fifteen_versions_come_back() {
        let key = HelloKey::new(&[1; 32]);
        for count in 0..=15 {
            let versions = Versions { nonce: NONCE, versions: (0..count).collect() };
            let mut packet = Vec::new();
            versions.write(&key, &mut packet);
            assert!(packet.len() < HELLO_LEN);
            assert_eq!(Versions::parse(&key, &packet), Ok(Some(versions)));
            assert_eq!(Versions::parse(&HelloKey::new(&[2; 32]), &packet), Ok(None));
        }
    }

    #[test]
    fn a_longer_list_or_one_of_another_length_is_malformed() {
        let key = HelloKey::new(&[1; 32]);
        let packet = |count: u8, listed: usize| {
            let mut packet = Vec::new();
            Head { second: count, path: PathId(0), nonce: NONCE }.write_after(0x0f, &mut packet);
            packet.resize(HEAD_LEN + listed, 1);
            key.append(0, &mut packet);
            packet
        };
        let undefined = Err(WireError::Undefined { field: "k", got: 16 });
        assert_eq!(Versions::parse(&key, &packet(16, 16)), undefined);
        let long = Err(WireError::TooLong { expected: 30, got: 31 });
        assert_eq!(Versions::parse(&key, &packet(2, 3)), long);
        let short = Err(WireError::TooShort { needed: 30, got: 29 });
        assert_eq!(Versions::parse(&key, &packet(2, 1)), short);
    }

    #[test]
    fn hellos_of_other_versions_are_known_by_what_never_changes() {
        let keys = [1, 2].map(|byte| HelloKey::new(&[byte; 32]));
        let mut hello = Vec::new();
        Hello::write(PathId(3), 1, NONCE, None, &keys[1], &mut hello);
        assert_eq!(other_hello(&keys, &hello), None, "a version that we speak");
        let of_version = |first, len| {
            let mut packet = hello.clone();
            packet[0] = first;
            packet.resize(len - MAC_LEN, 0xff);
            keys[1].append(0, &mut packet);
            packet
        };
        for version in [1, 2, 15] {
            for len in [64, 1_200] {
                let packet = of_version(version << 4 | 1, len);
                assert_eq!(other_hello(&keys, &packet), Some((1, NONCE)));
                assert_eq!(other_hello(&keys[..1], &packet), None, "a stranger's");
            }
            assert_eq!(other_hello(&keys, &of_version(version << 4 | 1, 63)), None);
        }
        for first in [0x01, 0x0f, 0x22, 0x2f] {
            assert_eq!(other_hello(&keys, &of_version(first, 64)), None, "{first:#04x}");
        }
        assert_eq!(other_hello(&keys, &[]), None);
    }
}
