//! See `cloudburst_fuzz::pair`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cloudburst_fuzz::pair(data));
