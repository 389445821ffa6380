//! Which peers may talk to an endpoint.

use crate::wire::keys::PresharedKey;

/// How an endpoint authenticates its peers. There is no default: choose a constructor.
///
/// ```
/// use cloudburst_core::config::{PresharedKey, Security};
///
/// # let text = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// # let next = [7; 32];
/// let key: PresharedKey = text.parse()?; // 64 hexadecimal digits, from a safe place
/// let security = Security::pre_shared(key).also_accept(next);
/// assert!(!security.is_trusted_network());
/// # Ok::<(), cloudburst_core::config::KeyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Security {
    keys: Vec<PresharedKey>,
    trusted_network: bool,
}

impl Security {
    /// Uses a pre-shared key: only endpoints that hold the same 32 bytes can talk to each other, and
    /// no third party can read, forge or replay their messages.
    pub fn pre_shared(key: impl Into<PresharedKey>) -> Self {
        Self { keys: vec![key.into()], trusted_network: false }
    }

    /// Accepts handshakes under this key, too. Handshakes that this endpoint initiates still use the
    /// first key.
    ///
    /// This allows keys to be rotated without an outage: first let all endpoints accept the new key,
    /// then let all initiate with it and accept the old one, then drop the old one. A living endpoint
    /// changes its keys by [`Transceiver::set_security`](crate::proto::Transceiver::set_security).
    pub fn also_accept(mut self, key: impl Into<PresharedKey>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Uses no key: anyone who can reach this endpoint may send to it, and anyone who can change
    /// packets in transit can read and forge them.
    ///
    /// Packets are still sealed, under keys that both ends exchange. This detects damage, and
    /// protects against passive eavesdroppers.
    pub fn trusted_network() -> Self {
        // Not 32 zeros: a key that is set by mistake must not equal it.
        let key = PresharedKey::from(*b"cloudburst on a trusted network.");
        Self { keys: vec![key], trusted_network: true }
    }

    /// Returns whether anyone may talk to this endpoint.
    pub const fn is_trusted_network(&self) -> bool {
        self.trusted_network
    }

    /// Returns the key of handshakes that this endpoint initiates, followed by the others that it accepts.
    pub(crate) fn keys(&self) -> &[PresharedKey] {
        &self.keys
    }
}

/// See [`Security::pre_shared`]. There is no conversion from 32 bytes: the name says what they are.
impl From<PresharedKey> for Security {
    fn from(key: PresharedKey) -> Self {
        Self::pre_shared(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::keys::KeyError;

    #[test]
    fn a_key_is_64_digits_and_nothing_else_is() {
        let key: [u8; 32] = core::array::from_fn(|at| 0xa0 + at as u8);
        let digits: String = (0xa0..=0xbf).map(|byte: u8| format!("{byte:02X}")).collect();
        for text in [&digits, &digits.to_lowercase(), &format!("  {digits}\n")] {
            let parsed: PresharedKey = text.parse().unwrap();
            assert_eq!(parsed.bytes(), &key, "{text}");
        }
        for (text, error) in [
            (String::new(), KeyError::Text { len: 0 }),
            ("0".repeat(63), KeyError::Text { len: 63 }),
            ("0".repeat(65), KeyError::Text { len: 65 }),
            (format!("{}g", "0".repeat(63)), KeyError::Digit { position: 64 }),
            ("é".repeat(32), KeyError::Digit { position: 1 }),
        ] {
            assert_eq!(text.parse::<PresharedKey>().map(drop), Err(error), "{text}");
        }
        let short = Err(KeyError::Bytes { len: 31 });
        assert_eq!(PresharedKey::try_from(&key[..31]).map(drop), short);
        assert_eq!(PresharedKey::try_from(key[..31].to_vec()).map(drop), short);
        assert_eq!(PresharedKey::try_from(key.to_vec()).unwrap().bytes(), &key);
        assert_eq!(PresharedKey::from(&key).bytes(), &key);
    }

    #[test]
    fn nothing_shows_a_key() {
        let shown = format!("{:?}", Security::pre_shared([0xab; 32]).also_accept([0xcd; 32]));
        for secret in ["ab", "AB", "171", "cd", "CD", "205"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
