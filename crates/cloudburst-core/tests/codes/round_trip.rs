//! Encoded blocks are decoded, for every code, block shape, message length and pattern of loss.

use std::collections::BTreeSet;

use crate::common::{codes, message, shape, symbol};
use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Decoder, Encoder, Kernel, Reception, ShapeError};
use cloudburst_core::rng::SplitMix64;

const SOURCE_SYMBOLS: [usize; 11] = [1, 2, 3, 4, 5, 7, 14, 35, 64, 127, 128];

/// The ESIs that arrive, in order.
type Pattern = fn(u32) -> Box<dyn Iterator<Item = u32>>;

const PATTERNS: [(&str, Pattern); 6] = [
    ("all arrive", |_| Box::new(0..)),
    ("one in five is lost", |_| Box::new((0..).filter(|id| id % 5 != 2))),
    ("the first n are lost", |n| Box::new(n..)),
    ("all but the first n - 1 are lost for long", |n| Box::new((0..n - 1).chain(1000..))),
    ("backwards", |n| Box::new((0..2 * n).rev().chain(2 * n..))),
    ("down from the highest id", |_| Box::new((0..=u32::MAX).rev())),
];

/// Feeds symbols until the block is complete, and checks the decoder's result for each.
fn decode(encoder: &Encoder, decoder: &mut Decoder, ids: impl Iterator<Item = u32>) -> usize {
    let n = encoder.shape().source_symbols();
    for (received, id) in (1..).zip(ids.take(100 * n + 100)) {
        let needed = decoder.needed();
        let (index_set, payload) = symbol(encoder, id);
        let reception = decoder.receive(id, &index_set, &payload).unwrap();
        let expected = match decoder.needed() {
            0 => Reception::Complete,
            now if now == needed => Reception::Redundant,
            _ => Reception::Innovative,
        };
        assert_eq!(reception, expected);
        assert_eq!(decoder.is_complete(), decoder.block().is_some());
        if decoder.is_complete() {
            return received;
        }
    }
    panic!("{} does not decode n = {n}", encoder.code());
}

fn lengths(shape: BlockShape) -> BTreeSet<usize> {
    let size = shape.symbol_size();
    let all = [0, 1, size, size + 1, shape.len() - 1, shape.len()];
    all.into_iter().filter(|&len| len <= shape.len()).collect()
}

#[test]
fn every_message_comes_back() {
    for code in codes() {
        let mut decoder = Decoder::new(code, shape(1, 1));
        for n in SOURCE_SYMBOLS {
            for size in [1, 19] {
                let shape = shape(n, size);
                for len in lengths(shape) {
                    let data = message(len);
                    let encoder = Encoder::new(code, shape, data.clone()).unwrap();
                    for (pattern, ids) in PATTERNS {
                        decoder.reset(code, shape);
                        decode(&encoder, &mut decoder, ids(n as u32));
                        let block = decoder.block().unwrap();
                        assert_eq!(&block[..len], &data[..], "{code}, n = {n}, {pattern}");
                        assert!(block[len..].iter().all(|&byte| byte == 0));
                    }
                }
            }
        }
    }
}

#[test]
fn the_largest_symbols_come_back() {
    for code in codes().filter(|code| code.expected_symbols(128) < 160) {
        let shape = shape(128, 65_535);
        let data = message(shape.len());
        let encoder = Encoder::new(code, shape, data.clone()).unwrap();
        let mut decoder = Decoder::new(code, shape);
        decode(&encoder, &mut decoder, (0..).filter(|id| id % 40 != 1));
        assert_eq!(decoder.block().unwrap(), data);
    }
}

#[cfg(feature = "raptorq")]
#[test]
fn raptorq_decodes_blocks_of_every_size() {
    for n in 1..=128 {
        let shape = shape(n, 3);
        let data = message(shape.len() - 1);
        let encoder = Encoder::new(Code::RaptorQ, shape, data.clone()).unwrap();
        for (pattern, ids) in PATTERNS {
            let mut decoder = Decoder::new(Code::RaptorQ, shape);
            let needed = decode(&encoder, &mut decoder, ids(n as u32));
            assert!(needed <= n + 2, "n = {n}, {pattern}: {needed}");
            assert_eq!(decoder.block().unwrap()[..data.len()], data, "n = {n}, {pattern}");
        }
    }
}

#[test]
fn systematic_codes_carry_the_message_first_and_decode_it_for_nothing() {
    for code in codes().filter(|code| code.is_systematic()) {
        for n in SOURCE_SYMBOLS {
            let shape = shape(n, 8);
            let data = message(shape.len());
            let encoder = Encoder::new(code, shape, data.clone()).unwrap();
            let mut decoder = Decoder::new(code, shape);
            let sent: Vec<u8> = (0..n as u32).flat_map(|id| symbol(&encoder, id).1).collect();
            assert_eq!(sent, data);
            assert_eq!(decode(&encoder, &mut decoder, 0..), n);
            let work = decoder.work();
            assert_eq!((work.xors, work.multiply_adds), (0, 0));
        }
    }
}

#[test]
fn a_reset_decoder_is_as_good_as_new() {
    let all: Vec<Code> = codes().collect();
    let mut used = Decoder::new(all[0], shape(1, 1));
    for (round, &code) in all.iter().chain(all.iter().rev()).enumerate() {
        let shape = shape(1 + round * 17 % 128, 1 + round * 5 % 40);
        used.reset(code, shape);
        let mut new = Decoder::new(code, shape);
        assert_eq!((used.code(), used.shape(), used.needed()), (code, shape, new.needed()));
        assert_eq!(used.block(), None);
        let encoder = Encoder::new(code, shape, message(shape.len())).unwrap();
        // Every third block is abandoned halfway.
        let limit = if round % 3 == 0 { shape.source_symbols() / 2 } else { usize::MAX };
        for id in (0..).filter(|id| id % 4 != 0).take(limit) {
            let (index_set, payload) = symbol(&encoder, id);
            let reception = used.receive(id, &index_set, &payload);
            assert_eq!(reception, new.receive(id, &index_set, &payload));
            assert_eq!((used.work(), used.block()), (new.work(), new.block()));
            if used.is_complete() {
                break;
            }
        }
    }
}

#[test]
fn data_longer_than_the_block_are_refused() {
    let error =
        Encoder::new(Code::Rlf256, shape(2, 3), Bytes::from_static(b"1234567")).unwrap_err();
    assert_eq!(error, ShapeError::DataTooLong { got: 7, block: 6 });
    assert_eq!(error.to_string(), "7 bytes of data in a block that holds 6 bytes");
}

#[test]
#[should_panic(expected = "length of the buffer for the payload")]
fn a_payload_buffer_of_another_size_is_a_bug_of_the_caller() {
    let encoder = Encoder::new(Code::Rlf256, shape(2, 3), Bytes::new()).unwrap();
    encoder.encode(0, &mut [], &mut [0; 4]);
}

#[test]
fn every_kernel_makes_the_same_symbols_and_decodes_them() {
    for code in codes() {
        for (n, size) in [(1, 70), (5, 1), (14, 300), (128, 200)] {
            let shape = shape(n, size);
            let data = message(n * size - size / 2);
            let expected = Encoder::new(code, shape, data.clone()).unwrap();
            for kernel in Kernel::available() {
                let encoder =
                    Encoder::with_trailer(kernel, code, shape, data.clone(), &[]).unwrap();
                for id in [0, 1, n as u32, n as u32 + 1, 300] {
                    assert_eq!(symbol(&encoder, id), symbol(&expected, id), "{code}, {kernel}");
                }
                let mut decoder = Decoder::with_kernel(kernel, code, shape);
                decode(&encoder, &mut decoder, (0..).filter(|id| id % 3 != 0));
                assert_eq!(decoder.block().map(|block| &block[..data.len()]), Some(&data[..]));
            }
        }
    }
}

/// ESIs in random order, some of them repeated: of source symbols, of the next repair symbols, and
/// of any.
fn mixed(rng: &mut SplitMix64, n: u32) -> Vec<u32> {
    let lost = rng.below(101);
    let mut ids: Vec<u32> = (0..n).filter(|_| rng.below(100) >= lost).collect();
    let near = rng.below(2 * u64::from(n)) as u32;
    ids.extend((0..near).map(|_| n + rng.below(u64::from(2 * n)) as u32));
    ids.extend((0..3 * n).map(|_| rng.next_u64() as u32).filter(|id| id % 3 == 0));
    // The degree of reordering: none, a little, or complete.
    let reach = [1, 8, ids.len() as u64][rng.below(3) as usize];
    for i in 0..ids.len() {
        let other = i + rng.below(reach.min((ids.len() - i) as u64)) as usize;
        ids.swap(i, other);
    }
    ids
}

#[test]
fn one_decoder_decodes_any_mix_of_symbols_block_after_block() {
    let codes: Vec<Code> = codes().filter(|code| code.expected_symbols(128) < 140).collect();
    let mut rng = SplitMix64::new(4);
    let mut decoder = Decoder::new(Code::Rlf256, shape(1, 1));
    for _ in 0..1_000 {
        let code = codes[rng.below(codes.len() as u64) as usize];
        let n = [2, 9, 128][rng.below(3) as usize];
        let n = 1 + rng.below(n) as usize;
        let shape = shape(n, [1, 64, 70, 300][rng.below(4) as usize]);
        let data = message(shape.len());
        let encoder = Encoder::new(code, shape, data.clone()).unwrap();
        // Some blocks are abandoned on the way.
        let give_up = rng.below(6) == 0;
        let ids = mixed(&mut rng, n as u32);
        let taken = if give_up { ids.len() / 2 } else { ids.len() };
        decoder.reset(code, shape);
        for &id in &ids[..taken] {
            let (index_set, payload) = symbol(&encoder, id);
            decoder.receive(id, &index_set, &payload).unwrap();
        }
        if !give_up && !decoder.is_complete() {
            decode(&encoder, &mut decoder, 1 << 20..);
        }
        if let Some(block) = decoder.block() {
            assert_eq!(block, data, "{code}, {shape:?}");
        }
    }
}
