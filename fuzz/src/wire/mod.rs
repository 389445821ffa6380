//! Target `wire`: one packet, from a stranger or a peer.

mod handshake;
mod session;

use self::handshake::{HELLO_KEY, Handshake};
use cloudburst_core::id::SessionId;
use cloudburst_core::wire::handshake::other_hello;
use cloudburst_core::wire::keys::SessionSecrets;
use cloudburst_core::wire::keys::{DirectionKey, SessionKeys};
use cloudburst_core::wire::packet::VERSION;
use cloudburst_core::wire::symbol::SymbolView;
use cloudburst_core::wire::{Kind, Prefix, WireError, answer};
use std::sync::LazyLock;

/// The pre-shared key of handshakes.
const KEY: [u8; 32] = [7; 32];
const MAC_LEN: usize = 16;

/// The keys of a session to which no packet of the corpus belongs.
static DIRECTION: LazyLock<DirectionKey> = LazyLock::new(|| {
    let secrets = SessionSecrets { k1: [1; 32], k2: [2; 32] };
    SessionKeys::new(&secrets, SessionId(3), SessionId(4)).forward.symbols
});

/// Checks the promises of the wire format for one packet. Returns whether it parses, and its checksum, if it has
/// one, is right.
///
/// # Panics
///
/// If one of these does not hold:
///
/// - A packet is of one kind at most, and parses as no other.
/// - A packet that parses is written back byte for byte, except for the tag and ignored bytes.
/// - A packet that parses does not parse with a byte less or a byte more; only a SYMBOL takes
///   either for its index set, up to the longest. An error's numbers are the packet's.
/// - A handshake packet is accepted if and only if its keyed checksum is correct.
/// - Only sealed packets open. They open to the same bytes, once, and not with a bit flipped, or a
///   byte less or more.
/// - Only two ends that complete a handshake have the same keys.
pub fn wire(data: &[u8]) -> bool {
    let kind = Kind::of(data);
    let prefix = Prefix::parse(data);
    let symbol = SymbolView::parse(data);
    let answer = answer::parse(data);
    let handshakes = Handshake::parse(data);

    let errors = [kind.err(), prefix.err(), symbol.err(), answer.as_ref().err().copied()];
    errors.iter().flatten().for_each(|error| check_error(error, data));
    handshakes.iter().flat_map(|parsed| parsed.as_ref().err()).for_each(|error| {
        check_error(error, data);
    });
    let known: Vec<_> = handshakes.into_iter().flatten().collect();
    let kinds = usize::from(symbol.is_ok()) + usize::from(answer.is_ok()) + known.len();
    assert!(kinds <= 1, "of one kind");

    if let Ok(prefix) = prefix {
        assert_eq!(kind, Ok(prefix.kind));
        session::check_prefix(data, &prefix);
    }
    if let Ok(view) = symbol {
        session::check_symbol(data, &view);
    }
    if let Ok((prefix, reports)) = &answer {
        session::check_answer(data, prefix, reports);
    }
    let is_valid = symbol.is_ok() || answer.is_ok() || known.iter().any(Option::is_some);
    for believed in known {
        assert!(prefix.is_err(), "a handshake has no prefix");
        handshake::check(data, believed.as_ref());
    }
    check_other_hello(data, kind);
    is_valid
}

fn check_error(error: &WireError, data: &[u8]) {
    match *error {
        WireError::TooShort { needed, got } => assert!(needed > got && got == data.len()),
        WireError::TooLong { expected, got } => assert!(expected < got && got == data.len()),
        WireError::Version { expected, got } => assert!(expected != got && got == data[0] >> 4),
        WireError::Undefined { got, .. } => assert!(data.contains(&got) || got == data[0] & 0x0f),
        other => panic!("a packet is refused for no known reason: {other:?}"),
    }
}

/// A HELLO of another version is recognised by the fields that no version changes, and as nothing
/// else.
fn check_other_hello(data: &[u8], kind: Result<Kind, WireError>) {
    let is_other_hello =
        data.len() >= 64 && data[0] & 0x0f == 1 && ![0, VERSION].contains(&(data[0] >> 4));
    if data.len() >= MAC_LEN {
        let nonce = is_other_hello.then(|| (0, be(&data[4..12])));
        let packet = handshake::with_right_mac(data);
        assert_eq!(other_hello(&*HELLO_KEY, &packet), nonce);
        let strange = flipped(&packet, data);
        assert!(strange[0] != packet[0] || other_hello(&*HELLO_KEY, &strange).is_none());
    }
    assert!(!is_other_hello || matches!(kind, Err(WireError::Version { .. })));
}

/// A number of up to 8 bytes.
fn be(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The packet with one bit flipped, which the input chooses by its last bytes: these are a tag or a
/// checksum, and have no other meaning here.
fn flipped(packet: &[u8], data: &[u8]) -> Vec<u8> {
    let choice = be(&data[data.len() - 3..]) as usize;
    let bit = choice % (8 * packet.len());
    let mut damaged = packet.to_vec();
    damaged[bit / 8] ^= 1 << (bit % 8);
    damaged
}
