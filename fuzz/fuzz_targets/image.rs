//! Any bytes as a program image: `cargo fuzz run image`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conformance::fuzz::image(bytes));
