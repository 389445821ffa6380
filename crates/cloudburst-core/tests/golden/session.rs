//! One packet of each kind of a session.

use crate::vectors::{Section, Vectors, hex, unhex};
use cloudburst_core::id::{Digest, MessageId, PathId, SessionId};
use cloudburst_core::wire::answer::{self, ANSWER_OVERHEAD};
use cloudburst_core::wire::keys::{SessionKeys, SessionSecrets};
use cloudburst_core::wire::packet::PREFIX_LEN;
use cloudburst_core::wire::seal::{OpenError, Opener, Sealer};
use cloudburst_core::wire::symbol::{SYMBOL_OVERHEAD, SymbolView, TrimmedView};
use cloudburst_core::wire::{
    Answer, Arrivals, Certificate, Kind, Prefix, RejectReason, Report, Role, SymbolHeader, Verdict,
};

fn vectors() -> Vectors {
    Vectors::read("session.txt")
}

fn keys() -> SessionKeys {
    let vectors = vectors();
    let session = vectors.section("session");
    let secrets = SessionSecrets { k1: session.bytes("k1"), k2: session.bytes("k2") };
    let id = |key| SessionId(session.int(key));
    SessionKeys::new(&secrets, id("initiator_id"), id("responder_id"))
}

fn message() -> MessageId {
    MessageId(vectors().section("message").number("id"))
}

/// The digest of the message, which is its second and last symbol.
fn digest() -> Digest {
    let bytes = unhex(vectors().section("message").hex("bytes"));
    keys().forward.digest.block(message(), 0, &bytes)
}

/// The prefix and the header of a SYMBOL.
fn symbol_fields(section: &Section) -> (Prefix, SymbolHeader) {
    let flags = section.number("flags");
    let prefix = Prefix {
        kind: Kind::Symbol,
        ack_request: flags & 0x01 != 0,
        partial: false,
        again: false,
        pulled: flags & 0x20 != 0,
        probe: flags & 0x40 != 0,
        is_final: flags & 0x80 != 0,
        role: Role::Plain,
        class: section.int("class"),
        path: PathId(section.int("path")),
        session: keys().forward.symbols.session,
        number: section.number("number"),
    };
    let header = SymbolHeader {
        path_number: section.int("path_number"),
        message: message(),
        length: u32::try_from(vectors().section("message").hex("bytes").len() / 2).unwrap(),
        age: section.int("age"),
        block: section.int("block"),
        symbol: section.int("symbol"),
        symbol_size: section.int("symbol_size"),
        code: section.bytes("code"),
        unscheduled: section.get("unscheduled").map_or(0, |_| section.int("unscheduled")),
    };
    (prefix, header)
}

/// A SYMBOL with these fields.
fn symbol(name: &str, index_set: &[u8], payload: &[u8]) -> Vec<u8> {
    let (prefix, header) = symbol_fields(vectors().section(name));
    let mut sealer = Sealer::new(keys().forward.symbols);
    while sealer.next_number() < prefix.number {
        sealer.seal(&mut vec![0; 4], 0, 4);
    }
    let mut packet = Vec::new();
    header.write(&prefix, None, index_set, &mut packet);
    let payload_at = packet.len();
    packet.extend_from_slice(payload);
    sealer.seal(&mut packet, 0, payload_at);
    assert_eq!(hex(&packet), vectors().section(name).hex("packet"), "{name}");
    packet
}

fn report(section: &Section) -> Report {
    let arrivals = || {
        let [paths, counts, marks] = ["arrival_paths", "arrival_counts", "arrival_marks"]
            .map(|key| section.numbers(key).collect::<Vec<u64>>());
        let arrival = |i: usize| Arrivals {
            path: PathId(paths[i] as u16),
            count: counts[i] as u16,
            marked: marks[i] as u8,
        };
        (0..paths.len()).map(arrival).collect()
    };
    let verdict = match section.number("type") {
        1 => Verdict::BlockDone { digest: digest(), arrivals: arrivals() },
        2 => Verdict::Delivered { digest: digest(), arrivals: arrivals() },
        3 => Verdict::Nack { needed: section.int("needed"), arrivals: arrivals() },
        4 if section.number("held") == 1 => Verdict::Held,
        4 => Verdict::Busy,
        5 => {
            assert_eq!(section.number("reason"), RejectReason::TooLarge as u64);
            Verdict::Reject(RejectReason::TooLarge)
        }
        6 => Verdict::Forgotten,
        7 => return Report::Alive { nonce: section.number("nonce") },
        8 => Verdict::Pull {
            credit: section.int("credit"),
            fin: section.number("flags") == 1,
            arrivals: arrivals(),
        },
        9 => {
            let next = section.number("next");
            let bytes = unhex(section.hex("delivered"));
            let is_set = |back: &u64| bytes[(back / 8) as usize] >> (back % 8) & 1 == 1;
            let covered = 8 * bytes.len() as u64;
            let delivered = (0..covered).filter(is_set).map(|back| MessageId(next - 1 - back));
            return Report::Ended(Certificate::new(MessageId(next), covered, delivered));
        }
        other => panic!("type {other}"),
    };
    Report::Message(Answer {
        message: MessageId(section.number("message")),
        block: section.int("block"),
        acknowledged: section.number("acknowledged"),
        verdict,
    })
}

fn answer(section: &Section, reports: Vec<Report>) -> Vec<u8> {
    let mut sealer = Sealer::new(keys().forward.answers);
    let path = PathId(section.int("path"));
    let prefix =
        Prefix::answer(section.int("class"), path, sealer.session(), section.number("number"));
    let mut packet = Vec::new();
    prefix.write(&mut packet);
    reports.iter().for_each(|report| report.write(&mut packet));
    let at = packet.len();
    sealer.seal(&mut packet, 0, at);
    let len: usize = reports.iter().map(Report::len).sum();
    assert_eq!(packet.len(), ANSWER_OVERHEAD + len);
    assert_eq!(answer::parse(&packet), Ok((prefix, reports)));
    packet
}

#[test]
fn session_ids_and_digests() {
    let keys = keys();
    let vectors = vectors();
    let [forward, backward] = [&keys.forward, &keys.backward]
        .map(|flow| [flow.symbols.session.0, flow.answers.session.0]);
    assert_eq!(forward, [0xb1b2_b3b4, 0xa1a2_a3a4], "the receiver's of each packet");
    assert_eq!(backward, [0xa1a2_a3a4, 0xb1b2_b3b4]);

    assert_eq!(hex(&digest().0), vectors.section("message").hex("digest"));
    let two = vectors.section("message of two blocks");
    let id = MessageId(two.number("id"));
    let blocks: Vec<Digest> = two
        .hex("block_digests")
        .split(' ')
        .map(|digest| Digest(unhex(digest).try_into().unwrap()))
        .collect();
    let key = &keys.forward.digest;
    assert_eq!(hex(&key.message(id, &blocks).0), two.hex("digest"));
    assert_eq!(key.message(id, &blocks[..1]), blocks[0], "of one block: its own");
}

#[test]
fn symbols() {
    let packet = symbol("SYMBOL rlf256", &[], &digest().0);
    assert_eq!((SYMBOL_OVERHEAD, packet.len()), (56, 56 + 16));
    let packet = symbol("SYMBOL lt:d=5", &[0b0100_0000], &digest().0);

    let view = SymbolView::parse(&packet).unwrap();
    let (_, lt) = symbol_fields(vectors().section("SYMBOL lt:d=5"));
    assert_eq!((view.header, view.index_set), (lt, &[0b0100_0000][..]));
    let number = view.prefix.number;
    let payload_at = view.payload_at;
    let mut opener = Opener::new(keys().forward.symbols);
    let mut forged = packet.clone();
    forged[PREFIX_LEN] ^= 1;
    assert_eq!(opener.open(number, &mut forged, payload_at), Err(OpenError::Forged));
    let mut open = packet.clone();
    assert_eq!(opener.open(number, &mut open, payload_at).unwrap(), digest().0);
    let mut replay = packet;
    assert_eq!(opener.open(number, &mut replay, payload_at), Err(OpenError::Replayed));
}

#[test]
fn symbols_of_messages_that_are_pulled_and_probes() {
    let packet = symbol("SYMBOL pulled", &[], &digest().0);
    let (prefix, header) = symbol_fields(vectors().section("SYMBOL pulled"));
    assert!(prefix.pulled && !prefix.probe);
    let view = SymbolView::parse(&packet).unwrap();
    assert_eq!((view.prefix, view.header, view.payload_at), (prefix, header, 42));

    let packet = symbol("SYMBOL probe", &[], &[]);
    assert_eq!(packet.len(), 58);
    let (prefix, header) = symbol_fields(vectors().section("SYMBOL probe"));
    assert!(prefix.pulled && prefix.probe);
    let view = SymbolView::parse(&packet).unwrap();
    assert_eq!((view.prefix, view.header, view.payload_at), (prefix, header, 42));
    assert!(SymbolView::parse(&packet[1..]).is_err());
    for len in [57, 59] {
        let mut wrong = packet.clone();
        wrong.resize(len, 0);
        assert!(SymbolView::parse(&wrong).is_err(), "{len} bytes");
    }
}

#[test]
fn symbols_with_header_tags_whole_and_trimmed() {
    let vectors = vectors();
    let section = vectors.section("SYMBOL with header tag");
    let (prefix, lt) = symbol_fields(section);
    let direction = keys().forward.symbols;
    let mut packet = Vec::new();
    lt.write(&prefix, Some(&direction.header_key()), &[0b0100_0000], &mut packet);
    let payload_at = packet.len();
    packet.extend_from_slice(&digest().0);
    Sealer::new(direction.clone()).seal(&mut packet, 0, payload_at);
    assert_eq!(hex(&packet), section.hex("packet"));

    let view = SymbolView::parse_tagged(&packet).unwrap();
    assert_eq!((view.prefix, view.header, view.payload_at), (prefix, lt, payload_at));
    assert_eq!(view.index_set, &[0b0100_0000]);
    let mut opener = Opener::with_header_tags(direction);
    let mut open = packet.clone();
    assert_eq!(opener.open(0, &mut open, payload_at).unwrap(), digest().0);

    let overhead = 48 + 32;
    for len in 0..packet.len() {
        let cut = TrimmedView::parse(&packet[..len]);
        if (48..overhead).contains(&len) {
            let cut = cut.unwrap();
            assert_eq!((cut.prefix, cut.header), (prefix, lt), "{len} bytes");
            assert_eq!((cut.authenticated, &cut.tag[..]), (&packet[..40], &packet[40..48]));
        } else {
            assert!(cut.is_err(), "{len} bytes");
        }
    }
    let mut probe = Vec::new();
    let prefix = Prefix { probe: true, ..prefix };
    lt.write(&prefix, Some(&keys().forward.symbols.header_key()), &[], &mut probe);
    assert!(TrimmedView::parse(&probe).is_err(), "a probe has no payload");
}

#[test]
fn answers() {
    let vectors = vectors();
    let mut types = Vec::new();
    for (names, section) in vectors.sections("ANSWER ") {
        let report = |name| report(vectors.section(&format!("report {name}")));
        let packet = answer(section, names.split(' ').map(report).collect());
        assert_eq!(hex(&packet), section.hex("packet"), "{names}");
        types.push(packet[PREFIX_LEN]);
    }
    assert_eq!(types, [1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 4, 3]);
}
