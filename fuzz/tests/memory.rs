//! A decoder's memory is bounded by its block, whatever its input.

use cloudburst_core::rng::SplitMix64;
use cloudburst_fuzz::{Gauge, decoder_measured};
use peak_alloc::PeakAlloc;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

// The allocator counts for the whole process, so this program has only one test.
#[test]
fn a_decoder_holds_no_more_memory_than_it_reports() {
    let gauge = Gauge {
        used: || ALLOCATOR.current_usage(),
        peak: || ALLOCATOR.peak_usage(),
        reset: || ALLOCATOR.reset_peak_usage(),
    };
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/decoder");
    for file in corpus.read_dir().unwrap() {
        decoder_measured(&std::fs::read(file.unwrap().path()).unwrap(), gauge);
    }
    for seed in 0..1_000 {
        let mut rng = SplitMix64::new(seed);
        let data: Vec<u8> = (0..rng.below(100)).map(|_| rng.next_u64() as u8).collect();
        decoder_measured(&data, gauge);
    }
}
