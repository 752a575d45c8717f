//! Specification of instruction supply.

use crate::config::Checks;
use crate::spec;
use crate::units::LINE;

spec! {
    /// Instruction supply: a cache a sub-core, one for the SM, and a prefetcher between them and the GPC's cache.
    pub struct Spec {
        /// Bytes of a sub-core's instruction cache.
        l0_bytes: u32 where 128..=1 << 20,
        /// Ways of it.
        l0_ways: u32 where 1..=16,
        /// Bytes of the SM's instruction cache.
        l1_bytes: u32 where 128..=1 << 22,
        /// Ways of it.
        l1_ways: u32 where 1..=16,
        /// Cycles from a jump to a line that only the SM's cache has to its first instruction.
        l1_latency: u32 where 0..=1024,
        /// Cycles that the SM's cache takes for each line that it gives to a sub-core.
        l1_interval: u32 where 0..=64,
        /// Cycles that each line from outside takes to enter the SM's cache.
        fill_interval: u32 where 0..=256,
        /// Lines that the prefetcher keeps in the SM's cache or on their way, from the one that a sub-core wants on. 1 turns it off.
        stream_lines: u32 where 1..=64,
    }
}

impl Spec {
    pub fn check(&self, checks: &mut Checks) {
        checks.sets("sm.fetch.l0_bytes", self.l0_bytes.into(), LINE, self.l0_ways.into());
        checks.sets("sm.fetch.l1_bytes", self.l1_bytes.into(), LINE, self.l1_ways.into());
    }
}
