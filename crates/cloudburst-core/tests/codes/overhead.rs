//! The number of symbols that the codes need, compared with Monte Carlo figures that were made
//! independently of this code, and with `expected_symbols`.

use crate::common::{codes, shape, symbol};
use bytes::Bytes;
use cloudburst_core::code::{Code, Decoder, Encoder};

/// The mean number of symbols that arrive until a block is complete.
fn mean_needed(code: Code, n: usize, first_id: u32, arrives: impl Fn(u32) -> bool) -> f64 {
    let blocks = 600;
    let shape = shape(n, 1);
    let encoder = Encoder::new(code, shape, Bytes::new()).unwrap();
    let mut decoder = Decoder::new(code, shape);
    let mut repairs = first_id..;
    let mut received = 0;
    for _ in 0..blocks {
        decoder.reset(code, shape);
        let sources = if code.is_systematic() { 0..n as u32 } else { 0..0 };
        for id in sources.filter(|&id| arrives(id)).chain(&mut repairs) {
            let (index_set, payload) = symbol(&encoder, id);
            received += 1;
            decoder.receive(id, &index_set, &payload).unwrap();
            if decoder.is_complete() {
                break;
            }
        }
    }
    f64::from(received) / f64::from(blocks)
}

#[test]
fn all_coded_overheads_are_those_of_the_monte_carlo() {
    // (code, n, symbols needed / n). Degree 5 at n = 7 is dense here, for the better.
    let table = [
        ("lt:d=5", 7, 1.22),
        ("lt:d=5", 14, 1.12),
        ("lt:d=5", 35, 1.07),
        ("lt:d=5", 64, 1.09),
        ("lt:d=9", 14, 1.12),
        ("lt:d=9", 35, 1.05),
        ("lt:d=9", 64, 1.03),
        ("lt:robust", 4, 1.32),
        ("lt:robust", 7, 1.29),
        ("lt:robust", 14, 1.20),
        ("lt:robust", 35, 1.12),
        ("lt:robust", 64, 1.07),
        ("lt:dense", 4, 1.30),
        ("lt:dense", 7, 1.22),
        ("lt:dense", 14, 1.11),
        ("lt:dense", 35, 1.05),
        ("lt:dense", 64, 1.03),
    ];
    for (name, n, ratio) in table {
        let mean = mean_needed(name.parse().unwrap(), n, 0, |_| true);
        let expected = ratio * n as f64;
        assert!((mean - expected).abs() < 0.5 + 0.02 * expected, "{name}, n = {n}: {mean}");
    }
}

#[test]
fn dense_repairs_of_lost_source_symbols_cost_little_and_sparse_ones_much() {
    // 5 % of 64 symbols: three of them.
    let lost = |id: u32| !matches!(id, 9 | 30 | 51);
    let mean = |name: &str| mean_needed(name.parse().unwrap(), 64, 64, lost);
    let dense = mean("lt-systematic");
    let sparse = mean("lt-systematic:d=5");
    assert!((65.0..66.2).contains(&dense), "{dense}");
    assert!((76.0..92.0).contains(&sparse), "{sparse}");
    assert!((mean("rlf256") - 64.0).abs() < 0.05);
}

#[cfg(feature = "raptorq")]
#[test]
fn raptorq_seldom_needs_a_symbol_more_than_n() {
    // RFC 6330 promises that one block in 100 needs one more, and one in 10,000 two more.
    let blocks = 3_000;
    for n in [1, 11, 64] {
        let shape = shape(n, 1);
        let encoder = Encoder::new(Code::RaptorQ, shape, Bytes::new()).unwrap();
        let mut decoder = Decoder::new(Code::RaptorQ, shape);
        let mut repairs = n as u32..;
        let mut failed_at = [0; 2];
        for _ in 0..blocks {
            decoder.reset(Code::RaptorQ, shape);
            for (received, id) in (1_usize..).zip(&mut repairs) {
                decoder.receive(id, &[], &symbol(&encoder, id).1).unwrap();
                if decoder.is_complete() {
                    break;
                }
                if let Some(failed) = received.checked_sub(n).and_then(|i| failed_at.get_mut(i)) {
                    *failed += 1;
                }
            }
        }
        assert!(failed_at[0] < blocks / 100 && failed_at[1] <= 1, "n = {n}: {failed_at:?}");
    }
}

#[test]
fn expected_symbols_are_those_that_are_needed() {
    for code in codes() {
        for n in [1, 2, 3, 5, 6, 9, 12, 20, 48, 64, 100, 128] {
            let expected = code.expected_symbols(n) as f64;
            let first_id = if code.is_systematic() { n as u32 } else { 0 };
            let mean = mean_needed(code, n, first_id, |_| true);
            let overhead = mean - n as f64;
            let low = mean - 0.3 - 0.05 * overhead;
            let high = mean + 2.0 + 0.1 * overhead;
            assert!((low..high).contains(&expected), "{code}, n = {n}: {expected}, {mean}");
        }
    }
}
