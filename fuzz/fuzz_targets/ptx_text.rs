//! Any bytes as PTX text: `cargo fuzz run ptx_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| conformance::fuzz::ptx_text(bytes));
