//! Any bytes as words of a push buffer: `cargo fuzz run commands`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conformance::fuzz::commands(bytes));
