//! After a warm-up, symbols and blocks allocate nothing.

use std::sync::LazyLock;

use crate::common::{CODES, message, shape};
use bytes::Bytes;
use cloudburst_core::code::{Code, Decoder, Encoder};
use cloudburst_core::rng::SplitMix64;

const SIZE: usize = 100;
static MESSAGE: LazyLock<Bytes> = LazyLock::new(|| message(128 * SIZE));

/// Encodes and decodes a block of n symbols. This percentage of the first n is lost, and repair
/// symbols have ESIs from `repairs` on.
fn transfer(code: Code, n: usize, percent: u64, repairs: u32, decoder: &mut Decoder, seed: u64) {
    let mut losses = SplitMix64::new(seed);
    let shape = shape(n, SIZE);
    let data = MESSAGE.slice(..n * SIZE);
    let encoder = Encoder::new(code, shape, data.clone()).unwrap();
    let mut index_set = [0; 16];
    let mut payload = [0; SIZE];
    let index_set = &mut index_set[..code.index_set_len(n)];
    decoder.reset(code, shape);
    let ids = (0..n as u32).filter(|_| losses.below(100) >= percent).chain(repairs..);
    for id in ids.take(10 * n + 100) {
        encoder.encode(id, index_set, &mut payload);
        decoder.receive(id, index_set, &payload).unwrap();
        // Every symbol twice.
        decoder.receive(id, index_set, &payload).unwrap();
        if decoder.is_complete() {
            break;
        }
    }
    assert_eq!(decoder.block(), Some(&data[..]));
}

#[test]
fn a_decoder_that_is_reset_allocates_nothing() {
    // Created before allocations are counted.
    LazyLock::force(&MESSAGE);
    let mut decoder = Decoder::new(Code::Rlf256, shape(1, 1));
    let mut run = |percents: &[u64], seed| {
        // Without RaptorQ, because the library behind it allocates.
        for code in CODES.split_whitespace().map(|name| name.parse().unwrap()) {
            for n in [128, 1, 2, 5, 14, 64, 127] {
                for &percent in percents {
                    // Of RLF-256: Cauchy rows, both kinds, and random ones.
                    for repairs in [n as u32, 250, 1_000] {
                        transfer(code, n, percent, repairs, &mut decoder, seed);
                    }
                }
            }
        }
    };
    // The largest blocks and most losses first, because they need the most memory.
    run(&[100], 1);
    let allocations = allocation_counter::measure(|| run(&[0, 1, 5, 20, 50, 100], 2));
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}

#[test]
fn a_decoder_holds_no_more_than_it_says() {
    for code in CODES.split_whitespace().map(|name| name.parse().unwrap()) {
        for (n, size) in [(1, 1), (2, 100), (64, 1), (128, 200)] {
            let shape = shape(n, size);
            let encoder = Encoder::new(code, shape, message(n * size)).unwrap();
            let mut index_set = [0; 16];
            let mut payload = vec![0; size];
            let index_set = &mut index_set[..code.index_set_len(n)];
            let mut receive = |decoder: &mut Decoder| {
                // ESIs that permit no short cut.
                for id in (n as u32..).step_by(7).take(10 * n + 100) {
                    encoder.encode(id, index_set, &mut payload);
                    decoder.receive(id, index_set, &payload).unwrap();
                }
                assert!(decoder.is_complete());
            };
            // The memory for solving belongs to the thread.
            receive(&mut Decoder::new(code, shape));
            let mut decoder = Decoder::new(code, shape);
            let held = allocation_counter::measure(|| receive(&mut decoder)).bytes_max as usize;
            let said = Decoder::memory(code, shape);
            assert!(held + size_of::<Decoder>() <= said, "{code}, {shape:?}: {held} of {said}");
            assert!(held + 1_000 + 200 * n > said, "{code}, {shape:?}: {held} of {said}");
        }
    }
}
