//! See `cloudburst_fuzz::wire`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    cloudburst_fuzz::wire(data);
});
