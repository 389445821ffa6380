//! The time to encode and to decode one block, compared with the libraries that are alternatives.
//!
//! | benchmark | what is timed |
//! |---|---|
//! | `encode/<code>/n<n>` | from the bare message to its first repair symbol, all set-up included |
//! | `decode/<code>/n<n>-loss<percent>` | from the received symbols to the block, in one piece |
//! | `last-symbol/<code>/n<n>-loss<percent>` | from the last of these symbols to the block |
//! | `kernel/<kernel>/encode` | the second repair symbol of 64 by `rlf256`, with each kernel |
//! | `kernel/<kernel>/decode` | decoding 64 symbols by `rlf256`, 20 % lost, likewise |
//! | `reference/memcpy/n<n>` | copying the message: no code can be faster |
//! | `reference/copy-symbols/n<n>` | copying it from symbols that have just arrived |
//! | `reference/xor/n<n>` | adding up its n symbols: the minimum for a dense repair symbol |
//!
//! Symbols have 1,408 bytes, and n is 4, 14 or 64. The codes are `lt` (the paper's), `lt-robust`,
//! `lt-systematic`, `rlf256`, `raptorq` and `reed-solomon-simd`; `raptorq-cached-plan` is `raptorq`
//! with a precomputed plan, and only encodes; `raptorq-here` is the same code by this workspace;
//! `rlf256-reused` is `rlf256` with a decoder that has been used before, and only decodes.
//! [`codes`] describes how each library is used, and [`codes::workload`] which symbols are lost.
//!
//! Every code runs under the same rules. Its results and working memory are freed outside the
//! timing. The symbols that it decodes are fresh copies, as when a packet has just arrived. The
//! result is compared with the message once, before the timing. If decoding takes more than n
//! symbols, their number is printed on standard error.
//!
//! `scripts/bench codec --last` shows the results side by side. Compare only results of one run.

mod codes;

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use cloudburst_core::code::{Code, Degree, Kernel};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion};

use codes::workload::{SYMBOL_SIZE, message, received, source_symbols};
use codes::{Cloudburst, Decode, Encode, Raptorq, RaptorqCachedPlan, ReedSolomonSimd, Reused};

/// The paper's code, the code with the robust soliton, the systematic one with a suitable degree,
/// RaptorQ, and the default.
const LT: Cloudburst = Cloudburst { name: "lt", code: Code::Lt(Degree::Fixed(5)) };
const LT_ROBUST: Cloudburst =
    Cloudburst { name: "lt-robust", code: Code::Lt(Degree::RobustSoliton) };
const LT_SYSTEMATIC: Cloudburst =
    Cloudburst { name: "lt-systematic", code: Code::LtSystematic(Degree::Dense) };
const RAPTORQ_HERE: Cloudburst = Cloudburst { name: "raptorq-here", code: Code::RaptorQ };
const RLF256: Cloudburst = Cloudburst { name: "rlf256", code: Code::Rlf256 };

/// The numbers of source symbols, n.
const BLOCKS: [usize; 3] = [4, 14, 64];

/// The share of source symbols lost, in percent.
const LOSSES: [usize; 4] = [0, 5, 20, 100];

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(30)
        .nresamples(10_000)
        .configure_from_args();
    reference(&mut criterion);
    encode(&mut criterion);
    decode(&mut criterion);
    last_symbol(&mut criterion);
    kernels(&mut criterion);
    criterion.final_summary();
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for n in BLOCKS {
        let message = message(n);
        bench_encode(&mut group, &LT, &message);
        bench_encode(&mut group, &LT_ROBUST, &message);
        bench_encode(&mut group, &LT_SYSTEMATIC, &message);
        bench_encode(&mut group, &RLF256, &message);
        bench_encode(&mut group, &RAPTORQ_HERE, &message);
        bench_encode(&mut group, &Raptorq, &message);
        bench_encode(&mut group, &RaptorqCachedPlan::new(n), &message);
        bench_encode(&mut group, &ReedSolomonSimd, &message);
    }
    group.finish();
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for n in BLOCKS {
        let message = message(n);
        for percent in LOSSES {
            bench_decode(&mut group, &LT, &message, percent);
            bench_decode(&mut group, &LT_ROBUST, &message, percent);
            bench_decode(&mut group, &LT_SYSTEMATIC, &message, percent);
            bench_decode(&mut group, &RLF256, &message, percent);
            bench_decode(&mut group, &Reused::new("rlf256-reused", RLF256), &message, percent);
            bench_decode(&mut group, &RAPTORQ_HERE, &message, percent);
            bench_decode(&mut group, &Raptorq, &message, percent);
            bench_decode(&mut group, &ReedSolomonSimd, &message, percent);
        }
    }
    group.finish();
}

fn last_symbol(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("last-symbol");
    for code in [LT_ROBUST, LT_SYSTEMATIC, RLF256] {
        let n = 64;
        let message = message(n);
        for percent in LOSSES {
            let symbols = received(&code, &message, percent);
            let id = BenchmarkId::new(code.name(), format!("n{n}-loss{percent}"));
            group.bench_function(id, |bencher| {
                bencher.iter_batched_ref(
                    || code.all_but_the_last(n, &symbols),
                    |waiting| waiting.finish(),
                    batch(n),
                );
            });
        }
    }
    group.finish();
}

/// The second repair symbol, because the first needs no products.
fn kernels(criterion: &mut Criterion) {
    let n = 64;
    let message = message(n);
    let symbols = received(&RLF256, &message, 20);
    let mut group = criterion.benchmark_group("kernel");
    for kernel in Kernel::available() {
        let encoder = RLF256.encoder_with(kernel, &message);
        let mut payload = [0; SYMBOL_SIZE];
        group.bench_function(BenchmarkId::new(kernel.to_string(), "encode"), |bencher| {
            bencher.iter(|| encoder.encode(n as u32 + 1, &mut [], black_box(&mut payload)));
        });
        group.bench_function(BenchmarkId::new(kernel.to_string(), "decode"), |bencher| {
            bencher.iter(|| RLF256.decode_with(kernel, n, black_box(&symbols)));
        });
    }
    group.finish();
}

fn bench_encode<E: Encode>(group: &mut BenchmarkGroup<'_, WallTime>, code: &E, message: &Bytes) {
    let n = source_symbols(message);
    let id = BenchmarkId::new(code.name(), format!("n{n}"));
    group.bench_function(id, |bencher| {
        bencher.iter_batched(|| message.clone(), |message| code.encode(&message), batch(n));
    });
}

fn bench_decode<D: Decode>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    code: &D,
    message: &Bytes,
    percent: usize,
) {
    let n = source_symbols(message);
    let id = BenchmarkId::new(code.name(), format!("n{n}-loss{percent}"));
    let symbols = received(code, message, percent);
    if symbols.len() > n {
        eprintln!("decode/{}/n{n}-loss{percent} takes {} symbols", code.name(), symbols.len());
    }
    group.bench_function(id, |bencher| {
        bencher.iter_batched_ref(|| symbols.clone(), |symbols| code.decode(n, symbols), batch(n));
    });
}

fn reference(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reference");
    for n in BLOCKS {
        let message = message(n);
        let mut copy = vec![0; message.len()];
        group.bench_function(BenchmarkId::new("memcpy", format!("n{n}")), |bencher| {
            bencher.iter(|| black_box(&mut copy).copy_from_slice(black_box(&message)));
        });
        let symbols = received(&RLF256, &message, 0);
        group.bench_function(BenchmarkId::new("copy-symbols", format!("n{n}")), |bencher| {
            bencher.iter_batched_ref(
                || symbols.clone(),
                |symbols| {
                    for (symbol, to) in symbols.iter().zip(copy.chunks_exact_mut(SYMBOL_SIZE)) {
                        black_box(to).copy_from_slice(&symbol.payload);
                    }
                },
                batch(n),
            );
        });
        let mut sum = [0; SYMBOL_SIZE];
        group.bench_function(BenchmarkId::new("xor", format!("n{n}")), |bencher| {
            bencher.iter(|| xor_all(black_box(&mut sum), black_box(&message)));
        });
    }
    group.finish();
}

fn xor_all(sum: &mut [u8; SYMBOL_SIZE], message: &[u8]) {
    sum.fill(0);
    for symbol in message.chunks_exact(SYMBOL_SIZE) {
        for (sum, byte) in sum.iter_mut().zip(symbol) {
            *sum ^= byte;
        }
    }
}

/// The number of calls between two readings of the clock: enough that reading it is negligible for
/// small blocks, and few enough that large ones stay in the cache: 64 symbols in all.
fn batch(n: usize) -> BatchSize {
    BatchSize::NumIterations((64 / n) as u64)
}
