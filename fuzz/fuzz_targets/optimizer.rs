//! Any bytes as code with a profile: `cargo fuzz run optimizer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| assert!(optimizer::damaged::try_bytes(bytes)));
