//! The handshake of version 2: five packets, and the cryptography in them.
//!
//! ```text
//!  initiator                                responder
//!      | HELLO   which session is in use? ---> |  nothing is kept
//!      | <--- RETRY   a token for this address |
//!      | OPEN    token, Noise message 1   ---> |  the session's keys
//!      | <---------- ACCEPT   Noise message 2  |
//! ```
//!
//! ```text
//! hello       HELLO, RETRY: they show that the initiator receives at its address
//! open        OPEN, ACCEPT: they carry the messages of the Noise handshake
//! version     VERSION: what a responder says to a HELLO of a version that it does not speak
//! token       what RETRY hands out and OPEN brings back
//! fields      what both ends tell each other in the Noise messages
//! noise       the two ends of Noise_NNpsk0_25519_AESGCM_SHA256
//! primitives  its ciphers, by `ring` and `curve25519-dalek`
//! head        the 12 bytes that every packet of the handshake begins with
//! mac         the 16 bytes that every one ends in
//! address     IP addresses and ports as bytes
//! by_hand     both ends, for tests and fuzzers
//! ```
//!
//! Everything here is a function of its arguments: clocks and random bytes are the caller's.
//! Bytes from a stranger cost one keyed hash for each pre-shared key; only an OPEN whose token the caller has checked is
//! worth the ciphers, and only one that opens is worth the two multiplications of X25519.

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

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use by_hand::{answer as answer_by_hand, shake_hands};
pub use fields::{AcceptFields, OpenFields};
pub use hello::{HELLO_LEN, Hello, RETRY_LEN, Retry};
pub use mac::HelloKey;
pub use noise::{Initiation, Response, SessionSecrets};
pub use open::{
    ACCEPT_LEN, ACCEPT_MESSAGE_LEN, ANY_TURN, Accept, OPEN_LEN, OPEN_MESSAGE_LEN, Open,
};
pub use token::{Token, TokenKey};
pub use version::{MAX_VERSIONS, Versions, other_hello};
