//! See `cloudburst_fuzz::decoder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudburst_fuzz::decoder(data));
