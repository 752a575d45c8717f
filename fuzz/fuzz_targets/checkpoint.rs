//! Any bytes as a checkpoint: `cargo fuzz run checkpoint`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conformance::fuzz::checkpoint(bytes));
