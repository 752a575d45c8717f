//! Any bytes as a trace file: `cargo fuzz run trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conformance::fuzz::trace(bytes));
