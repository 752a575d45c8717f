//! Specification of the block.

use crate::spec;

spec! {
    /// TPC: SMs that share a port to the crossbar.
    pub struct Spec {
        /// Bytes of answers that its port takes in a cycle.
        bytes_per_cycle: u32,
    }
}
