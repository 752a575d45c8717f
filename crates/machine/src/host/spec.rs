//! Specification of the block.

use crate::spec;

spec! {
    /// Host interface: reads push buffers and hands commands to the front end.
    pub struct Spec {
        /// Words that the push buffer has room for.
        push_buffer_words: u32 where 64..=1 << 24,
        /// Cycles to fetch one entry of a push buffer: what the host submitted at once.
        fetch_cycles: u32 where ..=1_000_000,
        /// Cycles from one launch that the host submits to the next, at least: what its driver takes for one. No launch takes longer by it.
        submit_interval: u32 where ..=1_000_000_000,
    }
}
