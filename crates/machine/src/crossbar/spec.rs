//! Specification of the block.

use crate::spec;

spec! {
    /// Crossbar: virtual channels between GPCs and memory partitions.
    pub struct Spec {
        /// Cycles one way between a GPC and a memory partition of its own half.
        latency: u32,
    }
}
