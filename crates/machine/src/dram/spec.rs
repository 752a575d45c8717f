//! Specification of the block.

use crate::spec;

spec! {
    /// DRAM: channels, banks, row buffers, refresh.
    pub struct Spec {
        /// Channels of all memory partitions together.
        channels: u32,
    }
}
