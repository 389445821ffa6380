//! The packets of a handshake.

use crate::vectors::{Section, Vectors, hex};
use cloudburst_core::id::{Incarnation, PathId, SessionId};
use cloudburst_core::wire::Capabilities;
use cloudburst_core::wire::handshake::{
    Accept, AcceptFields, Hello, HelloKey, Initiation, Open, OpenFields, Retry, TokenKey, Versions,
};
use cloudburst_core::wire::keys::{DirectionKey, SessionKeys, SessionSecrets};
use cloudburst_core::wire::seal::Sealer;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

fn vectors() -> Vectors {
    Vectors::read("handshake.txt")
}

fn path() -> PathId {
    PathId(vectors().section("handshake").int("path"))
}

fn nonce() -> u64 {
    vectors().section("handshake").number("nonce")
}

fn psk() -> [u8; 32] {
    vectors().section("handshake").bytes("pre_shared_key")
}

fn address(section: &Section, ip: &str, port: &str) -> SocketAddr {
    let ip = Ipv6Addr::from(section.bytes::<16>(ip));
    SocketAddr::new(IpAddr::V6(ip).to_canonical(), section.int(port))
}

/// The symbols of the session that HELLO names.
fn current() -> DirectionKey {
    let other = Vectors::read("session.txt");
    let session = other.section("session");
    let secrets = SessionSecrets { k1: session.bytes("k1"), k2: session.bytes("k2") };
    let id = |key| SessionId(session.int(key));
    SessionKeys::new(&secrets, id("initiator_id"), id("responder_id")).forward.symbols
}

fn open_fields() -> OpenFields {
    let vectors = vectors();
    let section = vectors.section("message 1");
    OpenFields {
        incarnation: Incarnation(section.bytes("initiator")),
        addressed: address(section, "addressed_ip", "addressed_port"),
        session: SessionId(section.int("session")),
        capabilities: Capabilities(section.int("capabilities")),
        port: section.int("port"),
        more_ports: section.int("more_ports"),
        translated: section.number("flags") == 1,
    }
}

fn accept_fields() -> AcceptFields {
    let vectors = vectors();
    let section = vectors.section("message 2");
    AcceptFields {
        incarnation: Incarnation(section.bytes("responder")),
        session: SessionId(section.int("session")),
        capabilities: Capabilities(section.int("capabilities")),
        port: section.int("port"),
        more_ports: section.int("more_ports"),
    }
}

fn retry() -> Retry {
    let vectors = vectors();
    let section = vectors.section("RETRY");
    let token = vectors.section("token");
    let observed = address(section, "observed_ip", "observed_port");
    let key = TokenKey::new(token.bytes("token_key"));
    Retry {
        path: path(),
        token_refused: section.number("answers") == 1,
        nonce: nonce(),
        return_path: section.int("return_path"),
        token: key.issue(token.int("t"), nonce(), observed.ip()),
        observed,
    }
}

fn open() -> Open {
    let vectors = vectors();
    let secret = vectors.section("message 1").bytes("ephemeral_secret");
    let initiation = Initiation::new(&psk(), nonce(), secret, &open_fields());
    initiation.open(path(), vectors.section("OPEN").int("return_path"), retry().token)
}

/// The responder's answer to the OPEN.
fn accept() -> (Accept, SessionSecrets) {
    let secret = vectors().section("message 2").bytes("ephemeral_secret");
    let (fields, response) = open().read(&psk(), secret).unwrap();
    assert_eq!(fields, open_fields());
    let (message, secrets) = response.accept(&accept_fields());
    (Accept { path: path(), nonce: nonce(), message }, secrets)
}

#[track_caller]
fn check(name: &str, write: impl FnOnce(&HelloKey, &mut Vec<u8>)) {
    let mut packet = Vec::new();
    write(&HelloKey::new(&psk()), &mut packet);
    assert_eq!(hex(&packet), vectors().section(name).hex("packet"), "{name}");
}

#[test]
fn hello() {
    let vectors = vectors();
    let section = vectors.section("HELLO");
    let direction = current();
    let count = section.int("count");
    assert_eq!(direction.session, SessionId(section.int("current")));
    let mut sealer = Sealer::new(direction);
    assert_eq!(sealer.next_number(), section.number("number"));
    check("HELLO", |key, out| Hello::write(path(), count, nonce(), Some(&mut sealer), key, out));
}

#[test]
fn token_and_retry() {
    assert_eq!(hex(&retry().token.0), vectors().section("token").hex("token"));
    check("RETRY", |key, out| retry().write(key, out));
}

#[test]
fn open_and_accept() {
    check("OPEN", |key, out| open().write(key, out));
    check("ACCEPT", |key, out| accept().0.write(key, out));
}

#[test]
fn secrets_of_the_session() {
    let vectors = vectors();
    let (_, secrets) = accept();
    let keys = vectors.section("keys");
    assert_eq!(
        (hex(&secrets.k1), hex(&secrets.k2)),
        (keys.hex("k1").into(), keys.hex("k2").into())
    );
}

#[test]
fn version() {
    let versions = vectors().section("VERSION").numbers("versions").map(|one| one as u8).collect();
    check("VERSION", |key, out| Versions { nonce: nonce(), versions }.write(key, out));
}
