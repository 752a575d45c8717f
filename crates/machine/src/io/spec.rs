//! Specification of the block.

use crate::spec;

spec! {
    /// I/O unit: the link to the host; commands and data cross it.
    pub struct Spec {
        /// Cycles that a command takes from the host to the host interface, and a notification back.
        latency: u32 where ..=1_000_000,
        /// Bytes of data that cross the link in a cycle.
        bytes_per_cycle: u32 where 1..=65_536,
    }
}
