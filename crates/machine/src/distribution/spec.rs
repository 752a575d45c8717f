//! Specification of the block.

use crate::spec;

spec! {
    /// Compute work distribution: places CTAs on SMs.
    pub struct Spec {
        /// Tasks of a GPC that wait.
        pending_slots: u32,
        /// Tasks of a GPC that run.
        active_slots: u32,
        /// Cycles that a launch takes beyond its CTAs: everything before the first CTA starts and after the last one ends. The one number for what launching costs.
        launch_overhead: u32,
    }
}
