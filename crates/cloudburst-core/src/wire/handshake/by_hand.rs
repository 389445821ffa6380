//! A hand-made initiator and responder for tests and fuzzers: they hold a key and send any fields.

use super::{Accept, AcceptFields, Hello, HelloKey, Initiation, Open, OpenFields, Retry, Token};
use crate::id::PathId;
use crate::wire::keys::SessionKeys;
use std::net::SocketAddr;

/// Performs a handshake under `psk`, as an initiator that sends `fields`. `exchange` delivers a packet
/// and returns its answer.
///
/// # Panics
///
/// If an answer is not the expected one.
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
    initiation.open(PathId(0), retry.return_path, retry.token).write(&key, &mut packet);
    let accept = exchange(packet);
    let accept = Accept::parse(&key, &accept).expect("an ACCEPT").expect("under this key");
    let (accepted, secrets) = initiation.accept(&accept).expect("an answer to this OPEN");
    (accepted, SessionKeys::new(&secrets, fields.session, accepted.session))
}

/// Answers a HELLO or an OPEN under `psk` that came from `observed`, as a responder that sends
/// `fields`; `path` is the path of the answer. The answer to an OPEN comes with the session's keys.
///
/// Returns `None` for any other packet.
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
        let nonce = hello.nonce;
        let token = Token([1; 16]);
        let retry = Retry { path, token_refused: false, nonce, return_path: 0, token, observed };
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
