//! Specification of suspending and restoring CTAs.

use crate::spec;

spec! {
    /// Suspending and restoring CTAs: what it takes beside the traffic.
    pub struct Spec {
        /// Cycles that the driver's allocator takes to find room in its buffer for the local memory of one warp.
        allocate_cycles: u32 where ..=1_000_000,
        /// Cycles between two accesses that the SM sends to its load-store unit to move a CTA's state.
        access_interval: u32 where 1..=1024,
    }
}
