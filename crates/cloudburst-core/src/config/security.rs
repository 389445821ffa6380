//! Who may talk to an endpoint.

use crate::wire::keys::PresharedKey;

/// How an endpoint tells its peers from strangers. There is no default: choose by name.
#[derive(Clone, Debug)]
pub struct Security {
    keys: Vec<PresharedKey>,
    trusted_network: bool,
}

impl Security {
    /// Only endpoints that hold the same 32 bytes can talk to each other, and nobody else can
    /// read, forge or replay their messages.
    pub fn pre_shared(key: [u8; 32]) -> Self {
        Self { keys: vec![PresharedKey::new(key)], trusted_network: false }
    }

    /// Accepts handshakes under this key, too; those that this endpoint begins are still under the
    /// first one.
    ///
    /// Keys rotate in this way without an outage: have all endpoints accept the new key, then have
    /// all begin with it and accept the old one, then drop the old one.
    pub fn also_accept(mut self, key: [u8; 32]) -> Self {
        self.keys.push(PresharedKey::new(key));
        self
    }

    /// Parses a key of 64 hexadecimal digits, the format of key files. White space around them is
    /// ignored. `None` if the text is anything else.
    pub fn key_from_hex(text: &str) -> Option<[u8; 32]> {
        let digits = text.trim().as_bytes();
        let mut key = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let nibble = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(nibble(pair[0])? << 4 | nibble(pair[1])?).ok()?;
        }
        Some(key)
    }

    /// Uses no key: anyone who can reach this endpoint may send to it, and anyone who can change
    /// packets on the way can read and forge them.
    ///
    /// Packets are still sealed, under keys that both ends exchange. This detects damage, and
    /// protects against passive listeners.
    pub fn trusted_network() -> Self {
        // Not thirty-two zeros: a key that somebody sets by mistake must not equal it.
        let key = PresharedKey::new(*b"cloudburst on a trusted network.");
        Self { keys: vec![key], trusted_network: true }
    }

    /// Whether anyone may talk to this endpoint.
    pub const fn is_trusted_network(&self) -> bool {
        self.trusted_network
    }

    /// The key of handshakes that this endpoint begins, and then the others that it accepts.
    pub(crate) fn keys(&self) -> &[PresharedKey] {
        &self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_digits_and_nothing_else_is() {
        let key: [u8; 32] = core::array::from_fn(|at| 0xa0 + at as u8);
        let digits: String = (0xa0..=0xbf).map(|byte: u8| format!("{byte:02X}")).collect();
        for text in [&digits, &digits.to_lowercase(), &format!("  {digits}\n")] {
            assert_eq!(Security::key_from_hex(text), Some(key), "{text}");
        }
        for text in ["", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Security::key_from_hex(text), None, "{text}");
        }
    }
}
