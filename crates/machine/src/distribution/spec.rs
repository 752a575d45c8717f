//! Specification of the block.

use crate::spec;

spec! {
    /// Compute work distribution: places CTAs on SMs.
    pub struct Spec {
        /// Tasks of a GPC that wait.
        pending_slots: u32 where 1..=4096,
        /// Tasks of a GPC that run.
        active_slots: u32 where 1..=4096,
        /// Cycles that a launch takes beyond its CTAs: everything before the first CTA starts and after the last one ends, with what the other blocks on the way take of it. The one number for what launching costs.
        launch_overhead: u32 where ..=10_000_000,
        /// Cycles from placing a CTA to its first warp; with `end_latency` more than the quantum.
        start_latency: u32 where ..=1_000_000,
        /// Cycles between two CTAs that are sent to the SMs of one TPC, beyond what their warps take.
        tpc_interval: u32 where ..=1_000_000,
        /// Cycles that sending a CTA to a TPC takes for each of its warps.
        tpc_warp_interval: f64,
        /// Cycles from a CTA's end to work distribution knowing of it.
        end_latency: u32 where ..=1_000_000,
        /// Cycles that work distribution takes for the end of each CTA, over the whole machine.
        end_interval: f64,
    }
}
