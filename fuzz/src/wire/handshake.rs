//! The packets of the handshake, and VERSION.

use super::{DIRECTION, KEY, MAC_LEN, be, flipped};
use crate::input::Input;
use cloudburst_core::id::{Incarnation, PathId, SessionId};
use cloudburst_core::wire::handshake::{
    Accept, AcceptFields, Hello, HelloKey, MAX_VERSIONS, Open, OpenFields, Retry, TokenKey,
    Versions, answer_by_hand, shake_hands,
};
use cloudburst_core::wire::keys::{FlowKeys, SessionKeys};
use cloudburst_core::wire::seal::{OpenError, Opener, Sealer};
use cloudburst_core::wire::{Capabilities, Kind, WireError};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

pub(super) static HELLO_KEY: LazyLock<[HelloKey; 1]> = LazyLock::new(|| [HelloKey::new(&KEY)]);

/// The key of the keyed checksums, derived as in the specification rather than by the code under
/// test.
static MAC_KEY: LazyLock<[u8; 32]> = LazyLock::new(|| blake3::derive_key("cloudburst hello", &KEY));

/// The end of the fields of a HELLO that the session in use authenticates, and of their tag.
const SEALED_LEN: usize = 38;

#[derive(Debug, PartialEq)]
pub(super) enum Handshake {
    Hello(Hello),
    Retry(Retry),
    Open(Open),
    Accept(Accept),
    Versions(Versions),
}

impl Handshake {
    /// What each parser makes of the packet; `None` if it rejects it.
    pub(super) fn parse(packet: &[u8]) -> [Result<Option<Self>, WireError>; 5] {
        let keys = &*HELLO_KEY;
        [
            Hello::parse(keys, packet).map(|it| it.map(|(_, hello)| Self::Hello(hello))),
            Retry::parse(&keys[0], packet).map(|it| it.map(Self::Retry)),
            Open::parse(keys, packet).map(|it| it.map(|(_, open)| Self::Open(open))),
            Accept::parse(&keys[0], packet).map(|it| it.map(Self::Accept)),
            Versions::parse(&keys[0], packet).map(|it| it.map(Self::Versions)),
        ]
    }

    /// The packet as a parser accepts it.
    fn believe(packet: &[u8]) -> Option<Self> {
        Self::parse(packet).into_iter().find_map(|parsed| parsed.ok()?)
    }

    /// The packet as its writer makes it, a HELLO with `len` bytes.
    fn write(&self, len: usize) -> Vec<u8> {
        let key = &HELLO_KEY[0];
        let mut out = Vec::new();
        match self {
            // Its session is that of its sealer, which is checked separately.
            Self::Hello(hello) => {
                let Hello { path, count, nonce, .. } = *hello;
                Hello::write_padded(len, path, count, nonce, None, key, &mut out);
            }
            Self::Retry(retry) => retry.write(key, &mut out),
            Self::Open(open) => open.write(key, &mut out),
            Self::Accept(accept) => accept.write(key, &mut out),
            Self::Versions(versions) => versions.write(key, &mut out),
        }
        out
    }
}

/// Checks a packet with the shape of a handshake packet, accepted or not.
pub(super) fn check(data: &[u8], believed: Option<&Handshake>) {
    let packet = with_right_mac(data);
    assert_eq!(believed.is_some(), packet == data, "the checksum decides");
    let Some(handshake) = Handshake::believe(&packet) else { panic!("the checksum is right") };
    assert!(believed.is_none_or(|believed| *believed == handshake));
    assert_eq!(handshake.write(packet.len()), with_right_mac(&canonical(&packet)));

    assert_eq!(Handshake::believe(&flipped(&packet, data)), None, "a bit was flipped");
    for len in [packet.len() - 1, packet.len() + 1] {
        let mut other = packet.clone();
        other.resize(len, 0);
        assert_eq!(Handshake::believe(&other), None, "{len} bytes");
    }
    match &handshake {
        Handshake::Hello(hello) => check_hello(&packet, hello),
        Handshake::Retry(retry) => check_retry(&packet, retry),
        Handshake::Open(open) => {
            assert!(open.read(&KEY, [9; 32]).is_none(), "it was never sealed");
            check_whole(data, open.nonce);
        }
        Handshake::Accept(_) => check_whole(data, be(&data[4..12])),
        Handshake::Versions(versions) => {
            assert_eq!(versions.versions[..], packet[12..packet.len() - MAC_LEN]);
            assert!(versions.versions.len() <= MAX_VERSIONS);
        }
    }
}

/// Gives the packet its correct checksum.
pub(super) fn with_right_mac(packet: &[u8]) -> Vec<u8> {
    let fields = &packet[..packet.len() - MAC_LEN];
    [fields, &blake3::keyed_hash(&MAC_KEY, fields).as_bytes()[..MAC_LEN]].concat()
}

/// The packet as its writer would have made it: bytes that the reader ignores are 0. A HELLO
/// becomes one that names no session.
fn canonical(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    match Kind::of(&packet) {
        Ok(Kind::Hello) => {
            let mac = packet.len() - MAC_LEN;
            packet[12..mac].fill(0);
        }
        Ok(Kind::Retry) => packet[47] = 0,
        Ok(Kind::Accept) => packet[1] = 0,
        Ok(_) => {}
        Err(_) => packet[2..4].fill(0),
    }
    packet
}

fn check_hello(packet: &[u8], hello: &Hello) {
    assert_eq!(u64::from(hello.current.0), be(&packet[12..16]));
    assert_eq!(hello.number, be(&packet[16..22]));
    let mut opener = Opener::new(DIRECTION.clone());
    assert_eq!(hello.open(packet, &mut opener), Err(OpenError::Forged), "it was never sealed");

    let mut sealer = Sealer::new(DIRECTION.clone());
    let asks = Hello { current: sealer.session(), number: sealer.next_number(), ..*hello };
    let mut sealed = Vec::new();
    let path = hello.path;
    let count = hello.count;
    Hello::write(path, count, hello.nonce, Some(&mut sealer), &HELLO_KEY[0], &mut sealed);
    assert_eq!(Handshake::believe(&sealed), Some(Handshake::Hello(asks)));
    // Its checksum alone does not suffice, because every holder of the pre-shared key can make one.
    let damaged = flipped(&sealed[..SEALED_LEN], packet);
    assert_eq!(asks.open(&damaged, &mut opener), Err(OpenError::Forged));
    assert_eq!(asks.open(&sealed, &mut opener), Ok(()));
    assert_eq!(asks.open(&sealed, &mut opener), Err(OpenError::Replayed));
}

fn check_retry(packet: &[u8], retry: &Retry) {
    let key = TokenKey::new([9; 32]);
    let ip = retry.observed.ip();
    let now = be(&packet[12..16]) as u32;
    assert!(!key.holds(&retry.token, now, retry.nonce, ip), "it was never issued");
    let token = key.issue(now, retry.nonce, ip);
    assert!(key.holds(&token, now, retry.nonce, ip));
    assert!(!key.holds(&token, now, retry.nonce ^ 1, ip), "of one handshake");
    assert!(!key.holds(&token, now, retry.nonce, Ipv6Addr::LOCALHOST.into()) || ip.is_loopback());
    let mut forged = token;
    forged.0.copy_from_slice(&flipped(&token.0, packet));
    assert!(!key.holds(&forged, now, retry.nonce, ip));
}

/// Shakes hands from HELLO to ACCEPT. The input chooses the fields of both ends.
fn check_whole(data: &[u8], nonce: u64) {
    let mut input = Input::new(&data[12..]);
    let opening = open_fields(&mut input);
    let accepting = accept_fields(&mut input);
    let observed = address(&mut input);
    let path = PathId(input.u16());
    let mut theirs = None;
    let (accepted, ours) = shake_hands(&KEY, nonce, &opening, |packet| {
        let damaged = flipped(&packet, data);
        assert!(answer_by_hand(&KEY, &damaged, observed, path, &accepting).is_none());
        assert!(answer_by_hand(&[8; 32], &packet, observed, path, &accepting).is_none());
        if let Some(Handshake::Open(open)) = Handshake::believe(&packet) {
            check_message(&open, &opening, data);
        }
        let (answer, keys) = answer_by_hand(&KEY, &packet, observed, path, &accepting)
            .expect("a HELLO and an OPEN have an answer");
        assert!(answer.len() <= packet.len(), "an answer is no larger than its cause");
        theirs = keys;
        answer
    });
    assert_eq!(accepted, accepting);
    check_keys(&ours, &theirs.expect("OPEN was answered last"));
}

/// A Noise message opens to the sealed bytes, under its key, for its nonce and with no bit flipped,
/// whatever the checksum around it.
fn check_message(open: &Open, fields: &OpenFields, data: &[u8]) {
    let read = |open: &Open, psk| open.read(psk, [9; 32]).map(|(fields, _)| fields);
    assert_eq!(read(open, &KEY), Some(*fields));
    assert_eq!(read(open, &[8; 32]), None);
    assert_eq!(read(&Open { nonce: open.nonce ^ 1, ..*open }, &KEY), None);
    let mut damaged = *open;
    damaged.message.copy_from_slice(&flipped(&open.message, data));
    assert_eq!(read(&damaged, &KEY), None);
}

/// The other end opens the bytes that one end seals.
fn check_keys(ours: &SessionKeys, theirs: &SessionKeys) {
    let directions = |keys: &SessionKeys| {
        let flow = |flow: &FlowKeys| [flow.symbols.clone(), flow.answers.clone()];
        [flow(&keys.forward), flow(&keys.backward)].concat()
    };
    for (at, ours) in directions(ours).into_iter().enumerate() {
        let mut packet = b"in the clear; sealed".to_vec();
        Sealer::new(ours).seal(&mut packet, 0, 14);
        for (other, theirs) in directions(theirs).into_iter().enumerate() {
            let opened = Opener::new(theirs).open(0, &mut packet.clone(), 14).is_ok();
            assert_eq!(opened, at == other, "sealed as {at}, opened as {other}");
        }
    }
}

fn open_fields(input: &mut Input<'_>) -> OpenFields {
    OpenFields {
        incarnation: Incarnation([input.u8(); 16]),
        addressed: address(input),
        session: SessionId(input.u32().max(1)),
        capabilities: Capabilities(input.u32()),
        port: input.u16(),
        more_ports: input.u8(),
        translated: input.u8() & 1 != 0,
    }
}

fn accept_fields(input: &mut Input<'_>) -> AcceptFields {
    AcceptFields {
        incarnation: Incarnation([input.u8(); 16]),
        session: SessionId(input.u32().max(1)),
        capabilities: Capabilities(input.u32()),
        port: input.u16(),
        more_ports: input.u8(),
    }
}

/// An address of either family, as decoded from the wire.
fn address(input: &mut Input<'_>) -> SocketAddr {
    let ip = if input.u8() & 1 != 0 {
        IpAddr::from(input.u32().to_be_bytes())
    } else {
        Ipv6Addr::from_bits(u128::from(input.u32())).to_canonical()
    };
    SocketAddr::new(ip, input.u16())
}
