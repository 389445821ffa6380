//! The token that RETRY issues and OPEN returns: the responder's proof, kept by the initiator,
//! that the initiator receives at its address.

use super::address::ip_bytes;
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// Milliseconds after which a token expires.
const TOKEN_LIFETIME_MS: u32 = 10_000;

/// The time of issue and a MAC, both opaque to the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub [u8; 16]);

/// Makes and checks the tokens of one incarnation.
#[derive(Clone)]
pub struct TokenKey([u8; 32]);

opaque_debug!(TokenKey);

impl TokenKey {
    /// Wraps 32 secret bytes, drawn anew for each incarnation.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Returns a token for the handshake with this nonce, from this address.
    ///
    /// `now_ms` is the responder's clock, modulo 2^32.
    pub fn issue(&self, now_ms: u32, nonce: u64, ip: IpAddr) -> Token {
        let issued = now_ms.to_be_bytes();
        let mut named = [0; 28];
        named[..4].copy_from_slice(&issued);
        named[4..12].copy_from_slice(&nonce.to_be_bytes());
        // The token binds nonce, address and time, so the responder keeps no state for strangers
        // and opens sessions only to addresses that receive.
        named[12..].copy_from_slice(&ip_bytes(ip));
        let mut token = [0; 16];
        token[..4].copy_from_slice(&issued);
        token[4..].copy_from_slice(&blake3::keyed_hash(&self.0, &named).as_bytes()[..12]);
        Token(token)
    }

    /// Returns whether `token` was issued less than 10 s ago, for this handshake and this address.
    ///
    /// The port does not count: copies of an OPEN leave from several.
    pub fn holds(&self, token: &Token, now_ms: u32, nonce: u64, ip: IpAddr) -> bool {
        let [a, b, c, d, ..] = token.0;
        let issued = u32::from_be_bytes([a, b, c, d]);
        // The age of a token from the future wraps to a large value.
        if now_ms.wrapping_sub(issued) >= TOKEN_LIFETIME_MS {
            return false;
        }
        // In constant time: the comparison must not reveal how many bytes were right.
        self.issue(issued, nonce, ip).0.ct_eq(&token.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: u64 = 0x0102_0304_0506_0708;

    fn key() -> TokenKey {
        TokenKey::new([7; 32])
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_holds_for_ten_seconds_and_across_the_end_of_the_clock() {
        let home = ip("192.0.2.1");
        for issued in [0, 1_000_000, u32::MAX - 5_000] {
            let token = key().issue(issued, NONCE, home);
            for (after, holds) in [(0, true), (9_999, true), (10_000, false), (1 << 31, false)] {
                let now = issued.wrapping_add(after);
                assert_eq!(key().holds(&token, now, NONCE, home), holds, "{after} ms later");
            }
            let before = issued.wrapping_sub(1);
            assert!(!key().holds(&token, before, NONCE, home), "from the future");
        }
    }

    #[test]
    fn a_token_is_of_one_nonce_one_address_and_one_incarnation() {
        let token = key().issue(5, NONCE, ip("192.0.2.1"));
        assert!(key().holds(&token, 5, NONCE, ip("::ffff:192.0.2.1")), "the same address, mapped");
        assert!(!key().holds(&token, 5, NONCE, ip("192.0.2.2")));
        assert!(!key().holds(&token, 5, NONCE, ip("::192.0.2.1")));
        assert!(!key().holds(&token, 5, NONCE + 1, ip("192.0.2.1")));
        assert!(!TokenKey::new([8; 32]).holds(&token, 5, NONCE, ip("192.0.2.1")));
    }

    #[test]
    fn a_forged_token_does_not_hold() {
        let home = ip("2001:db8::1");
        let token = key().issue(5, NONCE, home);
        for at in 0..16 {
            let mut forged = token;
            forged.0[at] ^= 1;
            assert!(!key().holds(&forged, 5, NONCE, home), "byte {at} was changed");
        }
        // A later time of issue with the old MAC.
        let mut renewed = key().issue(20_000, NONCE, home);
        renewed.0[4..].copy_from_slice(&token.0[4..]);
        assert!(!key().holds(&renewed, 20_000, NONCE, home));
    }
}
