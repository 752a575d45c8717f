//! Specification of the block.

use crate::spec;

spec! {
    /// Compute scheduler unit: keeps tasks by priority and gives them to work distribution.
    pub struct Spec {
        /// Cycles to read and dispatch one task.
        task_cycles: u32 where ..=1_000_000,
    }
}
