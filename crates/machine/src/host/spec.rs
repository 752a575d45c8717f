//! Specification of the block.

use crate::spec;

spec! {
    /// Host interface: reads push buffers and hands commands to the front end.
    pub struct Spec {
        /// Words that the push buffer has room for.
        push_buffer_words: u32 where 64..=1 << 24,
        /// Cycles to fetch one entry of a push buffer: what the host submitted at once.
        fetch_cycles: u32 where ..=1_000_000,
    }
}
