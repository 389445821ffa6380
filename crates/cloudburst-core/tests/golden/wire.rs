//! One packet of each kind, byte for byte as `docs/spec.md` prints it.
//!
//! A failure here means that the wire format has changed: old and new endpoints no longer
//! understand each other, and the specification's vectors are wrong.

use cloudburst_core::id::{Digest, Incarnation, MessageId, PathId, SessionId};
use cloudburst_core::wire::hello::HELLO_LEN;
use cloudburst_core::wire::keys::{PresharedKey, SessionKeys};
use cloudburst_core::wire::packet::PREFIX_LEN;
use cloudburst_core::wire::seal::{OpenError, Opener, Sealer};
use cloudburst_core::wire::symbol::{SYMBOL_OVERHEAD, SymbolView};
use cloudburst_core::wire::{
    Answer, Arrivals, Hello, HelloAck, Kind, Prefix, RejectReason, Role, SymbolHeader, Verdict,
};

fn key() -> PresharedKey {
    PresharedKey::new(core::array::from_fn(|i| i as u8))
}

fn ack() -> HelloAck {
    HelloAck {
        path: PathId(2),
        initiator: Incarnation([0xa1; 16]),
        nonce: 0x0102_0304_0506_0708,
        responder: Incarnation([0xb2; 16]),
        session_nonce: [0xc3; 16],
        current_alive: false,
        more_ports: 0,
        port: 40_001,
    }
}

fn keys() -> SessionKeys {
    key().session(&ack())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn symbol(header: &SymbolHeader, index_set: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut sealer = Sealer::new(keys().forward.symbols);
    let prefix = Prefix {
        kind: Kind::Symbol,
        ack_request: true,
        partial: false,
        again: false,
        role: Role::Plain,
        path: PathId(3),
        session: sealer.session(),
        number: sealer.next_number(),
    };
    let mut packet = Vec::new();
    header.write(&prefix, index_set, &mut packet);
    let payload_at = packet.len();
    packet.extend_from_slice(payload);
    sealer.seal(&mut packet, 0, payload_at);
    packet
}

fn header() -> SymbolHeader {
    let message = MessageId(0x1122_3344_5566_7788);
    SymbolHeader {
        message,
        length: 11,
        age: 5,
        block: 0,
        symbol: 1,
        symbol_size: 4,
        code: [0x30, 0],
        digest: keys().forward.digest.block(message, 0, b"hello world"),
    }
}

fn answer(verdict: Verdict) -> Vec<u8> {
    let answer = Answer { message: header().message, block: 0, acknowledged: 0, verdict };
    let mut sealer = Sealer::new(keys().forward.answers);
    let prefix = Prefix {
        kind: answer.kind(),
        ack_request: false,
        partial: false,
        again: false,
        role: Role::Plain,
        path: PathId(0),
        session: sealer.session(),
        number: 0,
    };
    let mut packet = Vec::new();
    answer.write(&prefix, &mut packet);
    let at = packet.len();
    sealer.seal(&mut packet, 0, at);
    assert_eq!(packet.len(), answer.sealed_len());
    assert_eq!(Answer::parse(&packet), Ok((prefix, answer)));
    packet
}

#[test]
fn handshake_packets() {
    let hello = Hello {
        path: PathId(2),
        initiator: ack().initiator,
        nonce: ack().nonce,
        port: 7000,
        current: SessionId(0),
        more_ports: 0,
    };
    let mut packet = Vec::new();
    hello.write(&key().hello_key(), &mut packet);
    assert_eq!(hex(&packet), HELLO);
    assert_eq!(Hello::parse(&key().hello_key(), &packet), Ok(Some(hello)));

    let mut packet = Vec::new();
    ack().write(&key().hello_key(), &mut packet);
    assert_eq!(hex(&packet), HELLO_ACK);
    assert_eq!(HelloAck::parse(&key().hello_key(), &packet), Ok(Some(ack())));
    assert_eq!(packet.len(), HELLO_LEN);

    let mut more = Vec::new();
    HelloAck { more_ports: 5, port: 7001, ..ack() }.write(&key().hello_key(), &mut more);
    assert_eq!((&more[..61], &more[61..64]), (&packet[..61], &[5, 0x1b, 0x59][..]));
    let mut more = Vec::new();
    Hello { more_ports: 5, ..hello }.write(&key().hello_key(), &mut more);
    assert_eq!((more[38], &more[39..64]), (5, &[0; 25][..]));

    let other = PresharedKey::new([1; 32]).hello_key();
    assert_eq!(HelloAck::parse(&other, &packet), Ok(None), "another key");
}

#[test]
fn session_names_and_digests() {
    let keys = keys();
    let names: Vec<String> = [&keys.forward, &keys.backward]
        .into_iter()
        .flat_map(|flow| [flow.symbols.session, flow.answers.session])
        .map(|session| format!("{session:?}"))
        .collect();
    assert_eq!(names.join(" "), SESSIONS);
    let digest = &keys.forward.digest;
    let blocks = [Digest([1; 16]), Digest([2; 16])];
    let digests = [header().digest, digest.message(MessageId(7), &blocks)];
    assert_eq!(digests.map(|d| hex(&d.0)).join(" "), DIGESTS);
    assert_eq!(digest.message(MessageId(7), &blocks[..1]), blocks[0], "of one block: its own");
}

#[test]
fn symbols() {
    let packet = symbol(&header(), &[], b"o wo");
    assert_eq!(hex(&packet), SYMBOL);
    assert_eq!(packet.len(), SYMBOL_OVERHEAD + 4);
    let lt = SymbolHeader { code: [0x10, 5], ..header() };
    let packet = symbol(&lt, &[0b1010_0000], b"o wo");
    assert_eq!(hex(&packet), SYMBOL_LT);

    let view = SymbolView::parse(&packet).unwrap();
    assert_eq!((view.header, view.index_set), (lt, &[0b1010_0000][..]));
    let (number, payload_at) = (view.prefix.number, view.payload_at);
    let mut opener = Opener::new(keys().forward.symbols);
    let mut forged = packet.clone();
    forged[PREFIX_LEN] ^= 1;
    assert_eq!(opener.open(number, &mut forged, payload_at), Err(OpenError::Forged));
    let mut open = packet.clone();
    assert_eq!(opener.open(number, &mut open, payload_at).unwrap(), b"o wo");
    let mut replay = packet;
    assert_eq!(opener.open(number, &mut replay, payload_at), Err(OpenError::Replayed));
}

#[test]
fn answers() {
    let digest = header().digest;
    let arrivals =
        vec![Arrivals { path: PathId(0), count: 2 }, Arrivals { path: PathId(3), count: 1 }];
    let packets = [
        answer(Verdict::BlockDone { digest, arrivals: arrivals.clone() }),
        answer(Verdict::Delivered { digest, arrivals: arrivals.clone() }),
        answer(Verdict::Status { needed: 2, arrivals }),
        answer(Verdict::Busy),
        answer(Verdict::Reject(RejectReason::TooLarge)),
        answer(Verdict::Forgotten),
    ];
    let got: Vec<String> = packets.iter().map(|packet| hex(packet)).collect();
    assert_eq!(got, ANSWERS);
}

const HELLO: &str = "11000002a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a101020304050607081b5800000000000000000000\
    000000000000000000000000000000000000000000000000ae73f593239a9e6e5dcd03d9ede38e4d";
const HELLO_ACK: &str = "12000002a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a10102030405060708b2b2b2b2b2b2b2b2b2b2b2b2\
    b2b2b2b2c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c300009c41c752b62881a6829566cf108d7ed29993";
const SESSIONS: &str = "SessionId(762c91bf14acb2dd) SessionId(32944873febd2094) SessionId(eaff7bcae7e033\
    81) SessionId(d8b162dfff27dfd6)";
const DIGESTS: &str = "00e7546ecf7106b38465e08e9b400497 cc23dd16a315e9cfa905d58bcf0035cb";
const SYMBOL: &str = "13010003762c91bf14acb2dd00000000000000001122334455667788000000000000000b00000005\
    00000000000000010004300000e7546ecf7106b38465e08e9b4004970046df2345f7afe415d698b5\
    768f2eda1033838946";
const SYMBOL_LT: &str = "13010003762c91bf14acb2dd00000000000000001122334455667788000000000000000b00000005\
    00000000000000010004100500e7546ecf7106b38465e08e9b40049701a046df23458171d45179df\
    ca7caa6fb4f828afb2ed";
const ANSWERS: [&str; 6] = [
    "1400000032944873febd209400000000000000001122334455667788000000000000000000000000\
    0000e7546ecf7106b38465e08e9b4004970200000002000300013e1caff734c14af66d4a2a3298b9\
    6d13",
    "1400000032944873febd209400000000000000001122334455667788000000000000000000000000\
    0100e7546ecf7106b38465e08e9b4004970200000002000300015ab2b8f300b1ec9a39176252feb5\
    fe61",
    "1500000032944873febd209400000000000000001122334455667788000000000000000000000000\
    0002020000000200030001e298402678d96c38e075b5459225d43d",
    "1600000032944873febd209400000000000000001122334455667788000000000000000000000000\
    5cec965ec05c7d5cdb4d02789b013b80",
    "1700000032944873febd209400000000000000001122334455667788000000000000000000000000\
    0188e85361bd1fc90f5ac2409b623ffdf1",
    "1800000032944873febd209400000000000000001122334455667788000000000000000000000000\
    71c9641ca4138de3fbe711077198261b",
];
