//! Decoding completes exactly when the symbols received determine the block, compared with the rank
//! of their coefficients, which is computed naively.

use crate::common::{message, shape, symbol};
use cloudburst_core::code::{Code, Decoder, Degree, Encoder, Reception};
use cloudburst_core::rng::SplitMix64;
use proptest::prelude::*;

/// Multiplication in GF(2^8) with the polynomial 0x11d, bit by bit.
fn mul(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = a << 1 ^ if a & 0x80 != 0 { 0x1d } else { 0 };
        b >>= 1;
    }
    product
}

/// Rows reduced against each other. With rows of zeros and ones, this is GF(2) as well.
#[derive(Default)]
struct Oracle {
    /// (column of the leading 1, row)
    rows: Vec<(usize, Vec<u8>)>,
}

impl Oracle {
    /// Adds a row. Returns whether it raised the rank.
    fn insert(&mut self, mut row: Vec<u8>) -> bool {
        for (column, known) in &self.rows {
            let factor = row[*column];
            row.iter_mut().zip(known).for_each(|(a, &b)| *a ^= mul(factor, b));
        }
        let Some(column) = row.iter().position(|&c| c != 0) else { return false };
        let inverse = (1..=255).find(|&x| mul(x, row[column]) == 1).unwrap();
        row.iter_mut().for_each(|c| *c = mul(*c, inverse));
        self.rows.push((column, row));
        true
    }
}

/// The coefficients of a symbol: its payload if source symbol i is the i-th unit vector.
fn coefficients(code: Code, n: usize, id: u32) -> Vec<u8> {
    let mut identity = vec![0; n * n];
    (0..n).for_each(|i| identity[i * n + i] = 1);
    symbol(&Encoder::new(code, shape(n, n), identity.into()).unwrap(), id).1
}

/// Feeds the symbols and checks each answer against the oracle.
fn check(code: Code, n: usize, symbols: impl Iterator<Item = (u32, Vec<u8>, Vec<u8>, Vec<u8>)>) {
    let size = 5;
    let mut oracle = Oracle::default();
    let mut decoder = Decoder::new(code, shape(n, size));
    for (id, index_set, payload, row) in symbols {
        let was_complete = oracle.rows.len() == n;
        let innovative = oracle.insert(row);
        let expected = match (was_complete, innovative) {
            (true, _) | (_, false) => Reception::Redundant,
            _ if oracle.rows.len() == n => Reception::Complete,
            _ => Reception::Innovative,
        };
        assert_eq!(decoder.receive(id, &index_set, &payload), Ok(expected), "{code}, n = {n}");
        assert_eq!(decoder.needed(), n - oracle.rows.len());
    }
    if oracle.rows.len() == n {
        assert_eq!(decoder.block().unwrap(), message(n * size));
    }
}

/// A payload and the row of its coefficients, from any index set.
fn xor_symbol(n: usize, set: &[usize]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut index_set = vec![0; n.div_ceil(8)];
    let mut payload = vec![0; 5];
    let mut row = vec![0; n];
    for &i in set {
        index_set[i / 8] |= 0x80 >> (i % 8);
        row[i] = 1;
        let source = &message(n * 5)[i * 5..][..5];
        payload.iter_mut().zip(source).for_each(|(a, b)| *a ^= b);
    }
    (index_set, payload, row)
}

proptest! {
    #[test]
    fn lt_completes_at_full_rank_whatever_index_sets_arrive(
        n in prop_oneof![1_usize..=12, 1_usize..=128],
        seed: u64,
        density in 1_u64..=32,
    ) {
        let mut rng = SplitMix64::new(seed);
        let symbols = (0..n as u32 + 40).map(|id| {
            let mut set: Vec<usize> = (0..n).filter(|_| rng.below(64) < density).collect();
            if set.is_empty() {
                set.push(rng.below(n as u64) as usize);
            }
            let (index_set, payload, row) = xor_symbol(n, &set);
            (id, index_set, payload, row)
        });
        check(Code::Lt(Degree::Dense), n, symbols);
    }

    #[test]
    fn rlf256_completes_at_full_rank_whatever_ids_arrive(
        n in prop_oneof![1_usize..=6, 1_usize..=128],
        kinds in prop::collection::vec((0_u8..4, any::<u32>()), 1..200),
    ) {
        let encoder = Encoder::new(Code::Rlf256, shape(n, 5), message(n * 5)).unwrap();
        let symbols = kinds.into_iter().map(|(kind, any)| {
            let id = match kind {
                0 => any % n as u32,
                1 => any % 256,
                2 => 256 + any % 512,
                _ => any,
            };
            let (index_set, payload) = symbol(&encoder, id);
            (id, index_set, payload, coefficients(Code::Rlf256, n, id))
        });
        check(Code::Rlf256, n, symbols);
    }

    #[test]
    fn any_n_of_the_first_256_symbols_of_rlf256_decode(n in 1_usize..=128, seed: u64) {
        let mut ids: Vec<u32> = (0..256).collect();
        let mut rng = SplitMix64::new(seed);
        for i in 0..n {
            ids.swap(i, i + rng.below(256 - i as u64) as usize);
        }
        decode_exactly(n, &ids[..n]);
    }
}

#[cfg(feature = "raptorq")]
proptest! {
    #[test]
    fn raptorq_completes_at_full_rank_whatever_ids_arrive(
        n in prop_oneof![1_usize..=6, 1_usize..=128],
        kinds in prop::collection::vec((0_u8..4, any::<u32>()), 1..200),
    ) {
        let encoder = Encoder::new(Code::RaptorQ, shape(n, 5), message(n * 5)).unwrap();
        let symbols = kinds.into_iter().map(|(kind, any)| {
            let id = match kind {
                0 => any % n as u32,
                1 => any % 256,
                // The same again, from ESI 2^24 on.
                2 => (1 << 24) - 128 + any % 256,
                _ => any,
            };
            let (index_set, payload) = symbol(&encoder, id);
            (id, index_set, payload, coefficients(Code::RaptorQ, n, id))
        });
        check(Code::RaptorQ, n, symbols);
    }
}

#[cfg(feature = "raptorq")]
#[test]
fn symbols_of_raptorq_repeat_after_24_bits() {
    let n = 9;
    let encoder = Encoder::new(Code::RaptorQ, shape(n, 3), message(27)).unwrap();
    let again = (1 << 24) + 5;
    assert_eq!(symbol(&encoder, n as u32 + 5), symbol(&encoder, again));
    let mut decoder = Decoder::new(Code::RaptorQ, shape(n, 3));
    let payload = symbol(&encoder, again).1;
    assert_eq!(decoder.receive(n as u32 + 5, &[], &payload), Ok(Reception::Innovative));
    assert_eq!(decoder.receive(again, &[], &payload), Ok(Reception::Redundant));
}

/// Decodes symbols with these ESIs, of which only the last completes the block.
fn decode_exactly(n: usize, ids: &[u32]) {
    let encoder = Encoder::new(Code::Rlf256, shape(n, 3), message(n * 3)).unwrap();
    let mut decoder = Decoder::new(Code::Rlf256, shape(n, 3));
    for (left, &id) in (0..ids.len()).rev().zip(ids) {
        let expected = if left == 0 { Reception::Complete } else { Reception::Innovative };
        assert_eq!(decoder.receive(id, &[], &symbol(&encoder, id).1), Ok(expected));
    }
    assert_eq!(decoder.block().unwrap(), message(n * 3));
}

#[test]
fn rlf256_decodes_from_cauchy_repairs_alone() {
    for n in 1..=128 {
        let first: Vec<u32> = (n as u32..2 * n as u32).collect();
        let last: Vec<u32> = (256 - n as u32..256).collect();
        decode_exactly(n, &first);
        decode_exactly(n, &last);
    }
}

#[test]
fn every_single_loss_of_rlf256_is_repaired_by_every_cauchy_row() {
    for n in [2, 4, 14] {
        for lost in 0..n as u32 {
            for repair in n as u32..256 {
                let sources = (0..n as u32).filter(|&id| id != lost);
                decode_exactly(n, &sources.chain([repair]).collect::<Vec<_>>());
            }
        }
    }
}

/// The first two ESIs from 256 on whose coefficients have the same ratio in two columns.
fn proportional(n: usize, a: usize, b: usize) -> [u32; 2] {
    let mut seen = std::collections::HashMap::new();
    for id in 256.. {
        let row = coefficients(Code::Rlf256, n, id);
        let ratio = (1..=255).find(|&x| mul(x, row[a]) == row[b]).unwrap();
        if let Some(other) = seen.insert(ratio, id) {
            return [other, id];
        }
    }
    unreachable!("255 ratios")
}

#[test]
fn random_rows_that_are_dependent_are_noticed() {
    let [first, second] = proportional(2, 0, 1);
    let encoder = Encoder::new(Code::Rlf256, shape(2, 3), message(6)).unwrap();
    let mut decoder = Decoder::new(Code::Rlf256, shape(2, 3));
    let mut receive = |id| decoder.receive(id, &[], &symbol(&encoder, id).1).unwrap();
    assert_eq!(receive(first), Reception::Innovative);
    assert_eq!(receive(second), Reception::Redundant);
    assert_eq!(receive(1), Reception::Complete);
    assert_eq!(decoder.block().unwrap(), message(6));
}

#[test]
fn a_source_symbol_that_repairs_already_tell_is_redundant() {
    // Two rows that agree in columns 0 and 2 differ only in source symbol 1.
    let [first, second] = proportional(3, 0, 2);
    let encoder = Encoder::new(Code::Rlf256, shape(3, 3), message(9)).unwrap();
    let mut decoder = Decoder::new(Code::Rlf256, shape(3, 3));
    let mut receive = |id| decoder.receive(id, &[], &symbol(&encoder, id).1).unwrap();
    assert_eq!(receive(first), Reception::Innovative);
    assert_eq!(receive(second), Reception::Innovative);
    assert_eq!(receive(1), Reception::Redundant);
    assert_eq!(receive(2), Reception::Complete);
    assert_eq!(decoder.block().unwrap(), message(9));
}
