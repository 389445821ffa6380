//! Writes the hand-made corpus files: `cargo run -p cloudburst-fuzz --example make-corpus`.
//!
//! They have descriptive names. Files named by a hash were found by fuzzing and minimised; this
//! program leaves them alone.

use cloudburst_core::id::{Digest, Incarnation, MessageId, PathId, SessionId};
use cloudburst_core::wire::handshake::{
    AcceptFields, Hello, HelloKey, OpenFields, Retry, Token, Versions, answer_by_hand, shake_hands,
};
use cloudburst_core::wire::keys::SessionKeys;
use cloudburst_core::wire::keys::SessionSecrets;
use cloudburst_core::wire::seal::{Sealer, TAG_LEN};
use cloudburst_core::wire::symbol::NO_AGE;
use cloudburst_core::wire::{
    Answer, Arrivals, Capabilities, Certificate, Kind, Prefix, RejectReason, Report, Role,
    SymbolHeader, Verdict,
};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

fn main() -> io::Result<()> {
    for (target, files) in [("wire", wire()), ("decoder", decoder()), ("pair", pair())] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}

type Files = Vec<(String, Vec<u8>)>;

/// The pre-shared key that the target uses.
const KEY: [u8; 32] = [7; 32];
const NONCE: u64 = 0x0102_0304_0506_0708;

/// A packet of each relevant kind and size, and some that are almost valid.
fn wire() -> Files {
    let mut files: Files = Vec::new();
    for (name, packet) in handshakes() {
        let mut forged = packet.clone();
        forged[5] ^= 1;
        files.push((format!("{name}-forged"), forged));
        files.push((name, packet));
    }
    files.extend(symbols());
    files.extend(answers());
    let mut add = |name: &str, bytes: Vec<u8>| files.push((name.to_owned(), bytes));
    add("empty", Vec::new());
    add("no-such-kind", vec![0x38; 40]);
    let mut of_another_version = symbol([0x30, 0], 0, 16, true);
    of_another_version[0] = 0x15;
    add("symbol-of-another-version", of_another_version);
    add("no-such-flag-of-a-symbol", [&[0x35, 0x20][..], &[0; 80]].concat());
    add("no-such-flag-of-an-answer", [&[0x36, 0x01][..], &[0; 60]].concat());
    add("hello-of-another-version", [&[0x11][..], &[0; 63]].concat());
    add("hello-of-another-version-longer", [&[0x41][..], &[0; 1199]].concat());
    add("hello-of-another-version-short", [&[0x11][..], &[0; 62]].concat());
    files
}

/// All are made under the target's key, but sealed contents do not open there.
fn handshakes() -> Files {
    let key = HelloKey::new(&KEY);
    let mut files: Files = Vec::new();
    let mut add = |name: &str, write: &mut dyn FnMut(&mut Vec<u8>)| {
        let mut packet = Vec::new();
        write(&mut packet);
        files.push((name.to_owned(), packet));
    };
    let path = PathId(0x0203);
    let secrets = SessionSecrets { k1: [0x61; 32], k2: [0x62; 32] };
    let session = SessionKeys::new(&secrets, SessionId(0xa1a2_a3a4), SessionId(0xb1b2_b3b4));
    let mut sealer = Sealer::new(session.forward.symbols);
    add("hello", &mut |out| Hello::write(path, 0, NONCE, None, &key, out));
    add("hello-current", &mut |out| {
        Hello::write(path, 255, NONCE, Some(&mut sealer), &key, out);
    });
    for (name, token_refused, observed) in
        [("retry", false, "192.0.2.1:4660"), ("retry-token-refused", true, "[2001:db8::1]:9")]
    {
        let observed = observed.parse().expect("an address");
        let token = Token([0xc3; 16]);
        let retry = Retry { path, token_refused, nonce: NONCE, return_path: 3, token, observed };
        add(name, &mut |out| retry.write(&key, out));
    }
    let [open, accept] = noise();
    add("open", &mut |out| with_mac(&open, out));
    add("accept", &mut |out| with_mac(&accept, out));
    for (name, count) in [("version", 2), ("version-none", 0), ("version-most", 15)] {
        let versions = Versions { nonce: NONCE, versions: (0..count).collect() };
        add(name, &mut |out| versions.write(&key, out));
    }
    files
}

/// OPEN and ACCEPT of two ends with another key than the target's.
fn noise() -> [Vec<u8>; 2] {
    let address: SocketAddr = "198.51.100.2:7000".parse().expect("an address");
    let open = OpenFields {
        incarnation: Incarnation([0xa1; 16]),
        addressed: address,
        session: SessionId(0x2122_2324),
        capabilities: Capabilities::default(),
        port: 7001,
        more_ports: 3,
        translated: true,
    };
    let accept = AcceptFields {
        incarnation: Incarnation([0xb2; 16]),
        session: SessionId(0x3132_3334),
        capabilities: Capabilities::default(),
        port: 7000,
        more_ports: 1,
    };
    let psk = [8; 32];
    let mut packets = Vec::new();
    shake_hands(&psk, NONCE, &open, |packet| {
        let (answer, _) = answer_by_hand(&psk, &packet, address, PathId(0x0203), &accept)
            .expect("a HELLO and an OPEN have an answer");
        packets.push(packet);
        packets.push(answer.clone());
        answer
    });
    let [_hello, _retry, open, accept] = packets.try_into().expect("four packets");
    [open, accept]
}

/// The packet as if made under the target's key.
fn with_mac(packet: &[u8], out: &mut Vec<u8>) {
    let fields = &packet[..packet.len() - 16];
    let key = blake3::derive_key("cloudburst hello", &KEY);
    out.extend_from_slice(fields);
    out.extend_from_slice(&blake3::keyed_hash(&key, fields).as_bytes()[..16]);
}

fn symbols() -> Files {
    let symbols: [(&str, [u8; 2], usize, u16, bool); 6] = [
        ("symbol-rlf256", [0x30, 0], 0, 16, true),
        ("symbol-lt", [0x10, 5], 1, 16, false),
        ("symbol-lt-dense", [0x24, 0], 16, 100, false),
        ("symbol-no-room-for-a-digest", [0x30, 0], 0, 15, false),
        ("symbol-index-set-too-long", [0x10, 5], 17, 16, true),
        ("symbol-full-datagram", [0x30, 0], 0, 1416, false),
    ];
    symbols
        .into_iter()
        .map(|(name, code, index_set, symbol_size, ack_request)| {
            (name.to_owned(), symbol(code, index_set, symbol_size, ack_request))
        })
        .collect()
}

fn symbol(code: [u8; 2], index_set: usize, symbol_size: u16, ack_request: bool) -> Vec<u8> {
    let prefix = Prefix {
        kind: Kind::Symbol,
        ack_request,
        partial: ack_request,
        again: !ack_request,
        pulled: false,
        probe: false,
        is_final: false,
        role: if ack_request { Role::Plain } else { Role::Response },
        class: 1,
        path: PathId(0x0abc),
        session: SessionId(0x0a0b_0c0d),
        number: 5,
    };
    let header = SymbolHeader {
        path_number: 7,
        message: MessageId(0x1122_3344),
        length: 93_000,
        age: if ack_request { 5 } else { NO_AGE },
        block: 0,
        symbol: 11,
        symbol_size,
        code,
        unscheduled: 0,
    };
    let mut packet = Vec::new();
    header.write(&prefix, None, &vec![0xaa; index_set], &mut packet);
    packet.resize(packet.len() + usize::from(symbol_size), 0x55);
    packet.extend_from_slice(&[0x77; TAG_LEN]);
    packet
}

fn answers() -> Files {
    let digest = Digest([0xd4; 16]);
    let arrivals = |count: u16| -> Vec<Arrivals> {
        (0..count).map(|path| Arrivals { path: PathId(path), count: 3 * path, marked: 0 }).collect()
    };
    let verdicts = [
        ("stop-block", Verdict::BlockDone { digest, arrivals: arrivals(2) }),
        ("stop-message", Verdict::Delivered { digest, arrivals: arrivals(16) }),
        ("stop-most-arrivals", Verdict::Delivered { digest, arrivals: arrivals(255) }),
        ("nack", Verdict::Nack { needed: 2, arrivals: arrivals(3) }),
        ("nack-no-arrivals", Verdict::Nack { needed: u16::MAX, arrivals: Vec::new() }),
        ("pull", Verdict::Pull { credit: 17, fin: true, arrivals: arrivals(3) }),
        ("busy", Verdict::Busy),
        ("busy-held", Verdict::Held),
        ("forgotten", Verdict::Forgotten),
        ("reject-too-large", Verdict::Reject(RejectReason::TooLarge)),
        ("reject-unsupported", Verdict::Reject(RejectReason::Unsupported)),
        ("reject-corrupt", Verdict::Reject(RejectReason::Corrupt)),
        ("reject-closing", Verdict::Reject(RejectReason::Closing)),
        ("reject-busy", Verdict::Reject(RejectReason::Busy)),
    ];
    let report = |verdict| {
        Report::Message(Answer { message: MessageId(7), block: 1, acknowledged: 9, verdict })
    };
    let alive = Report::Alive { nonce: NONCE };
    let (names, verdicts): (Vec<_>, Vec<_>) = verdicts.into_iter().unzip();
    let reports: Vec<Report> = verdicts.into_iter().map(report).collect();
    let short = |report: &&Report| report.len() < 100;
    let mut files: Files = names
        .into_iter()
        .zip(&reports)
        .map(|(name, report)| (name.to_owned(), answer([report])))
        .collect();
    files.push(("alive".to_owned(), answer([&alive])));
    for (name, covered) in [("ended", 0), ("ended-delivered", 9), ("ended-longest", 2_000)] {
        let delivered = [MessageId(5_000), MessageId(4_993)];
        let end = Report::Ended(Certificate::new(MessageId(5_001), covered, delivered));
        files.push((name.to_owned(), answer([&end])));
    }
    files.push(("answer-of-all".to_owned(), answer(reports.iter().chain([&alive]).filter(short))));
    files.push(("answer-of-many".to_owned(), answer([&reports[6]; 80])));
    files.push(("answer-of-none".to_owned(), answer([])));
    files
}

fn answer<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Vec<u8> {
    let mut packet = Vec::new();
    Prefix::answer(2, PathId(3), SessionId(0x0a0b_0c0d), 5).write(&mut packet);
    reports.into_iter().for_each(|report| report.write(&mut packet));
    packet.extend_from_slice(&[0x77; TAG_LEN]);
    packet
}

/// Each code with blocks of every size, and lies of every kind.
fn decoder() -> Files {
    // Family; distribution and parameter, if any; n - 1; symbol size; seed; missing bytes.
    let codes: [(&str, &[u8]); 9] = [
        ("rlf256", &[0]),
        ("lt-5", &[1, 0, 5]),
        ("lt-2", &[1, 0, 2]),
        ("lt-uniform", &[1, 1, 9]),
        ("lt-ideal", &[1, 2]),
        ("lt-robust", &[1, 3]),
        ("lt-systematic-dense", &[2, 4]),
        ("lt-systematic-5", &[2, 0, 5]),
        ("raptorq", &[3]),
    ];
    let mut files: Files = Vec::new();
    for (name, code) in codes {
        for (n, size) in [(1, 0), (4, 7), (14, 2), (64, 0), (128, 0)] {
            let mut bytes = [code, &[n - 1, size, n, 0, 3]].concat();
            // Every other one of the symbols that a sender makes first, then the rest, then some
            // more.
            let first = n / 2;
            bytes.extend_from_slice(&[4, first, 255, 4, 0, n, 7, 3, 0, 250, 9]);
            files.push((format!("{name}-{n}"), bytes));
        }
        let block = [code, &[11, 5, 1, 0, 0]].concat();
        let lies: [(&str, &[u8]); 6] = [
            ("payload", &[8, 3, 0, 1, 0xff, 4, 0, 12]),
            ("index-set", &[9, 3, 9, 10, 4, 200, 4, 200, 40]),
            ("drawn-set", &[11, 2, 0xff, 0xff, 11, 2, 0, 0, 11, 2, 0xf0, 0, 4, 20, 60]),
            ("lengths", &[12, 1, 0, 0, 12, 1, 0xff, 0xff, 13, 1, 0, 13, 1, 17, 13, 1, 255]),
            ("ids", &[14, 0xff, 0xff, 0xff, 0xff, 2, 0x80, 0, 10, 250, 0, 3, 4, 250, 20, 30]),
            (
                "reset",
                &[4, 0, 6, 15, 0, 127, 0, 1, 0, 0, 4, 0, 128, 15, 1, 0, 5, 3, 9, 1, 0, 0, 4, 0, 20],
            ),
        ];
        if ["rlf256", "lt-5", "lt-systematic-dense", "raptorq"].contains(&name) {
            for (lie, operations) in lies {
                files.push((format!("{name}-lie-{lie}"), [&block, operations].concat()));
            }
        }
    }
    files
}

/// Hand-made schedules.
fn pair() -> Files {
    // Steps, by their first byte. The following bytes are described in `cloudburst_world`'s
    // `step.rs`.
    const SEND: u8 = 0;
    const REPLY: u8 = 8;
    const CANCEL: u8 = 9;
    const TAKE: u8 = 10;
    const RESTART: u8 = 12;
    const PAUSE: u8 = 13;
    const RESUME: u8 = 14;
    const STALL: u8 = 15;
    const MICROS: u8 = 16;
    const MILLIS: u8 = 22;
    const LONG: u8 = 23;
    const NEXT: u8 = 24;
    const CONDITIONS: u8 = 26;
    const EGRESS: u8 = 29;
    const AGAIN_FROM: u8 = 31;
    const DAMAGE: u8 = 33;
    const AGAIN: u8 = 34;
    const RELEASE: u8 = 35;
    const RELEASE_SOME: u8 = 37;
    const HOLD: u8 = 38;
    const PASS: u8 = 39;
    // For two hosts: from the first to the second, and back.
    const AB: u8 = 0;
    const BA: u8 = 1;
    // The ways in which worlds end.
    const HEALS: u8 = 0;
    const HEALS_LATE: u8 = 7 << 5 | 16;
    const PAUSED: u8 = 4;
    const DARK: u8 = 6;

    let plain = [0; 18];
    let field = |at: usize, choice: u8| {
        let mut fields = plain;
        fields[at] = choice;
        fields
    };
    let two = |end| setup(0, end, &[plain; 2]);
    let steps: [(&str, Vec<u8>, &[u8]); 32] = [
        ("one-message", two(HEALS), &[SEND, AB, 60, 0, MICROS, 200]),
        ("nothing-sent", two(HEALS), &[NEXT, MILLIS, 255, NEXT]),
        ("empty-message", two(HEALS), &[SEND, AB, 0, 0, MICROS, 200]),
        (
            "both-ways",
            two(HEALS_LATE),
            &[SEND, AB, 60, 0, SEND, BA, 70, 0, MICROS, 50, SEND, BA, 9, 0, MICROS, 50],
        ),
        ("reply", two(HEALS), &[SEND, AB, 60, 0, MILLIS, 1, REPLY, 1, 70, 0, MILLIS, 1]),
        ("two-blocks", two(HEALS), &[SEND, AB, 240, 0, MILLIS, 2]),
        (
            "lossy",
            two(HEALS),
            &[
                CONDITIONS, AB, 2, CONDITIONS, BA, 1, SEND, AB, 200, 4, MILLIS, 9, SEND, AB, 90, 4,
                LONG, 2,
            ],
        ),
        ("bursty", two(HEALS), &[CONDITIONS, AB, 4, SEND, AB, 250, 4, MILLIS, 99]),
        ("foul", two(HEALS), &[CONDITIONS, AB, 13, CONDITIONS, BA, 13, SEND, AB, 210, 4, LONG, 9]),
        ("slow", two(HEALS), &[CONDITIONS, AB, 10, CONDITIONS, BA, 11, SEND, AB, 220, 4, LONG, 9]),
        (
            "small-mtu",
            setup(0, HEALS, &[field(1, 1); 2]),
            &[CONDITIONS, AB, 12, SEND, AB, 200, 4, LONG, 9],
        ),
        ("dark", two(DARK), &[SEND, AB, 60, 0, SEND, BA, 3, 4]),
        ("dark-under-way", two(DARK), &[SEND, AB, 250, 0, MICROS, 8]),
        ("stop-lost", two(HEALS), &[SEND, AB, 60, 4, MICROS, 5, CONDITIONS, BA, 3, MILLIS, 50]),
        (
            "receiver-restarts",
            two(HEALS),
            &[SEND, AB, 60, 0, MILLIS, 9, SEND, AB, 200, 4, MICROS, 2, RESTART, 1, MILLIS, 99],
        ),
        (
            "sender-restarts",
            two(HEALS),
            &[SEND, AB, 200, 4, MICROS, 6, RESTART, 0, SEND, AB, 200, 4, MILLIS, 99],
        ),
        (
            "both-restart",
            two(HEALS),
            &[SEND, AB, 60, 0, MILLIS, 9, RESTART, 0, RESTART, 1, SEND, BA, 60, 0, SEND, AB, 60, 0],
        ),
        ("cancel-early", two(HEALS), &[SEND, AB, 60, 0, CANCEL, 0, 0, MILLIS, 9]),
        (
            "cancel-late",
            two(HEALS),
            &[SEND, AB, 250, 4, MICROS, 8, CANCEL, 0, 0, SEND, AB, 60, 0, MILLIS, 9],
        ),
        (
            "receiver-closes",
            two(HEALS),
            &[SEND, AB, 60, 0, MILLIS, 9, RESTART, 201, SEND, AB, 60, 0, MILLIS, 9],
        ),
        (
            "replays",
            two(HEALS),
            &[
                SEND, AB, 60, 0, MILLIS, 9, AGAIN, 0, AGAIN, 1, AGAIN, 2, AGAIN, 3, AGAIN, 4,
                AGAIN, 5,
            ],
        ),
        (
            "strangers",
            two(HEALS_LATE),
            &[
                SEND, AB, 60, 0, AGAIN_FROM, 0, 4, 200, MILLIS, 9, AGAIN_FROM, 1, 2, 3, SEND, BA,
                60, 0,
            ],
        ),
        (
            "damaged",
            two(HEALS),
            &[
                SEND, AB, 60, 4, MICROS, 9, DAMAGE, 0, 0, 0, 9, DAMAGE, 0, 1, 0, 9, DAMAGE, 1, 3,
                0, 2, 1, 2, 3, 4, DAMAGE, 2, 4, 0, 30, 1, DAMAGE, 1, 5, 0, 4, 0x25, 0, 1, 2,
                MILLIS, 9,
            ],
        ),
        (
            "held-back",
            two(HEALS),
            &[
                HOLD,
                SEND,
                AB,
                160,
                4,
                MICROS,
                9,
                RELEASE,
                1,
                2,
                RELEASE,
                0,
                0,
                PASS,
                MILLIS,
                1,
                HOLD,
                SEND,
                AB,
                90,
                4,
                MICROS,
                9,
                RELEASE,
                3,
                1,
                RELEASE_SOME,
                15,
                PASS,
                MILLIS,
                9,
            ],
        ),
        (
            "slow-application",
            setup(0, HEALS, &[plain, field(12, 1)]),
            &[
                TAKE, 1, 0, SEND, AB, 40, 4, SEND, AB, 41, 4, SEND, AB, 42, 4, MILLIS, 60, TAKE, 1,
                1, MILLIS, 60, TAKE, 1, 3, MILLIS, 60,
            ],
        ),
        (
            "little-memory",
            setup(
                0,
                HEALS,
                &[plain, {
                    let mut b = field(0, 1);
                    b[14] = 1;
                    b[15] = 1;
                    b
                }],
            ),
            &[CONDITIONS, AB, 1, SEND, AB, 146, 4, SEND, AB, 146, 4, SEND, AB, 145, 4, LONG, 2],
        ),
        ("too-large", setup(0, HEALS, &[plain, field(0, 1)]), &[SEND, AB, 150, 0, MILLIS, 9]),
        (
            "trusted-four-egresses",
            setup(1 | 12, HEALS, &[plain; 2]),
            &[SEND, AB, 200, 4, EGRESS, 1, 2, SEND, BA, 200, 4, MILLIS, 50],
        ),
        (
            "idle-then-on",
            setup(16, HEALS_LATE, &[plain; 2]),
            &[SEND, AB, 60, 0, LONG, 255, LONG, 255, SEND, AB, 60, 4, LONG, 255, SEND, BA, 60, 4],
        ),
        (
            "stopped",
            two(PAUSED),
            &[
                SEND, AB, 60, 4, MILLIS, 1, PAUSE, 1, SEND, AB, 90, 4, MILLIS, 9, RESUME, 1, SEND,
                AB, 90, 4, STALL, 255, SEND, BA, 60, 0, MICROS, 9,
            ],
        ),
        (
            "oblivious-at-a-crawl",
            setup(
                0,
                HEALS,
                &[
                    {
                        let mut a = field(6, 2);
                        a[2] = 2;
                        a
                    },
                    plain,
                ],
            ),
            &[CONDITIONS, AB, 1, SEND, AB, 200, 4, SEND, AB, 20, 4, LONG, 9],
        ),
        (
            "four-hosts",
            setup(4, HEALS, &[plain; 4]),
            &[
                SEND, 0, 60, 4, SEND, 1, 60, 4, SEND, 6, 60, 4, SEND, 11, 60, 4, SEND, 28, 9, 4,
                LONG, 9,
            ],
        ),
    ];
    steps
        .into_iter()
        .map(|(name, setup, steps)| (name.to_owned(), [&setup, steps].concat()))
        .collect()
}

/// The bytes that configure two to four hosts. All zeros are the simplest configuration.
fn setup(flags: u8, end: u8, hosts: &[[u8; 18]]) -> Vec<u8> {
    [&[flags, hosts.len() as u8 - 2, end, 0][..], hosts.as_flattened()].concat()
}
