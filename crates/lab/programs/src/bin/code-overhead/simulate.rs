//! Trials: symbols of one block arrive until it is complete, and the cost is counted.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Decoder, Encoder, MAX_SOURCE_SYMBOLS, Reception};
use cloudburst_core::rng::SplitMix64;

use crate::totals::Totals;

/// The counts do not depend on the content of symbols, so they have the minimum size.
const SYMBOL_SIZE: usize = 1;

/// The seed of all trials.
const SEED: u64 = 7;

/// The maximum number of symbols in a trial. If it is reached, the code does not work.
const MAX_SYMBOLS: u32 = 1 << 20;

/// The first id of `rlf256` that is not a row of the Cauchy matrix (`docs/spec.md`, 5.5).
const BEYOND_CAUCHY: u32 = 256;

/// One point of a figure or of a table: many trials that differ only in the random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) code: Code,
    /// The number of source symbols.
    pub(crate) n: usize,
    /// The share of the first n symbols that are lost, in percent, rounded up to whole symbols.
    pub(crate) loss: usize,
    pub(crate) repairs: Repairs,
}

/// Which symbols follow the first n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repairs {
    /// The symbols with the next ids, as a sender sends them.
    Next,
    /// The symbols from a random id of 256 or more, as if the sender had sent all before it.
    Far,
}

impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Next => "next",
            Self::Far => "far",
        })
    }
}

/// The number of trials and of threads. The results depend on `trials` only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The trials of each point.
    pub(crate) trials: u64,
    pub(crate) threads: usize,
}

/// Runs all trials of all points, and prints its progress on standard error. The totals are in the
/// order of the points.
///
/// # Panics
///
/// If a code does not work: if a block never completes, or differs from the message.
pub(crate) fn run(points: &[Point], effort: Effort) -> Vec<Totals> {
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        let mut decoder = None;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = points.get(index) else { return done };
            let step = points.len().div_ceil(20);
            if index > 0 && index.is_multiple_of(step) {
                let seconds = begun.elapsed().as_secs();
                eprintln!("{index} of {} points begun after {seconds} s", points.len());
            }
            done.push((index, totals(point, effort.trials, &mut decoder)));
        }
    };
    let mut done: Vec<(usize, Totals)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..effort.threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|thread| match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    eprintln!("{} points done in {:.1} s", points.len(), begun.elapsed().as_secs_f64());
    done.sort_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, totals)| totals).collect()
}

/// Runs all trials of one point. The decoder is reused, whatever it decoded before.
fn totals(point: &Point, trials: u64, decoder: &mut Option<Decoder>) -> Totals {
    let &Point { code, n, .. } = point;
    let shape = BlockShape::new(n, SYMBOL_SIZE).expect("n is from 1 to 128");
    let mut bytes = SplitMix64::new(SEED);
    let message: Bytes = (0..n).map(|_| bytes.next_u64() as u8).collect();
    let encoder = Encoder::new(code, shape, message.clone()).expect("the message fits the block");
    let decoder = decoder.get_or_insert_with(|| Decoder::new(code, shape));
    let mut totals = Totals::default();
    for trial in 0..trials {
        decoder.reset(code, shape);
        let (received, encode_xors) =
            decode(point, &mut generator(point, trial), &encoder, decoder);
        assert_eq!(decoder.block(), Some(&message[..]), "block of {point:?}, trial {trial}");
        totals.add(received as usize - n, decoder.work().xors, encode_xors);
    }
    totals
}

/// Returns the generator of one trial, which is independent of other points and of threads.
fn generator(point: &Point, trial: u64) -> SplitMix64 {
    let [number, parameter] = point.code.to_wire();
    let code = u64::from(u16::from_be_bytes([number, parameter]));
    let seed = [code, point.n as u64, point.loss as u64, point.repairs as u64, trial]
        .into_iter()
        .fold(SEED, |seed, part| SplitMix64::new(seed ^ part).next_u64());
    SplitMix64::new(seed)
}

/// Receives symbols until the block is complete. Returns their number, and the XORs of payloads
/// that it took to make them.
fn decode(
    point: &Point,
    rng: &mut SplitMix64,
    encoder: &Encoder,
    decoder: &mut Decoder,
) -> (u32, u64) {
    let n = point.n as u32;
    let lost = draw_lost(point, rng);
    let far = u64::from(u32::MAX - BEYOND_CAUCHY) + 1;
    // As a sender does: random codes start at a random id, so that messages do not share luck.
    let first = if point.code.is_systematic() { 0 } else { rng.next_u64() as u32 };
    let first_far = rng.below(far);
    let id = |index: u32| match point.repairs {
        Repairs::Far if index >= n => BEYOND_CAUCHY + ((first_far + u64::from(index)) % far) as u32,
        _ => first.wrapping_add(index),
    };

    let mut index_set = [0; MAX_SOURCE_SYMBOLS / 8];
    let index_set = &mut index_set[..point.code.index_set_len(point.n)];
    let mut payload = [0; SYMBOL_SIZE];
    let mut encode_xors = 0;
    let arrive = (0..MAX_SYMBOLS).filter(|&index| index >= n || lost >> index & 1 == 0);
    for (received, index) in (1..).zip(arrive) {
        encoder.encode(id(index), index_set, &mut payload);
        let degree: u32 = index_set.iter().map(|byte| byte.count_ones()).sum();
        encode_xors += u64::from(degree.saturating_sub(1));
        match decoder.receive(id(index), index_set, &payload) {
            Ok(Reception::Complete) => return (received, encode_xors),
            Ok(Reception::Innovative | Reception::Redundant) => {}
            Err(error) => panic!("the decoder refuses what the encoder made: {error}; {point:?}"),
        }
    }
    panic!("{MAX_SYMBOLS} symbols do not complete {point:?}");
}

/// Draws the lost symbols among the first n, as a set of bits: Floyd's method, as in the codes.
fn draw_lost(point: &Point, rng: &mut SplitMix64) -> u128 {
    let count = (point.n * point.loss).div_ceil(100);
    let mut lost = 0;
    for last in point.n - count..point.n {
        let drawn = 1_u128 << rng.below(last as u64 + 1);
        lost |= if lost & drawn == 0 { drawn } else { 1 << last };
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(code: &str, repairs: Repairs) -> Vec<Point> {
        let code = code.parse().unwrap();
        let sizes = [1, 4, 35, 128];
        let point = |n, loss| Point { code, n, loss, repairs };
        sizes.iter().flat_map(|&n| [0, 1, 50, 100].map(|loss| point(n, loss))).collect()
    }

    fn results(points: &[Point], threads: usize) -> Vec<Totals> {
        run(points, Effort { trials: 20, threads })
    }

    #[test]
    fn the_results_do_not_depend_on_the_number_of_threads() {
        for code in ["lt:d=5", "lt-systematic:dense", "rlf256"] {
            let points = points(code, Repairs::Next);
            assert_eq!(results(&points, 1), results(&points, 2), "{code}");
        }
    }

    #[test]
    fn the_result_of_a_point_does_not_depend_on_other_points() {
        let points = points("lt:robust", Repairs::Next);
        let all = results(&points, 1);
        assert_eq!(results(&points[5..6], 1), all[5..6]);
    }

    #[test]
    fn cauchy_rows_need_no_extra_symbol_and_later_rows_hardly_any() {
        let mut far = points("rlf256", Repairs::Far);
        assert!(results(&far, 2).iter().all(|totals| totals.mean() < 0.5));
        far.iter_mut().for_each(|point| point.repairs = Repairs::Next);
        assert!(results(&far, 2).iter().all(|totals| totals.max() == 0));
    }

    #[test]
    fn trials_of_a_drawn_code_differ() {
        let code = "lt:d=1".parse().unwrap();
        let point = Point { code, n: 32, loss: 0, repairs: Repairs::Next };
        let totals = &results(&[point], 1)[0];
        assert!(totals.percentile(1, 100) < totals.max());
        assert_eq!((totals.mean_decode_xors(), totals.mean_encode_xors()), (0.0, 0.0));
    }

    #[test]
    fn the_number_of_lost_symbols_is_the_percentage_rounded_up() {
        let code = Code::Rlf256;
        let mut rng = SplitMix64::new(1);
        for (n, loss, lost) in [(1, 0, 0), (1, 1, 1), (7, 50, 4), (128, 1, 2), (128, 100, 128)] {
            let point = Point { code, n, loss, repairs: Repairs::Next };
            let drawn = draw_lost(&point, &mut rng);
            assert_eq!(drawn.count_ones(), lost);
            assert!(n == 128 || drawn >> n == 0);
        }
    }
}
