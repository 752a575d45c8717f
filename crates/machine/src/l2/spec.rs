//! Specification of the block.

use crate::spec;

spec! {
    /// Second-level cache: slices in two halves.
    pub struct Spec {
        /// Slices of both halves together.
        slices: u32,
    }
}
