//! The bytes of symbols.

use crate::common::{CODES, message, shape, symbol};
use crate::vectors::{Section, Vectors, hex};
use cloudburst_core::code::{Code, Encoder};
use cloudburst_core::rng::SplitMix64;

const SMALL_BLOCKS: [&str; 8] = [
    "lt:d=1",
    "lt:d=2",
    "lt:d=5",
    "lt:uniform=9",
    "lt:ideal",
    "lt:robust",
    "lt-systematic:dense",
    "rlf256",
];
const INDEX_SETS: [&str; 7] =
    ["lt:d=4", "lt:d=5", "lt:uniform=9", "lt:ideal", "lt:robust", "lt:dense", "lt-systematic:d=5"];

fn vectors() -> Vectors {
    Vectors::read("codes.txt")
}

fn code(name: &str) -> Code {
    name.parse().unwrap()
}

/// The ESIs of a section, and what it says of each.
fn by_id(section: &Section) -> impl Iterator<Item = (u32, &str)> {
    section.rows().map(|(id, value)| (id.parse().unwrap(), value))
}

/// Compares a section of symbols, and returns their ESIs.
fn check_small_blocks(vectors: &Vectors, name: &str) -> Vec<u32> {
    let encoder = Encoder::new(code(name), shape(4, 4), message(14)).unwrap();
    let section = vectors.section(&format!("symbols {name} n=4 T=4 length=14"));
    let check = |(id, expected)| {
        let (index_set, payload) = symbol(&encoder, id);
        let got = format!("{} {}", hex(&index_set), hex(&payload));
        assert_eq!(got.trim_start(), expected, "{name}: {id}");
        id
    };
    by_id(section).map(check).collect()
}

#[test]
fn symbols_of_small_blocks() {
    let vectors = vectors();
    for name in SMALL_BLOCKS {
        let ids = check_small_blocks(&vectors, name);
        assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7, 255, 256, 257, u32::MAX]);
    }
}

/// The bytes of the symbols of a block whose source symbol i has 1 at byte i and 0 elsewhere.
fn of_identity(name: &str, id: u32) -> (Vec<u8>, Vec<u8>) {
    let identity = (0..64 * 64).map(|i| u8::from(i % 65 == 0)).collect();
    symbol(&Encoder::new(code(name), shape(64, 64), identity).unwrap(), id)
}

#[test]
fn index_sets_of_larger_blocks() {
    let vectors = vectors();
    for name in INDEX_SETS {
        let section = vectors.section(&format!("index_sets {name} n=64"));
        for (id, expected) in by_id(section) {
            assert_eq!(hex(&of_identity(name, id).0), expected, "{name}: {id}");
        }
        let ids: Vec<u32> = by_id(section).map(|(id, _)| id).collect();
        assert_eq!(ids, [0, 63, 64, 65, 255, 256, u32::MAX]);
    }
}

#[test]
fn coefficients_of_larger_blocks() {
    let vectors = vectors();
    let section = vectors.section("coefficients rlf256 n=64");
    for (id, expected) in by_id(section) {
        let (index_set, payload) = of_identity("rlf256", id);
        assert_eq!((hex(&payload).as_str(), index_set.len()), (expected, 0), "{id}");
    }
    let ids: Vec<u32> = by_id(section).map(|(id, _)| id).collect();
    assert_eq!(ids, [0, 63, 64, 65, 255, 256, u32::MAX]);
}

/// The seeds of a section, each with the first output of its generator, by ESI.
fn seeds(section: &Section) -> impl Iterator<Item = (u32, u64, u64)> {
    by_id(section).map(|(id, both)| {
        let (seed, output) = both.split_once(' ').unwrap();
        let [seed, output] = [seed, output].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        assert_eq!(SplitMix64::new(seed).next_u64(), output);
        (id, seed, output)
    })
}

#[test]
fn generators_are_those_that_draw_index_sets_and_coefficients() {
    let vectors = vectors();
    // A dense set of 64 indices is the first output.
    for (id, _, output) in seeds(vectors.section("generator CBLT")) {
        assert_eq!(of_identity("lt:dense", id).0, output.to_be_bytes(), "{id}");
    }
    let random = seeds(vectors.section("generator CBRF")).filter(|(id, ..)| *id >= 256);
    let checked = random.map(|(id, seed, _)| {
        let mut generator = SplitMix64::new(seed);
        let coefficients: Vec<u8> = (0..64).map(|_| 1 + generator.below(255) as u8).collect();
        assert_eq!(of_identity("rlf256", id).1, coefficients, "{id}");
    });
    assert_eq!(checked.count(), 2);
}

#[test]
fn degrees_follow_from_the_soliton_tables() {
    let vectors = vectors();
    let mut compared = 0;
    for (name, section) in vectors.sections("soliton ") {
        let (distribution, n) = name.split_once(" n=").unwrap();
        let n: usize = n.parse().unwrap();
        let sums = section.rows().map(|(_, sum)| u64::from_str_radix(sum, 16).unwrap());
        let table: Vec<u64> = sums.collect();
        assert_eq!(table.len(), n);
        let encoder =
            Encoder::new(code(&format!("lt:{distribution}")), shape(n, 1), message(n)).unwrap();
        for id in 0..300 {
            let seed = SplitMix64::new(0x4342_4c54 << 32 | u64::from(id)).next_u64();
            let x = SplitMix64::new(seed).below(table[n - 1]);
            let degree = 1 + table.iter().position(|&sum| x < sum).unwrap();
            let (index_set, _) = symbol(&encoder, id);
            let indices: u32 = index_set.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(indices as usize, degree, "{name}: {id}");
            compared += 1;
        }
    }
    assert_eq!(compared, 4 * 300);
}

fn check_hashes(vectors: &Vectors, name: &str) {
    let section = vectors.section(&format!("hashes {name}"));
    let mut rows = section.rows();
    for (n, size) in [(1, 1), (4, 4), (14, 9), (64, 1408), (128, 33)] {
        let encoder =
            Encoder::new(code(name), shape(n, size), message(n * size - size / 2)).unwrap();
        let mut hasher = blake3::Hasher::new();
        for id in 0..300 {
            let (index_set, payload) = symbol(&encoder, id);
            hasher.update(&index_set).update(&payload);
        }
        let key = format!("{n}x{size}");
        let hash = hasher.finalize().to_hex();
        assert_eq!(rows.next(), Some((key.as_str(), hash.as_str())), "{name}");
    }
    assert_eq!(rows.next(), None);
}

#[test]
fn hashes_of_the_first_300_symbols() {
    let vectors = vectors();
    for name in CODES.split_whitespace() {
        check_hashes(&vectors, name);
    }
}

#[cfg(feature = "raptorq")]
#[test]
fn symbols_of_raptorq() {
    let vectors = vectors();
    // These were also computed from the text of RFC 6330, without the library.
    let ids = check_small_blocks(&vectors, "raptorq");
    let beyond = 1 << 24;
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7, 255, 256, beyond - 1, beyond, u32::MAX]);
    check_hashes(&vectors, "raptorq");
}
