//! The handshake of version 3: five packets, and the cryptography in them.
//!
//! ```text
//!  initiator                                responder
//!      | HELLO   the current session      ---> |  no state is kept
//!      | <--- RETRY   a token for this address |
//!      | OPEN    token, Noise message 1   ---> |  the session's keys
//!      | <---------- ACCEPT   Noise message 2  |
//! ```
//!
//! ```text
//! hello       HELLO, RETRY: prove that the initiator receives at its address
//! open        OPEN, ACCEPT: carry the messages of the Noise handshake
//! version     VERSION: the answer to a HELLO of a version that the responder does not speak
//! token       the token that RETRY issues and OPEN returns
//! fields      the fields that both ends exchange in the Noise messages
//! noise       the two ends of Noise_NNpsk0_25519_AESGCM_SHA256
//! primitives  its primitives, by `ring` and `curve25519-dalek`
//! head        the first 12 bytes of every handshake packet
//! mac         the last 16 bytes of every handshake packet
//! address     IP addresses and ports as bytes
//! by_hand     both ends, for tests and fuzzers
//! ```
//!
//! Everything here is a function of its arguments: the caller supplies clocks and random bytes. Bytes
//! from a stranger cost one keyed hash per pre-shared key. The ciphers run only for an OPEN whose token
//! the caller has checked, and the two X25519 multiplications only for one that decrypts.

mod address;
mod by_hand;
mod fields;
mod head;
mod hello;
mod mac;
mod noise;
mod open;
mod primitives;
mod token;
mod version;

#[doc(hidden)]
pub use by_hand::{answer as answer_by_hand, shake_hands};
pub use fields::{AcceptFields, OpenFields};
pub use hello::{HELLO_LEN, Hello, RETRY_LEN, Retry};
pub use mac::HelloKey;
pub use noise::{Initiation, Response};
pub use open::{
    ACCEPT_LEN, ACCEPT_MESSAGE_LEN, ANY_RETURN_PATH, Accept, OPEN_LEN, OPEN_MESSAGE_LEN, Open,
};
pub use token::{Token, TokenKey};
pub use version::{MAX_VERSIONS, Versions, other_hello};

/// Returns the nonce of a handshake packet that may be cut short. Nothing else is checked.
pub(crate) fn nonce_of(packet: &[u8]) -> Option<u64> {
    head::Head::nonce_of(packet)
}
