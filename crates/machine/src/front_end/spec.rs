//! Specification of the block.

use crate::spec;

spec! {
    /// Front end: decodes commands and sends tasks and state to their units.
    pub struct Spec {
        /// Cycles that one command takes.
        command_cycles: u32 where ..=1_000_000,
    }
}
