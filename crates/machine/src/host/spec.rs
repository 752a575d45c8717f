//! Specification of the block.

use crate::spec;

spec! {
    /// Host interface: reads push buffers and hands commands to the front end.
    pub struct Spec {
        /// Cycles to fetch one entry of a push buffer.
        fetch_cycles: u32,
    }
}
