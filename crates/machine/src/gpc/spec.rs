//! Specification of the block.

use crate::spec;

spec! {
    /// GPC: pipeline manager, first level of address translation, cache behind the instruction and constant caches of its SMs, and the point where equal requests of its SMs meet.
    pub struct Spec {
        /// Bytes of the cache behind the instruction and constant caches.
        l15_bytes: u32,
    }
}
