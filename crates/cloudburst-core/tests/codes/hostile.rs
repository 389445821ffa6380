//! Invalid input from a peer, by mistake or on purpose: errors state what is wrong, and nothing
//! panics.

use crate::common::{codes, message, shape, symbol};
use cloudburst_core::code::{Code, Decoder, Degree, Encoder, Reception, SymbolError};
use proptest::prelude::*;

const LT: Code = Code::Lt(Degree::Fixed(5));

#[test]
fn malformed_symbols_are_refused_with_numbers() {
    let mut lt = Decoder::new(LT, shape(12, 4));
    let cases = [
        (&[0x80, 0][..], 3, SymbolError::PayloadLength { expected: 4, got: 3 }),
        (&[0x80, 0], 5, SymbolError::PayloadLength { expected: 4, got: 5 }),
        (&[0x80], 4, SymbolError::IndexSetLength { expected: 2, got: 1 }),
        (&[0x80; 100], 4, SymbolError::IndexSetLength { expected: 2, got: 100 }),
        (&[], 4, SymbolError::IndexSetLength { expected: 2, got: 0 }),
        (&[0x80, 0x0c], 4, SymbolError::IndexOutOfRange { source_symbols: 12, got: 12 }),
        (&[0, 0x01], 4, SymbolError::IndexOutOfRange { source_symbols: 12, got: 15 }),
        (&[0, 0], 4, SymbolError::EmptyIndexSet { source_symbols: 12 }),
    ];
    for (index_set, payload_len, error) in cases {
        assert_eq!(lt.receive(0, index_set, &vec![0; payload_len]), Err(error));
    }
    assert_eq!(lt.work().received, 0);

    let mut rlf = Decoder::new(Code::Rlf256, shape(12, 4));
    let error = SymbolError::IndexSetLength { expected: 0, got: 2 };
    assert_eq!(rlf.receive(0, &[0x80, 0], &[0; 4]), Err(error));
    assert_eq!(error.to_string(), "the index set has 2 bytes: it must have 0");
}

#[test]
fn duplicates_and_late_symbols_are_redundant() {
    for code in codes() {
        let shape = shape(14, 6);
        let encoder = Encoder::new(code, shape, message(80)).unwrap();
        let mut decoder = Decoder::new(code, shape);
        for id in (0..).map(|k| k * 3) {
            let (index_set, payload) = symbol(&encoder, id);
            decoder.receive(id, &index_set, &payload).unwrap();
            let again = decoder.receive(id, &index_set, &payload);
            assert_eq!(again, Ok(Reception::Redundant), "{code}");
            if decoder.is_complete() {
                break;
            }
        }
        let block = decoder.block().unwrap().to_vec();
        for id in 0..600 {
            let (index_set, payload) = symbol(&encoder, id);
            assert_eq!(decoder.receive(id, &index_set, &payload), Ok(Reception::Redundant));
        }
        assert_eq!(decoder.work().innovative, 14);
        assert_eq!(decoder.block(), Some(&block[..]));
    }
}

#[test]
fn a_stream_that_never_reaches_full_rank_stays_incomplete() {
    let shape = shape(8, 4);
    let mut decoder = Decoder::new(LT, shape);
    for id in 0..10_000 {
        // Sets of even size span no more than seven dimensions.
        let pair = 0xc0_u8.rotate_right(id % 8);
        assert_ne!(decoder.receive(id, &[pair], &[1; 4]), Ok(Reception::Complete));
    }
    assert_eq!((decoder.needed(), decoder.block()), (1, None));
    assert_eq!(decoder.work().received, 10_000);
}

#[test]
fn ids_at_the_edges_are_like_any_other() {
    let edges = [0, 127, 128, 255, 256, 257, i32::MAX as u32, u32::MAX - 1, u32::MAX];
    for code in codes() {
        for n in [1, 127, 128] {
            let encoder = Encoder::new(code, shape(n, 2), message(2 * n)).unwrap();
            let mut decoder = Decoder::new(code, shape(n, 2));
            for id in edges {
                let (index_set, payload) = symbol(&encoder, id);
                assert!(decoder.receive(id, &index_set, &payload).is_ok(), "{code}, {n}, {id}");
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    /// Anything at all.
    Raw {
        id: u32,
        index_set: Vec<u8>,
        payload: Vec<u8>,
    },
    /// A valid symbol of this block.
    Genuine {
        id: u32,
    },
    /// A well-formed header with a payload that does not match it.
    Lie {
        id: u32,
        header_of: u32,
        payload: [u8; 3],
    },
    Reset {
        code: usize,
        n: usize,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let id = || prop_oneof![0_u32..300, any::<u32>()];
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    prop_oneof![
        1 => (id(), bytes(18), bytes(6))
            .prop_map(|(id, index_set, payload)| Operation::Raw { id, index_set, payload }),
        6 => id().prop_map(|id| Operation::Genuine { id }),
        6 => (id(), id(), any::<[u8; 3]>())
            .prop_map(|(id, header_of, payload)| Operation::Lie { id, header_of, payload }),
        1 => (any::<usize>(), 1_usize..=128).prop_map(|(code, n)| Operation::Reset { code, n }),
    ]
}

proptest! {
    #[test]
    fn nothing_that_is_received_panics(operations in prop::collection::vec(operation(), 1..400)) {
        let codes: Vec<Code> = codes().collect();
        let mut encoder = Encoder::new(LT, shape(9, 3), message(27)).unwrap();
        let mut decoder = Decoder::new(LT, shape(9, 3));
        for operation in operations {
            let before = decoder.needed();
            let _ = match operation {
                Operation::Raw { id, index_set, payload } => {
                    decoder.receive(id, &index_set, &payload)
                }
                Operation::Genuine { id } => {
                    let (index_set, payload) = symbol(&encoder, id);
                    decoder.receive(id, &index_set, &payload)
                }
                Operation::Lie { id, header_of, payload } => {
                    decoder.receive(id, &symbol(&encoder, header_of).0, &payload)
                }
                Operation::Reset { code, n } => {
                    let code = codes[code % codes.len()];
                    encoder = Encoder::new(code, shape(n, 3), message(n)).unwrap();
                    decoder.reset(code, shape(n, 3));
                    continue;
                }
            };
            prop_assert!(decoder.needed() <= before && before - decoder.needed() <= 1);
            prop_assert_eq!(decoder.block().is_some(), decoder.needed() == 0);
        }
    }
}
