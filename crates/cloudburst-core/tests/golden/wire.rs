//! One packet of each kind of a session, byte for byte as in `docs/spec.md`.
//!
//! A failure here means that the wire format has changed: old and new endpoints cannot communicate,
//! and the specification's vectors are wrong.

use cloudburst_core::id::{Digest, MessageId, PathId, SessionId};
use cloudburst_core::wire::answer::{self, ANSWER_OVERHEAD};
use cloudburst_core::wire::keys::SessionKeys;
use cloudburst_core::wire::keys::SessionSecrets;
use cloudburst_core::wire::packet::PREFIX_LEN;
use cloudburst_core::wire::seal::{OpenError, Opener, Sealer};
use cloudburst_core::wire::symbol::{SYMBOL_OVERHEAD, SymbolView, TrimmedView};
use cloudburst_core::wire::{
    Answer, Arrivals, Kind, Prefix, RejectReason, Report, Role, SymbolHeader, Verdict,
};

const MESSAGE: MessageId = MessageId(0x1122_3344_5566);

fn keys() -> SessionKeys {
    let secrets = SessionSecrets { k1: [0x61; 32], k2: [0x62; 32] };
    SessionKeys::new(&secrets, SessionId(0xa1a2_a3a4), SessionId(0xb1b2_b3b4))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The common prefix of the SYMBOLs.
fn prefix() -> Prefix {
    Prefix {
        kind: Kind::Symbol,
        ack_request: true,
        partial: false,
        again: false,
        pulled: false,
        probe: false,
        role: Role::Plain,
        class: 1,
        path: PathId(3),
        session: keys().forward.symbols.session,
        number: 0,
    }
}

fn symbol(header: &SymbolHeader, index_set: &[u8], payload: &[u8]) -> Vec<u8> {
    symbol_with(&prefix(), header, index_set, payload)
}

fn symbol_with(
    prefix: &Prefix,
    header: &SymbolHeader,
    index_set: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut sealer = Sealer::new(keys().forward.symbols);
    while sealer.next_number() < prefix.number {
        sealer.seal(&mut vec![0; 4], 0, 4);
    }
    let mut packet = Vec::new();
    header.write(prefix, index_set, &mut packet);
    let payload_at = packet.len();
    packet.extend_from_slice(payload);
    sealer.seal(&mut packet, 0, payload_at);
    packet
}

/// The second and last symbol of "hello world".
fn header() -> SymbolHeader {
    SymbolHeader {
        path_number: 7,
        message: MESSAGE,
        length: 11,
        age: 5,
        block: 0,
        symbol: 1,
        symbol_size: 16,
        code: [0x30, 0],
        unasked: 0,
    }
}

fn digest() -> Digest {
    keys().forward.digest.block(MESSAGE, 0, b"hello world")
}

fn answer(verdicts: impl IntoIterator<Item = Verdict>) -> Vec<u8> {
    let report =
        |verdict| Report::Message(Answer { message: MESSAGE, block: 0, acknowledged: 0, verdict });
    packet_of(verdicts.into_iter().map(report).collect())
}

fn packet_of(reports: Vec<Report>) -> Vec<u8> {
    let mut sealer = Sealer::new(keys().forward.answers);
    let prefix = Prefix::answer(0, PathId(2), sealer.session(), 0);
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
    let [forward, backward] = [&keys.forward, &keys.backward]
        .map(|flow| [flow.symbols.session.0, flow.answers.session.0]);
    assert_eq!(forward, [0xb1b2_b3b4, 0xa1a2_a3a4], "the receiver's of each packet");
    assert_eq!(backward, [0xa1a2_a3a4, 0xb1b2_b3b4]);
    let key = &keys.forward.digest;
    let blocks = [Digest([1; 16]), Digest([2; 16])];
    let digests = [digest(), key.message(MessageId(7), &blocks)];
    assert_eq!(digests.map(|d| hex(&d.0)).join(" "), DIGESTS);
    assert_eq!(key.message(MessageId(7), &blocks[..1]), blocks[0], "of one block: its own");
}

#[test]
fn symbols() {
    let packet = symbol(&header(), &[], &digest().0);
    assert_eq!(hex(&packet), SYMBOL);
    assert_eq!((SYMBOL_OVERHEAD, packet.len()), (56, 56 + 16));
    let lt = SymbolHeader { code: [0x10, 5], ..header() };
    let packet = symbol(&lt, &[0b0100_0000], &digest().0);
    assert_eq!(hex(&packet), SYMBOL_LT);

    let view = SymbolView::parse(&packet).unwrap();
    assert_eq!((view.header, view.index_set), (lt, &[0b0100_0000][..]));
    let (number, payload_at) = (view.prefix.number, view.payload_at);
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
    let header = SymbolHeader { unasked: 2, ..header() };
    let pulled = Prefix { pulled: true, ..prefix() };
    let packet = symbol_with(&pulled, &header, &[], &digest().0);
    assert_eq!(hex(&packet), PULLED);
    let view = SymbolView::parse(&packet).unwrap();
    assert_eq!((view.prefix, view.header, view.payload_at), (pulled, header, 42));

    let probe = Prefix { probe: true, class: 0, number: 1, ..pulled };
    let header = SymbolHeader { symbol: 2, path_number: 0, ..header };
    let packet = symbol_with(&probe, &header, &[], &[]);
    assert_eq!((hex(&packet).as_str(), packet.len()), (PROBE, 58));
    let view = SymbolView::parse(&packet).unwrap();
    assert_eq!((view.prefix, view.header, view.payload_at), (probe, header, 42));
    assert!(SymbolView::parse(&packet[1..]).is_err());
    for len in [57, 59] {
        let mut wrong = packet.clone();
        wrong.resize(len, 0);
        assert!(SymbolView::parse(&wrong).is_err(), "{len} bytes");
    }
}

fn arrivals_on((path, count, marked): (u16, u16, u8)) -> Arrivals {
    Arrivals { path: PathId(path), count, marked }
}

#[test]
fn symbols_with_header_tags_whole_and_trimmed() {
    let lt = SymbolHeader { code: [0x10, 5], ..header() };
    let direction = keys().forward.symbols;
    let mut packet = Vec::new();
    lt.write_tagged(&prefix(), &direction.header_key(), &[0b0100_0000], &mut packet);
    let payload_at = packet.len();
    packet.extend_from_slice(&digest().0);
    Sealer::new(direction.clone()).seal(&mut packet, 0, payload_at);
    assert_eq!(hex(&packet), TAGGED);

    let view = SymbolView::parse_tagged(&packet).unwrap();
    assert_eq!((view.prefix, view.header, view.payload_at), (prefix(), lt, payload_at));
    assert_eq!(view.index_set, &[0b0100_0000]);
    let mut opener = Opener::with_header_tags(direction);
    let mut open = packet.clone();
    assert_eq!(opener.open(0, &mut open, payload_at).unwrap(), digest().0);

    let overhead = 48 + 32;
    for len in 0..packet.len() {
        let cut = TrimmedView::parse(&packet[..len]);
        if (48..overhead).contains(&len) {
            let cut = cut.unwrap();
            assert_eq!((cut.prefix, cut.header), (prefix(), lt), "{len} bytes");
            assert_eq!((cut.authenticated, &cut.tag[..]), (&packet[..40], &packet[40..48]));
        } else {
            assert!(cut.is_err(), "{len} bytes");
        }
    }
    let mut probe = Vec::new();
    let prefix = Prefix { probe: true, ..prefix() };
    lt.write_tagged(&prefix, &keys().forward.symbols.header_key(), &[], &mut probe);
    assert!(TrimmedView::parse(&probe).is_err(), "a probe has no payload");
}

#[test]
fn answers() {
    let digest = digest();
    let arrivals = [(0, 2, 0), (3, 1, 0)].map(arrivals_on).to_vec();
    let all = [
        Verdict::BlockDone { digest, arrivals: arrivals.clone() },
        Verdict::Delivered { digest, arrivals: arrivals.clone() },
        Verdict::Nack { needed: 2, arrivals: arrivals.clone() },
        Verdict::Busy,
        Verdict::Reject(RejectReason::TooLarge),
        Verdict::Forgotten,
    ];
    let mut packets: Vec<Vec<u8>> = all.iter().map(|one| answer([one.clone()])).collect();
    packets.push(packet_of(vec![Report::Alive { nonce: 0x0102_0304_0506_0708 }]));
    packets.push(answer([Verdict::Pull { credit: 5, fin: true, arrivals }]));
    packets.push(packet_of(vec![Report::Ended]));
    packets.push(answer([all[1].clone(), all[3].clone()]));
    let marked = [(0, 2, 1), (3, 1, 0)].map(arrivals_on).to_vec();
    packets.push(answer([Verdict::Nack { needed: 2, arrivals: marked }]));
    let got: Vec<String> = packets.iter().map(|packet| hex(packet)).collect();
    assert_eq!(got, ANSWERS);
}

const DIGESTS: &str = "61af9cbd8fe49364cc929fbe3479a6d9 3ce580eccc39e7d6f116cb18382cedba";
const SYMBOL: &str = "25011003b1b2b3b400000000000000071122334455660000000b0000050000000000000100103000\
    18dd5f41c9770f6c181fba566fc0dc0eee8fb35b3ffbf433809c9f08c461a06f";
const SYMBOL_LT: &str = "25011003b1b2b3b400000000000000071122334455660000000b0000050000000000000100101005\
    4018dd5f41c9770f6c181fba566fc0dc0e91b2f75be0cc20d0aa673a3198c98d94";
const PULLED: &str = "25211003b1b2b3b400000000000000071122334455660000000b000005000000000000010010300\
    0000218dd5f41c9770f6c181fba566fc0dc0ea4f15f2eed0f918bccb178de0918f9c0";
const PROBE: &str = "25610003b1b2b3b400000000000100001122334455660000000b000005000000000000020010300\
    000029b551a0e2d78465ffe52a6a14fd5702b";
const TAGGED: &str = "25011003b1b2b3b400000000000000071122334455660000000b0000050000000000000100101005\
    c4249a65200bbbd24018dd5f41c9770f6c181fba566fc0dc0e8ccab49c349cfd15bc61a3c692c5d55a";
const ANSWERS: [&str; 11] = [
    "26000002a1a2a3a40000000000000111223344556600000000000000000061af9cbd8fe49364cc92\
     9fbe3479a6d9020000000200030001cf51be3209a3b4bcc4d86d350889dc2f",
    "26000002a1a2a3a40000000000000211223344556600000000000000000061af9cbd8fe49364cc92\
     9fbe3479a6d90200000002000300012706405b428e08b55aa586b5e2fc6c32",
    "26000002a1a2a3a40000000000000311223344556600000000000000000000020200000002000300\
     01c8380679cd259474793b5846a146ae23",
    "26000002a1a2a3a40000000000000411223344556600000000000000000016d1c8e7b89856c87fae\
     3924e3b66fe0",
    "26000002a1a2a3a40000000000000511223344556600000000000000000001d2026825ffc4153670\
     161ad34cacc844",
    "26000002a1a2a3a40000000000000611223344556600000000000000000062d9c8cca3568d5f8308\
     75a70012b2e4",
    "26000002a1a2a3a40000000000000701020304050607083e3637e7e39c8b911f0b68ae0a06076e",
    "26000002a1a2a3a40000000000000811223344556600000000000000000000000005010200000002\
     000300010c4b145794bedb9e33c1ced6dd347366",
    "26000002a1a2a3a4000000000000091807cc54de08538a67d15bb1861f573e",
    "26000002a1a2a3a40000000000000211223344556600000000000000000061af9cbd8fe49364cc92\
     9fbe3479a6d902000000020003000104112233445566000000000000000000ea262996486e9992da\
     88778d23009c63",
    "26000002a1a2a3a40000000000000311223344556600000000000000000000020210000002000300\
     015e0b04b5bf46f3d65fcfe2a3333207b3",
];
