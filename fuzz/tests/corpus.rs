//! Replays the corpora and a fixed set of random inputs, so that each test run fuzzes a little.

use cloudburst_core::rng::SplitMix64;
use cloudburst_fuzz::{decoder, pair};
use std::path::{Path, PathBuf};

/// The number of random inputs of each target; of `pair`, half.
const RANDOM: u64 = 2_000;

#[test]
fn the_wire_corpus_passes() {
    replay("wire", wire);
}

/// The names of some hand-made packets say that they are refused. Others are only if they were made for another
/// version: run `make-corpus`.
#[test]
fn hand_made_packets_parse_unless_they_are_made_to_be_refused() {
    const REFUSED: [&str; 7] = [
        "-forged",
        "-of-another-version",
        "-of-none",
        "-no-room",
        "-too-long",
        "empty",
        "no-such-",
    ];
    for file in files("wire") {
        let name = file.file_name().unwrap().to_str().unwrap();
        let is_found = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_refused = REFUSED.iter().any(|part| name.contains(part));
        let parses = cloudburst_fuzz::wire(&read(&file));
        assert!(
            is_found || parses != is_refused,
            "{name} {}",
            if parses { "parses" } else { "does not parse" }
        );
    }
}

#[test]
fn the_decoder_corpus_passes() {
    replay("decoder", decoder);
}

#[test]
fn the_pair_corpus_passes() {
    replay("pair", pair);
}

#[test]
fn random_packets_pass() {
    for seed in 0..RANDOM {
        let mut data = random(seed, 200);
        // Of our version and of a known kind, because little of other packets is parsed.
        if let Some(first) = data.first_mut().filter(|_| seed % 8 != 0) {
            *first = [0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x0f][usize::from(*first) % 7];
            // Most packets of the handshake have one length.
            match *first {
                0x31 | 0x32 => data.resize(64, 0),
                0x33 => data.resize(138, 0),
                0x34 => data.resize(104, 0),
                _ => {}
            }
        }
        run("wire", &format!("seed {seed}"), &data, wire);
    }
}

#[test]
fn mutants_of_the_wire_corpus_pass() {
    let files = files("wire");
    for seed in 0..RANDOM {
        let mut rng = SplitMix64::new(seed);
        let mut data = read(&files[rng.below(files.len() as u64) as usize]);
        for _ in 0..=rng.below(3) {
            let at = rng.below(data.len() as u64 + 1) as usize;
            match rng.below(4) {
                0 => data.truncate(at),
                1 => data.insert(at, rng.next_u64() as u8),
                _ => data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.below(8)),
            }
        }
        run("wire", &format!("mutant {seed}"), &data, wire);
    }
}

#[test]
fn random_symbols_pass() {
    for seed in 0..RANDOM {
        run("decoder", &format!("seed {seed}"), &random(seed, 120), decoder);
    }
}

#[test]
fn random_schedules_pass() {
    // Each takes as long as several of the others.
    for seed in 0..RANDOM / 2 {
        run("pair", &format!("seed {seed}"), &random(seed, 400), pair);
    }
}

fn wire(data: &[u8]) {
    cloudburst_fuzz::wire(data);
}

fn random(seed: u64, max_len: u64) -> Vec<u8> {
    let mut rng = SplitMix64::new(seed);
    (0..rng.below(max_len)).map(|_| rng.next_u64() as u8).collect()
}

fn replay(target: &'static str, body: fn(&[u8])) {
    let files = files(target);
    assert!(files.len() >= 10, "{} files in the corpus of `{target}`", files.len());
    for file in files {
        run(target, &file.display().to_string(), &read(&file), body);
    }
}

fn files(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| panic!("{file:?}: {error}"))
}

/// Runs one input. If it fails, reports which one it was.
fn run(target: &'static str, name: &str, data: &[u8], body: fn(&[u8])) {
    struct Blame<'a>(&'static str, &'a str);
    impl Drop for Blame<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("`{}` does not hold for {}", self.0, self.1);
            }
        }
    }
    let _blame = Blame(target, name);
    body(data);
}
