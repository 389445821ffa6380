//! An initiator made by hand, for tests and fuzzers: it holds a key and says what it likes.

use super::{Accept, AcceptFields, Hello, HelloKey, Initiation, Open, OpenFields, Retry, Token};
use crate::id::PathId;
use crate::wire::keys::SessionKeys;
use std::net::SocketAddr;

/// Shakes hands under `psk`, and says `fields` in it. `exchange` hands in a packet, and returns its
/// answer.
///
/// # Panics
///
/// If an answer is not the one that is due.
#[doc(hidden)]
pub fn shake_hands(
    psk: &[u8; 32],
    nonce: u64,
    fields: &OpenFields,
    mut exchange: impl FnMut(Vec<u8>) -> Vec<u8>,
) -> (AcceptFields, SessionKeys) {
    let key = HelloKey::new(psk);
    let mut packet = Vec::new();
    Hello::write(PathId(0), 0, nonce, None, &key, &mut packet);
    let retry = Retry::parse(&key, &exchange(packet)).expect("a RETRY").expect("under this key");
    let mut ephemeral = [0x51; 32];
    ephemeral[..8].copy_from_slice(&nonce.to_be_bytes());
    let mut initiation = Initiation::new(psk, nonce, ephemeral, fields);
    let mut packet = Vec::new();
    initiation.open(PathId(0), retry.turn, retry.token).write(&key, &mut packet);
    let accept = exchange(packet);
    let accept = Accept::parse(&key, &accept).expect("an ACCEPT").expect("under this key");
    let (accepted, secrets) = initiation.accept(&accept).expect("an answer to this OPEN");
    (accepted, SessionKeys::new(&secrets, fields.session, accepted.session))
}

/// Answers a HELLO or an OPEN under `psk`, which came from `observed`, and says `fields`; `path` is
/// the one that the answer names. With an OPEN, there are keys.
///
/// `None` for any other packet.
#[doc(hidden)]
pub fn answer(
    psk: &[u8; 32],
    packet: &[u8],
    observed: SocketAddr,
    path: PathId,
    fields: &AcceptFields,
) -> Option<(Vec<u8>, Option<SessionKeys>)> {
    let keys = [HelloKey::new(psk)];
    let mut out = Vec::new();
    if let Ok(Some((_, hello))) = Hello::parse(&keys, packet) {
        let (nonce, token) = (hello.nonce, Token([1; 16]));
        let retry = Retry { path, token_refused: false, nonce, turn: 0, token, observed };
        retry.write(&keys[0], &mut out);
        return Some((out, None));
    }
    let (_, open) = Open::parse(&keys, packet).ok()??;
    let mut ephemeral = [0x52; 32];
    ephemeral[..8].copy_from_slice(&open.nonce.to_be_bytes());
    let (opened, response) = open.read(psk, ephemeral)?;
    let (message, secrets) = response.accept(fields);
    Accept { path, nonce: open.nonce, message }.write(&keys[0], &mut out);
    Some((out, Some(SessionKeys::new(&secrets, opened.session, fields.session))))
}
