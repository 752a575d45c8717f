//! Specification of the block.

use crate::spec;

spec! {
    /// Crossbar: virtual channels between GPCs and memory partitions.
    pub struct Spec {
        /// Cycles one way between a GPC and a memory partition of its own half.
        latency: u32,
        /// Bytes that a request takes on its channel besides the data it carries.
        request_bytes: u32,
        /// Bytes that an answer takes on its channel besides the data it carries.
        answer_bytes: u32,
        /// Bytes that the request channel of a GPC passes in a cycle.
        request_bytes_per_cycle: f64,
        /// Bytes that the answer channel of a GPC passes in a cycle.
        answer_bytes_per_cycle: f64,
    }
}
