//! Both ends of a handshake, packet by packet, and its robustness against strange packets. The bytes of
//! each packet are in `handshake.rs`.

use cloudburst_core::id::{Incarnation, PathId, SessionId};
use cloudburst_core::wire::handshake::{
    ACCEPT_LEN, ACCEPT_MESSAGE_LEN, Accept, AcceptFields, HELLO_LEN, Hello, HelloKey, Initiation,
    OPEN_LEN, OPEN_MESSAGE_LEN, Open, OpenFields, RETRY_LEN, Retry, Token, TokenKey, Versions,
    other_hello,
};
use cloudburst_core::wire::keys::{DirectionKey, SessionKeys, SessionSecrets};
use cloudburst_core::wire::seal::{OpenError, Opener, Sealer};
use cloudburst_core::wire::{Capabilities, WireError};
use proptest::prelude::*;

const NONCE: u64 = 0x0102_0304_0506_0708;
const ISSUED: u32 = 0x0a0b_0c0d;

fn counting(from: u8) -> [u8; 32] {
    core::array::from_fn(|at| from + at as u8)
}

fn psk() -> [u8; 32] {
    counting(0)
}

fn key() -> HelloKey {
    HelloKey::new(&psk())
}

fn token_key() -> TokenKey {
    TokenKey::new(counting(0x60))
}

/// The keys of the session that HELLO is about.
fn current() -> DirectionKey {
    let secrets = SessionSecrets { k1: [0x61; 32], k2: [0x62; 32] };
    SessionKeys::new(&secrets, SessionId(0xa1a2_a3a4), SessionId(0xb1b2_b3b4)).forward.symbols
}

fn hello() -> Hello {
    let current = SessionId(0xb1b2_b3b4);
    Hello { path: PathId(0x0203), count: 4, nonce: NONCE, current, number: 0 }
}

fn hello_packet() -> Vec<u8> {
    let path = PathId(0x0203);
    let count = 4;
    let mut sealer = Sealer::new(current());
    bytes(|key, out| Hello::write(path, count, NONCE, Some(&mut sealer), key, out))
}

fn retry() -> Retry {
    let observed: std::net::SocketAddr = "192.0.2.1:4660".parse().unwrap();
    let token = token_key().issue(ISSUED, NONCE, observed.ip());
    Retry {
        path: PathId(0x0203),
        token_refused: false,
        nonce: NONCE,
        return_path: 4,
        token,
        observed,
    }
}

fn open_fields() -> OpenFields {
    OpenFields {
        incarnation: Incarnation([0xa1; 16]),
        addressed: "198.51.100.2:7000".parse().unwrap(),
        session: SessionId(0x2122_2324),
        capabilities: Capabilities::default(),
        port: 7001,
        more_ports: 3,
        translated: true,
    }
}

fn accept_fields() -> AcceptFields {
    AcceptFields {
        incarnation: Incarnation([0xb2; 16]),
        session: SessionId(0x3132_3334),
        capabilities: Capabilities::default(),
        port: 7000,
        more_ports: 1,
    }
}

fn initiation() -> Initiation {
    Initiation::new(&psk(), NONCE, counting(0x20), &open_fields())
}

fn open() -> Open {
    initiation().open(PathId(0x0203), 5, retry().token)
}

/// The responder's answer to `open`.
fn respond(open: &Open) -> (Accept, SessionSecrets) {
    let (fields, response) = open.read(&psk(), counting(0x40)).unwrap();
    assert_eq!(fields, open_fields());
    let (message, secrets) = response.accept(&accept_fields());
    (Accept { path: open.path, nonce: open.nonce, message }, secrets)
}

fn bytes(write: impl FnOnce(&HelloKey, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = b"other packets".to_vec();
    write(&key(), &mut out);
    out.split_off(b"other packets".len())
}

/// One packet of each kind.
fn packets() -> [Vec<u8>; 5] {
    let versions = Versions { nonce: NONCE, versions: [3, 4].into_iter().collect() };
    [
        hello_packet(),
        bytes(|key, out| retry().write(key, out)),
        bytes(|key, out| open().write(key, out)),
        bytes(|key, out| respond(&open()).0.write(key, out)),
        bytes(|key, out| versions.write(key, out)),
    ]
}

/// Parses these bytes as each kind of packet, and returns whether they are authentic.
fn parse_all(keys: &[HelloKey; 1], packet: &[u8]) -> [Result<bool, WireError>; 5] {
    [
        Hello::parse(keys, packet).map(|hello| hello.is_some()),
        Retry::parse(&keys[0], packet).map(|retry| retry.is_some()),
        Open::parse(keys, packet).map(|open| open.is_some()),
        Accept::parse(&keys[0], packet).map(|accept| accept.is_some()),
        Versions::parse(&keys[0], packet).map(|versions| versions.is_some()),
    ]
}

#[test]
fn packets_have_the_sizes_of_the_specification() {
    assert_eq!([HELLO_LEN, RETRY_LEN, OPEN_LEN, ACCEPT_LEN], [64, 64, 138, 104]);
    let lengths = packets().map(|packet| packet.len());
    assert_eq!(lengths, [HELLO_LEN, RETRY_LEN, OPEN_LEN, ACCEPT_LEN, 30]);
}

#[test]
fn packets_come_back_as_they_were_and_under_the_key_that_made_them() {
    let [hello_packet, retry_packet, open_packet, accept_packet, _] = packets();
    let keys = [HelloKey::new(&[9; 32]), key()];
    assert_eq!(Hello::parse(&keys, &hello_packet), Ok(Some((1, hello()))));
    assert_eq!(Retry::parse(&key(), &retry_packet), Ok(Some(retry())));
    assert_eq!(Open::parse(&keys, &open_packet), Ok(Some((1, open()))));
    assert_eq!(Accept::parse(&key(), &accept_packet), Ok(Some(respond(&open()).0)));
    let refusal =
        Retry { token_refused: true, observed: "[2001:db8::1]:9".parse().unwrap(), ..retry() };
    let packet = bytes(|key, out| refusal.write(key, out));
    assert_eq!(Retry::parse(&key(), &packet), Ok(Some(refusal)));
}

#[test]
fn a_hello_is_of_its_session_once_and_of_no_other() {
    let packet = hello_packet();
    let mut opener = Opener::new(current());
    for at in 0..38 {
        let mut forged = packet.clone();
        forged[at] ^= 1;
        assert_eq!(hello().open(&forged, &mut opener), Err(OpenError::Forged), "byte {at}");
    }
    assert_eq!(hello().open(&packet, &mut opener), Ok(()));
    assert_eq!(hello().open(&packet, &mut opener), Err(OpenError::Replayed));
    let secrets = SessionSecrets { k1: [1; 32], k2: [2; 32] };
    let keys = SessionKeys::new(&secrets, SessionId(0xa1a2_a3a4), SessionId(0xb1b2_b3b4));
    let mut other = Opener::new(keys.forward.symbols);
    assert_eq!(hello().open(&packet, &mut other), Err(OpenError::Forged));
    let asks_for_none = bytes(|key, out| Hello::write(PathId(1), 0, NONCE, None, key, out));
    assert_eq!(asks_for_none[12..48], [0; 36]);
}

#[test]
fn both_ends_have_the_same_secrets_and_each_direction_its_own() {
    let mut initiation = initiation();
    let open = initiation.open(PathId(1), 0, retry().token);
    let (accept, theirs) = respond(&open);
    let (fields, ours) = initiation.accept(&accept).unwrap();
    assert_eq!(fields, accept_fields());
    assert_eq!((ours.k1, ours.k2), (theirs.k1, theirs.k2));
    assert_ne!(ours.k1, ours.k2);
    assert!(initiation.accept(&accept).is_none(), "a handshake ends once");
}

#[test]
fn each_ephemeral_secret_makes_other_secrets() {
    let of_another_responder =
        open().read(&psk(), counting(0x41)).unwrap().1.accept(&accept_fields()).1;
    let initiation = Initiation::new(&psk(), NONCE, counting(0x21), &open_fields());
    let of_another_initiator = respond(&initiation.open(PathId(0x0203), 5, retry().token)).1;
    let secrets = respond(&open()).1;
    for other in [of_another_responder, of_another_initiator] {
        assert!(secrets.k1 != other.k1 && secrets.k2 != other.k2);
    }
}

#[test]
fn a_pre_shared_key_that_leaks_later_opens_no_session_that_was_recorded() {
    let (accept, secrets) = respond(&open());
    let open = open();
    for ephemeral in [[0; 32], counting(0x21), counting(0x41), [0xff; 32]] {
        // The key opens message 1, and its holder can continue as either end, but with other
        // ephemeral secrets.
        let (fields, response) = open.read(&psk(), ephemeral).unwrap();
        assert_eq!(fields, open_fields());
        let (_, theirs) = response.accept(&accept_fields());
        assert!(theirs.k1 != secrets.k1 && theirs.k2 != secrets.k2);
        let mut initiation = Initiation::new(&psk(), NONCE, ephemeral, &open_fields());
        assert!(initiation.accept(&accept).is_none());
    }
}

#[test]
fn another_pre_shared_key_opens_nothing() {
    let other = counting(1);
    assert_eq!(parse_all(&[HelloKey::new(&other)], &packets()[2])[2], Ok(false));
    for packet in packets() {
        assert!(!parse_all(&[HelloKey::new(&other)], &packet).contains(&Ok(true)));
    }
    assert!(open().read(&other, counting(0x40)).is_none());
    let mut stranger = Initiation::new(&other, NONCE, counting(0x20), &open_fields());
    assert!(stranger.accept(&respond(&open()).0).is_none());
}

#[test]
fn messages_are_of_one_nonce() {
    let moved = Open { nonce: NONCE + 1, ..open() };
    assert!(moved.read(&psk(), counting(0x40)).is_none());
    let mut initiation = Initiation::new(&psk(), NONCE + 1, counting(0x20), &open_fields());
    let (accept, _) = respond(&open());
    assert!(initiation.accept(&accept).is_none());
    assert!(initiation.accept(&Accept { nonce: NONCE + 1, ..accept }).is_none());
}

#[test]
fn copies_of_an_open_differ_in_path_turn_token_and_mac_alone() {
    let initiation = initiation();
    let packet = |path, return_path, token| {
        bytes(|key, out| initiation.open(PathId(path), return_path, Token(token)).write(key, out))
    };
    let first = packet(1, 2, [3; 16]);
    let copy = packet(0x0101, 4, [5; 16]);
    let same = |range: core::ops::Range<usize>| first[range.clone()] == copy[range];
    assert!(same(0..1) && same(4..12) && same(28..122));
    assert!(!same(1..2) && !same(2..4) && !same(12..28) && !same(122..138));
    assert_eq!(first, packet(1, 2, [3; 16]));
}

#[test]
fn forged_accepts_do_not_spoil_the_true_one() {
    let mut initiation = initiation();
    let (accept, theirs) = respond(&open());
    let mut forgeries = vec![[0; ACCEPT_MESSAGE_LEN], [0xff; ACCEPT_MESSAGE_LEN]];
    // Garbage in the ephemeral key, in the fields, in the tag; and the initiator's own message.
    for at in [0, 31, 32, 59, 60, 75] {
        let mut message = accept.message;
        message[at] ^= 1;
        forgeries.push(message);
    }
    forgeries.push(*open().message.first_chunk().unwrap());
    for message in forgeries {
        // On a trusted network, where the key is public, anyone can make the MAC.
        let packet = bytes(|key, out| Accept { message, ..accept }.write(key, out));
        let forged = Accept::parse(&key(), &packet).unwrap().unwrap();
        assert!(initiation.accept(&forged).is_none());
    }
    let (fields, ours) = initiation.accept(&accept).unwrap();
    assert_eq!(fields, accept_fields());
    assert_eq!((ours.k1, ours.k2), (theirs.k1, theirs.k2));
}

#[test]
fn a_message_is_no_answer_to_itself() {
    let open = open();
    let mut initiation = initiation();
    let reflected =
        Accept { path: open.path, nonce: NONCE, message: *open.message.first_chunk().unwrap() };
    assert!(initiation.accept(&reflected).is_none());
}

#[test]
fn a_packet_of_one_kind_is_none_of_another() {
    for (kind, packet) in packets().iter().enumerate() {
        for (parsed, result) in parse_all(&[key()], packet).into_iter().enumerate() {
            assert_eq!(result == Ok(true), kind == parsed, "packet {kind} as {parsed}");
            assert_eq!(result.is_ok(), kind == parsed);
        }
    }
}

#[test]
fn a_hello_may_be_longer_and_all_of_it_is_authenticated() {
    let mut sealer = Sealer::new(current());
    let long = bytes(|key, out| {
        let Hello { path, count, .. } = hello();
        Hello::write_padded(1_472, path, count, NONCE, Some(&mut sealer), key, out);
    });
    assert_eq!(long.len(), 1_472);
    assert_eq!(long[..38], hello_packet()[..38]);
    assert_eq!(long[38..1_456], [0; 1_418]);
    let (_, read) = Hello::parse(&[key()], &long).unwrap().unwrap();
    assert_eq!(read.open(&long, &mut Opener::new(current())), Ok(()));
    for at in 0..long.len() {
        let mut changed = long.clone();
        changed[at] ^= 1;
        assert_ne!(parse_all(&[key()], &changed)[0], Ok(true), "byte {at}");
    }
    assert_eq!(parse_all(&[key()], &long[..1_471])[0], Ok(false));
}

#[test]
fn every_changed_bit_is_noticed_and_every_other_length_is_malformed() {
    for packet in packets() {
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!parse_all(&[key()], &changed).contains(&Ok(true)), "bit {bit}");
        }
        for len in (0..packet.len()).chain([packet.len() + 1]) {
            let mut other = packet.clone();
            other.resize(len, 0);
            let parsed = parse_all(&[key()], &other);
            let is_long_hello = packet.len() == HELLO_LEN && len > HELLO_LEN;
            let accepts_length = |at: usize| at == 0 && is_long_hello && packet[0] & 0xf == 1;
            for (at, result) in parsed.into_iter().enumerate() {
                assert!(result.is_err() || accepts_length(at), "{len} bytes");
                assert_ne!(result, Ok(true), "{len} bytes");
            }
        }
    }
}

#[test]
fn secrets_are_not_printed() {
    let (_, secrets) = respond(&open());
    let (_, response) = open().read(&psk(), counting(0x40)).unwrap();
    let printed =
        format!("{:?} {:?} {:?} {:?} {secrets:?}", key(), token_key(), initiation(), response);
    let opaque = "HelloKey(..) TokenKey(..) Initiation(..) Response(..) SessionSecrets(..)";
    assert_eq!(printed, opaque);
}

proptest! {
    #[test]
    fn strange_bytes_are_never_a_packet_and_never_a_panic(
        first in prop::sample::select(vec![0x31, 0x32, 0x33, 0x34, 0x0f, 0x11, 0xff]),
        second in prop::sample::select(vec![0, 1, 2, 15, 16, 255]),
        len in prop::sample::select(vec![0, 1, 2, 12, 28, 29, 30, 43, 63, 64, 65, 104, 138, 1500]),
        filling in prop::collection::vec(any::<u8>(), 1500),
    ) {
        let mut packet = filling;
        packet[0] = first;
        packet[1] = second;
        packet.truncate(len);
        prop_assert!(!parse_all(&[key()], &packet).contains(&Ok(true)));
        prop_assert_eq!(other_hello(&[key()], &packet), None);
    }

    #[test]
    fn strange_messages_open_nothing(filling in prop::collection::vec(any::<u8>(), OPEN_MESSAGE_LEN)) {
        let message = *filling.first_chunk().unwrap();
        let strange = Open { message, ..open() };
        prop_assert!(strange.read(&psk(), counting(0x40)).is_none());
        let accept = Accept { path: PathId(0), nonce: NONCE, message: *filling.first_chunk().unwrap() };
        prop_assert!(initiation().accept(&accept).is_none());
    }
}
