//! Writes the corpus files that were made by hand: `cargo run -p cloudburst-fuzz --example
//! make-corpus`.
//!
//! They have names that say what they are. Files named by a hash were found by fuzzing and
//! minimised; this leaves them alone.

use cloudburst_core::id::{Digest, Incarnation, MessageId, PathId, SessionId};
use cloudburst_core::wire::hello::HELLO_LEN;
use cloudburst_core::wire::keys::PresharedKey;
use cloudburst_core::wire::seal::TAG_LEN;
use cloudburst_core::wire::{
    Answer, Arrivals, Hello, HelloAck, Kind, Prefix, RejectReason, Role, SymbolHeader, Verdict,
};
use std::fs;
use std::io;
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

/// A packet of each kind and size that matters, and some that are nearly one.
fn wire() -> Files {
    let hello_key = PresharedKey::new([7; 32]).hello_key();
    let mut files: Files = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>| files.push((name.to_owned(), bytes));

    let (path, initiator) = (PathId(2), Incarnation([0xa1; 16]));
    let nonce = 0x0102_0304_0506_0708;
    for (name, current) in [("hello", 0), ("hello-current", 0x1122_3344_5566_7788)] {
        let hello = Hello {
            path,
            initiator,
            nonce,
            port: 7000,
            current: SessionId(current),
            more_ports: 0,
        };
        let mut packet = Vec::new();
        hello.write(&hello_key, &mut packet);
        add(name, packet.clone());
        packet[29] ^= 1;
        add(&format!("{name}-forged"), packet);
    }
    for (name, current_alive) in [("hello-ack", false), ("hello-ack-alive", true)] {
        let (responder, session_nonce) = (Incarnation([0xb2; 16]), [0xc3; 16]);
        let ack = HelloAck {
            path,
            initiator,
            nonce,
            responder,
            session_nonce,
            current_alive,
            more_ports: 0,
            port: if current_alive { 40_001 } else { 0 },
        };
        let mut packet = Vec::new();
        ack.write(&hello_key, &mut packet);
        packet.truncate(if current_alive { HELLO_LEN } else { HELLO_LEN - 1 });
        add(if current_alive { name } else { "hello-ack-short" }, packet);
        let mut packet = Vec::new();
        ack.write(&hello_key, &mut packet);
        add(name, packet);
    }

    let symbols: [(&str, [u8; 2], usize, u16, bool); 6] = [
        ("symbol-rlf256", [0x30, 0], 0, 4, true),
        ("symbol-lt", [0x10, 5], 1, 4, false),
        ("symbol-lt-dense", [0x24, 0], 16, 100, false),
        ("symbol-no-payload", [0x30, 0], 0, 0, false),
        ("symbol-longest-index-set", [0x10, 5], 255, 1, true),
        ("symbol-full-datagram", [0x30, 0], 0, 1367, false),
    ];
    for (name, code, index_set, symbol_size, ask) in symbols {
        let mut packet = symbol(code, index_set, symbol_size, ask);
        add(name, packet.clone());
        packet[0] = 0x23;
        add(&format!("{name}-other-version"), packet);
    }

    let digest = Digest([0xd4; 16]);
    let arrivals = |count: u16| -> Vec<Arrivals> {
        (0..count).map(|path| Arrivals { path: PathId(path), count: 3 * path }).collect()
    };
    let verdicts = [
        ("stop-block", Verdict::BlockDone { digest, arrivals: arrivals(2) }),
        ("stop-message", Verdict::Delivered { digest, arrivals: arrivals(16) }),
        ("stop-most-arrivals", Verdict::Delivered { digest, arrivals: arrivals(255) }),
        ("status", Verdict::Status { needed: 2, arrivals: arrivals(3) }),
        ("status-no-arrivals", Verdict::Status { needed: u16::MAX, arrivals: Vec::new() }),
        ("busy", Verdict::Busy),
        ("forgotten", Verdict::Forgotten),
        ("reject-too-large", Verdict::Reject(RejectReason::TooLarge)),
        ("reject-unsupported", Verdict::Reject(RejectReason::Unsupported)),
        ("reject-corrupt", Verdict::Reject(RejectReason::Corrupt)),
        ("reject-closing", Verdict::Reject(RejectReason::Closing)),
    ];
    for (name, verdict) in verdicts {
        let answer = Answer { message: MessageId(7), block: 1, echo: 9, verdict };
        let mut packet = Vec::new();
        answer.write(&prefix(answer.kind(), false), &mut packet);
        packet.extend_from_slice(&[0x77; TAG_LEN]);
        add(name, packet);
    }
    add("empty", Vec::new());
    add("no-such-kind", vec![0x18; 40]);
    add("no-such-flag", [&[0x16, 0x80][..], &[0; 60]].concat());
    files
}

fn prefix(kind: Kind, ask: bool) -> Prefix {
    let session = SessionId(0x0a0b_0c0d_0e0f_1011);
    Prefix {
        kind,
        ask,
        partial: ask,
        again: false,
        role: Role::Plain,
        path: PathId(3),
        session,
        number: 5,
    }
}

fn symbol(code: [u8; 2], index_set: usize, symbol_size: u16, ask: bool) -> Vec<u8> {
    let header = SymbolHeader {
        message: MessageId(0x1122_3344),
        length: 93_000,
        age: 5,
        block: 0,
        symbol: 11,
        symbol_size,
        code,
        digest: Digest([0xd4; 16]),
    };
    let mut packet = Vec::new();
    header.write(&prefix(Kind::Symbol, ask), &vec![0xaa; index_set], &mut packet);
    packet.resize(packet.len() + usize::from(symbol_size), 0x55);
    packet.extend_from_slice(&[0x77; TAG_LEN]);
    packet
}

/// Each code with blocks of every size; and lies of every kind.
fn decoder() -> Files {
    // Family; law and parameter where there are; n - 1; symbol size; seed; missing bytes.
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
            // Every other symbol of those that a sender makes first, then the rest, then some.
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

/// Schedules that a person would think of.
fn pair() -> Files {
    const SEND: u8 = 0;
    const SEND_B: u8 = 3;
    const SERVE: u8 = 19;
    let plain = setup(0, [0; 18], [0; 18]);
    let field = |at: usize, choice: u8| {
        let mut fields = [0; 18];
        fields[at] = choice;
        fields
    };
    let steps: [(&str, Vec<u8>, &[u8]); 26] = [
        ("one-message", plain.clone(), &[SEND, 60, 0, 25, 200, 0]),
        ("nothing-sent", plain.clone(), &[SERVE, 17, 255, SERVE]),
        ("empty-message", plain.clone(), &[SEND, 0, 0, 25, 200, 0]),
        (
            "both-ways",
            plain.clone(),
            &[SEND, 60, 0, SEND_B, 70, 0, 25, 50, 0, SEND_B, 9, 0, 25, 50, 0],
        ),
        ("two-blocks", plain.clone(), &[SEND, 240, 0, 25, 250, 0]),
        ("lossy", plain.clone(), &[SEND, 200, 4, 28, 80, 20, 20, 100, 1, SEND, 90, 4, 27, 200, 2]),
        ("dark", setup(1, [0; 18], [0; 18]), &[SEND, 60, 0, SEND_B, 3, 4]),
        ("dark-under-way", setup(1, [0; 18], [0; 18]), &[SEND, 250, 0, 25, 4, 0]),
        ("stop-lost", plain.clone(), &[SEND, 60, 4, 25, 3, 0, 29, 0, 100, 0, 25, 100, 0]),
        (
            "receiver-restarts",
            plain.clone(),
            &[SEND, 60, 0, 25, 100, 0, SEND, 200, 4, 25, 2, 0, 24, 0, 25, 250, 0],
        ),
        (
            "sender-restarts",
            plain.clone(),
            &[SEND, 200, 4, 25, 6, 0, 24, 1, SEND, 200, 4, 26, 250, 0],
        ),
        (
            "both-restart",
            plain.clone(),
            &[SEND, 60, 0, 25, 60, 0, 24, 0, 24, 1, SEND_B, 60, 0, SEND, 60, 0, 26, 250, 0],
        ),
        ("cancel-early", plain.clone(), &[SEND, 60, 0, 22, 0, 0, 25, 60, 0]),
        (
            "cancel-late",
            plain.clone(),
            &[SEND, 250, 4, 25, 4, 0, 22, 0, 0, SEND, 60, 0, 25, 200, 0],
        ),
        (
            "receiver-closes",
            plain.clone(),
            &[SEND, 60, 0, 25, 60, 0, 24, 202, SEND, 60, 0, 25, 60, 0],
        ),
        (
            "replays",
            plain.clone(),
            &[SEND, 60, 0, 25, 60, 0, 13, 0, 13, 1, 13, 2, 13, 3, 13, 4, 13, 5, 13, 6, 13, 7],
        ),
        (
            "spoofed",
            plain.clone(),
            &[SEND, 60, 0, 14, 0, 200, 25, 60, 0, 14, 1, 3, 14, 2, 220, SEND_B, 60, 0, 25, 60, 0],
        ),
        (
            "damaged",
            plain.clone(),
            &[
                SEND, 60, 4, 25, 2, 0, 11, 0, 0, 0, 0, 9, 11, 1, 0, 1, 0, 9, 11, 3, 1, 2, 0, 2, 1,
                2, 3, 11, 2, 1, 3, 0, 30, 26, 200, 0,
            ],
        ),
        (
            "junk",
            plain.clone(),
            &[
                SEND, 60, 0, 25, 60, 0, 11, 0, 0, 5, 0, 20, 0x13, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0,
                1, 2, 3, 4, 5, 6, 7, 8, 26, 60, 0,
            ],
        ),
        (
            "backwards",
            plain.clone(),
            &[
                SEND, 160, 4, 4, 15, 4, 15, SERVE, 6, 255, 6, 254, 10, 0, 10, 0, 6, 200, 9, 3, 26,
                200, 0,
            ],
        ),
        (
            "slow-application",
            setup(0, [0; 18], field(12, 1)),
            &[
                23, 1, 0, SEND, 40, 4, SEND, 41, 4, SEND, 42, 4, 26, 250, 0, 23, 1, 1, 26, 250, 0,
                23, 1, 3, 26, 250, 0,
            ],
        ),
        (
            "little-memory",
            setup(0, [0; 18], {
                let mut b = field(0, 1);
                (b[14], b[15]) = (1, 1);
                b
            }),
            &[
                SEND, 146, 4, SEND, 146, 4, SEND, 146, 4, SEND, 146, 4, 28, 20, 100, 0, 0, 7, 24,
                1, SEND, 145, 4, 28, 20, 100, 0, 0, 7,
            ],
        ),
        ("too-large", setup(0, [0; 18], field(0, 1)), &[SEND, 150, 0, 25, 60, 0]),
        (
            "trusted-four-lanes",
            setup(2 | 12, [0; 18], [0; 18]),
            &[SEND, 200, 4, SEND_B, 200, 4, 27, 200, 3],
        ),
        (
            "idle-then-on",
            setup(16, [0; 18], [0; 18]),
            &[
                SEND, 60, 0, 30, 1, 0, 30, 255, 0, 30, 255, 0, SEND, 60, 4, 30, 255, 0, 18, 255,
                18, 255, 18, 255, SEND_B, 60, 4, 30, 10, 0,
            ],
        ),
        (
            "oblivious-at-a-crawl",
            setup(
                0,
                {
                    let mut a = field(6, 2);
                    a[2] = 2;
                    a
                },
                [0; 18],
            ),
            &[SEND, 200, 4, SEND, 20, 4, 28, 60, 0, 0, 250, 9],
        ),
    ];
    steps
        .into_iter()
        .map(|(name, setup, steps)| (name.to_owned(), [&setup, steps].concat()))
        .collect()
}

/// The bytes that stand for two configurations; all zeros is the plainest.
fn setup(flags: u8, a: [u8; 18], b: [u8; 18]) -> Vec<u8> {
    [&[flags][..], &a, &b].concat()
}
