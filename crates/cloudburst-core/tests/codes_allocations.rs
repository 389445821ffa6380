//! After a warm-up, nothing is allocated for a symbol or for a block.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod codes_common;

use bytes::Bytes;
use cloudburst_core::code::{Code, Decoder, Encoder};
use cloudburst_core::rng::SplitMix64;
use codes_common::{CODES, message, shape};

const SIZE: usize = 100;

/// Encodes and decodes a block of n symbols, of which so many percent of the first n are lost.
fn transfer(code: Code, n: usize, percent: u64, data: &Bytes, decoder: &mut Decoder, seed: u64) {
    let (mut losses, mut extra) = (SplitMix64::new(seed), SplitMix64::new(!seed));
    let (shape, data) = (shape(n, SIZE), data.slice(..n * SIZE));
    let encoder = Encoder::new(code, shape, data.clone()).unwrap();
    let (mut index_set, mut payload) = ([0; 16], [0; SIZE]);
    let index_set = &mut index_set[..code.index_set_len(n)];
    decoder.reset(code, shape);
    for id in (0..n as u32).filter(|_| losses.below(100) >= percent).chain(n as u32..) {
        encoder.encode(id, index_set, &mut payload);
        decoder.receive(id, index_set, &payload).unwrap();
        // Every symbol twice, and some beyond the Cauchy rows of RLF-256.
        decoder.receive(id, index_set, &payload).unwrap();
        if decoder.is_complete() {
            break;
        }
        let id = 256 + extra.below(1 << 20) as u32;
        if percent == 50 && extra.below(4) == 0 {
            encoder.encode(id, index_set, &mut payload);
            decoder.receive(id, index_set, &payload).unwrap();
        }
    }
    assert_eq!(decoder.block(), Some(&data[..]));
}

#[test]
fn a_decoder_that_is_reset_allocates_nothing() {
    let data = message(128 * SIZE);
    let mut decoder = Decoder::new(Code::Rlf256, shape(1, 1));
    let mut run = |percents: &[u64], seed| {
        // Not RaptorQ: the library behind it allocates.
        for code in CODES.split_whitespace().map(|name| name.parse().unwrap()) {
            for n in [128, 1, 2, 5, 14, 64, 127] {
                for &percent in percents {
                    transfer(code, n, percent, &data, &mut decoder, seed);
                }
            }
        }
    };
    run(&[100, 50], 1);
    let allocations = allocation_counter::measure(|| run(&[0, 1, 5, 20, 50, 100], 2));
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}
