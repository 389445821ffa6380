//! Target `wire`: one packet, as a stranger or a peer sends it.

use cloudburst_core::id::{Incarnation, PathId};
use cloudburst_core::wire::hello::HELLO_LEN;
use cloudburst_core::wire::keys::{DirectionKey, PresharedKey};
use cloudburst_core::wire::packet::PREFIX_LEN;
use cloudburst_core::wire::seal::{OpenError, Opener, Sealer, TAG_LEN};
use cloudburst_core::wire::symbol::SymbolView;
use cloudburst_core::wire::{Answer, Hello, HelloAck, Kind, Prefix, WireError};
use std::sync::LazyLock;

const KEY: [u8; 32] = [7; 32];
const MAC_LEN: usize = 16;

static PRESHARED: LazyLock<PresharedKey> = LazyLock::new(|| PresharedKey::new(KEY));

/// What the keyed checksum of handshakes is made with: as the specification has it, not as the
/// code under test does.
static MAC_KEY: LazyLock<[u8; 32]> =
    LazyLock::new(|| blake3::derive_key("cloudburst v1 hello", &KEY));

static DIRECTION: LazyLock<DirectionKey> = LazyLock::new(|| {
    let ack = HelloAck {
        path: PathId(0),
        initiator: Incarnation([1; 16]),
        nonce: 2,
        responder: Incarnation([3; 16]),
        session_nonce: [4; 16],
        current_alive: false,
        more_ports: 0,
        port: 0,
    };
    PRESHARED.session(&ack).forward.symbols
});

/// Holds one packet to what the wire format promises.
///
/// # Panics
///
/// When one of these does not hold:
///
/// - A packet is of one kind at most, and parses as no other.
/// - What parses is written back byte for byte, the tag (or the handshake's reserved bytes) apart.
/// - A packet that parses does not parse with a byte less or a byte more; an error's numbers are
///   the packet's.
/// - A handshake is believed if, and only if, its keyed checksum is right.
/// - Nothing opens that was not sealed; what was sealed opens to the same bytes, once; and not
///   with one bit of it flipped.
pub fn wire(data: &[u8]) {
    let kind = Kind::of(data);
    let prefix = Prefix::parse(data);
    let symbol = SymbolView::parse(data);
    let answer = Answer::parse(data);
    for error in [
        kind.err(),
        prefix.err(),
        symbol.err(),
        answer.as_ref().err().copied(),
        Hello::parse(&PRESHARED.hello_key(), data).err(),
        HelloAck::parse(&PRESHARED.hello_key(), data).err(),
    ] {
        check_error(error, data);
    }

    if let Ok(prefix) = prefix {
        assert_eq!(kind, Ok(prefix.kind));
        assert!(data.len() >= PREFIX_LEN);
        let mut opener = Opener::new(DIRECTION.clone());
        let at = data.len().saturating_sub(TAG_LEN);
        let opened =
            opener.open(prefix.number, &mut data.to_vec(), at).map(|payload| payload.to_vec());
        assert_eq!(opened, Err(OpenError::Forged), "nobody sealed this");
    }
    if let Ok(view) = symbol {
        check_symbol(data, &view);
        seal_and_open(data, view.prefix, view.payload_at);
    }
    if let Ok((prefix, answer)) = answer {
        check_answer(data, prefix, &answer);
        seal_and_open(data, prefix, data.len() - TAG_LEN);
    }
    if matches!(kind, Ok(Kind::Hello | Kind::HelloAck)) {
        assert!(prefix.is_err(), "a handshake has no prefix");
        check_handshake(data);
    }
}

fn check_error(error: Option<WireError>, data: &[u8]) {
    match error {
        Some(WireError::TooShort { needed, got }) => assert!(needed > got && got <= data.len()),
        Some(WireError::TooLong { expected, got }) => {
            assert!(expected < got && got == data.len());
        }
        Some(WireError::Version { got, .. }) => assert_eq!(got, data[0] >> 4),
        Some(WireError::Undefined { got, .. }) => {
            assert!(data.contains(&got) || got == data[0] & 0x0f);
        }
        Some(other) => panic!("a packet is refused for no known reason: {other:?}"),
        None => {}
    }
}

fn check_symbol(data: &[u8], view: &SymbolView<'_>) {
    assert_eq!((Ok(view.prefix), view.prefix.kind), (Prefix::parse(data), Kind::Symbol));
    let payload = data.len() - TAG_LEN - view.payload_at;
    assert_eq!(payload, usize::from(view.header.symbol_size));
    let mut again = Vec::new();
    view.header.write(&view.prefix, view.index_set, &mut again);
    assert_eq!(again, data[..view.payload_at]);
    check_length(data, |bytes| SymbolView::parse(bytes).err());
}

fn check_answer(data: &[u8], prefix: Prefix, answer: &Answer) {
    assert_eq!((Ok(prefix), prefix.kind), (Prefix::parse(data), answer.kind()));
    let mut again = Vec::new();
    answer.write(&prefix, &mut again);
    assert_eq!(again, data[..data.len() - TAG_LEN]);
    check_length(data, |bytes| Answer::parse(bytes).err());
}

/// What parses has one length: the one that its fields say.
fn check_length(data: &[u8], error: impl Fn(&[u8]) -> Option<WireError>) {
    let (len, shorter) = (data.len(), &data[..data.len() - 1]);
    assert_eq!(error(shorter), Some(WireError::TooShort { needed: len, got: len - 1 }));
    let longer = [data, &[0]].concat();
    assert_eq!(error(&longer), Some(WireError::TooLong { expected: len, got: len + 1 }));
}

/// Seals the packet's fields under the next number of a sender, and opens what comes of it.
fn seal_and_open(data: &[u8], prefix: Prefix, payload_at: usize) {
    let mut sealer = Sealer::new(DIRECTION.clone());
    let mut opener = Opener::new(DIRECTION.clone());
    let number = sealer.next_number();
    let mut packet = data[..data.len() - TAG_LEN].to_vec();
    // Kind, flags and path stay; session and number are the sealer's business.
    packet[4..12].copy_from_slice(&sealer.session().0.to_be_bytes());
    packet[12..20].copy_from_slice(&number.to_be_bytes());
    let clear = packet.clone();
    sealer.seal(&mut packet, 0, payload_at);
    assert_eq!(packet.len(), data.len());
    assert_eq!(packet[..payload_at], clear[..payload_at], "headers travel in the clear");
    assert_eq!(
        Prefix::parse(&packet).map(|got| (got.kind, got.path)),
        Ok((prefix.kind, prefix.path))
    );

    // Which bit is flipped is the input's choice: the tag of its packet has no other meaning.
    let choice =
        u32::from_be_bytes([0, data[data.len() - 3], data[data.len() - 2], data[data.len() - 1]]);
    let bit = choice as usize % (8 * packet.len());
    let mut damaged = packet.clone();
    damaged[bit / 8] ^= 1 << (bit % 8);
    assert_eq!(opener.open(number, &mut damaged, payload_at), Err(OpenError::Forged), "bit {bit}");

    let mut copy = packet.clone();
    let opened = opener.open(number, &mut copy, payload_at).map(|payload| payload.to_vec());
    assert_eq!(opened.as_deref(), Ok(&clear[payload_at..]));
    assert_eq!(opener.open(number, &mut packet, payload_at), Err(OpenError::Replayed));
}

/// Gives the handshake the checksum that it should have, and reads it.
fn check_handshake(data: &[u8]) {
    let key = PRESHARED.hello_key();
    let parsed = |bytes: &[u8]| {
        let hello = Hello::parse(&key, bytes);
        let ack = HelloAck::parse(&key, bytes);
        assert!(hello.is_err() || ack.is_err(), "of one kind");
        let mut again = Vec::new();
        match (hello, ack) {
            (Ok(Some(hello)), _) => hello.write(&key, &mut again),
            (_, Ok(Some(ack))) => ack.write(&key, &mut again),
            (Ok(None), _) | (_, Ok(None)) => return Ok(None),
            (Err(_), Err(_)) => return Err(()),
        }
        Ok(Some(again))
    };
    if data.len() != HELLO_LEN {
        assert_eq!(parsed(data), Err(()));
        return;
    }
    let mut packet = data.to_vec();
    let (fields, mac) = packet.split_at_mut(HELLO_LEN - MAC_LEN);
    let right = blake3::keyed_hash(&MAC_KEY, fields);
    let was_right = mac == &right.as_bytes()[..MAC_LEN];
    mac.copy_from_slice(&right.as_bytes()[..MAC_LEN]);
    assert_eq!(parsed(data).map(|got| got.is_some()), Ok(was_right));

    let Ok(Some(again)) = parsed(&packet) else { panic!("the checksum is right") };
    let fields = canonical(&packet);
    assert_eq!(again[..HELLO_LEN - MAC_LEN], fields);
    let mac = blake3::keyed_hash(&MAC_KEY, &fields);
    assert_eq!(again[HELLO_LEN - MAC_LEN..], mac.as_bytes()[..MAC_LEN]);

    let bit = usize::from(data[HELLO_LEN - 1]) + 256 * usize::from(data[HELLO_LEN - 2]);
    let bit = 8 + bit % (8 * (HELLO_LEN - 1));
    packet[bit / 8] ^= 1 << (bit % 8);
    assert_eq!(parsed(&packet), Ok(None), "bit {bit}");
}

/// The fields of a handshake as their writer would have put them: reserved bytes are 0, and are
/// not looked at by the reader.
fn canonical(packet: &[u8]) -> Vec<u8> {
    let mut fields = packet[..HELLO_LEN - MAC_LEN].to_vec();
    fields[1] = 0;
    if Kind::of(packet) == Ok(Kind::Hello) {
        fields[39..].fill(0);
    } else {
        fields[60] = u8::from(fields[60] != 0);
    }
    fields
}
