//! Specification of the block.

use crate::config::Checks;
use crate::spec;

spec! {
    /// Second-level cache: slices in two halves.
    pub struct Spec {
        /// Slices of all halves together.
        slices: u32 where 1..=4096,
        /// Halves: 2 where each half of the machine has its own near slices, 1 where all slices are equally far.
        halves: u32 where 1..=2,
        /// Sets of a slice, a power of two.
        sets: u32 where 1..=1 << 20,
        /// Ways of a set: sets x ways x 128 bytes make a slice.
        ways: u32 where 1..=64,
        /// Bytes of neighbouring addresses with their home in one half.
        home_bytes: u32 where 128..=1 << 30,
        /// Cycles from a request at a slice to its data leaving it, when they are there.
        latency: u32 where 0..=10_000,
        /// Bytes that a slice looks up and passes in a cycle.
        bytes_per_cycle: f64,
        /// Bytes that a request counts as when it is for fewer: a slice looks up no more requests a cycle than this allows.
        request_bytes: u32 where 0..=1024,
        /// Cycles one way between the two slices of a pair, one in each half.
        far_latency: u32 where 0..=10_000,
        /// Bytes that pass between the two slices of a pair in a cycle, each way.
        far_bytes_per_cycle: f64,
        /// Ways of a set that copies from the host may fill.
        copy_ways: u32 where 0..=64,
        /// Bytes that a store counts as besides those that it writes, in each slice that it passes.
        write_bytes: u32 where 0..=1024,
        /// Bytes that one pass of an atomic or reduction over a sector counts as, in each slice that it passes; operations on one address take a pass each.
        atomic_bytes: u32 where 0..=1024,
        /// Cycles that an atomic takes longer than a load.
        atomic_latency: u32 where 0..=10_000,
    }
}

impl Spec {
    /// Rules between the numbers of the cache.
    pub fn check(&self, checks: &mut Checks) {
        checks.multiple("l2.slices", self.slices.into(), self.halves.into());
        checks.power_of_two("l2.sets", self.sets.into());
        checks.power_of_two("l2.home_bytes", self.home_bytes.into());
        checks.rate("l2.bytes_per_cycle", self.bytes_per_cycle);
        checks.rate("l2.far_bytes_per_cycle", self.far_bytes_per_cycle);
    }
}
