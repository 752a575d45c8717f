//! Specification of the constant caches.

use crate::config::Checks;
use crate::spec;

spec! {
    /// Constant caches: one a sub-core for operands, one for loads, one behind both.
    pub struct Spec {
        /// Bytes of a line of all constant caches.
        line_bytes: u32 where 32..=128,
        /// Bytes of a sub-core's cache for constant operands.
        operand_bytes: u32 where 64..=1 << 20,
        /// Ways of it.
        operand_ways: u32 where 1..=16,
        /// Bytes of the SM's cache for constant loads.
        load_bytes: u32 where 64..=1 << 20,
        /// Ways of it.
        load_ways: u32 where 1..=16,
        /// Cycles from a constant load of one place, found in the cache, to the issue of an instruction that needs it.
        load_latency: u32 where 1..=1024,
        /// Cycles more for each further place that the lanes of a load read: they are read one after the other.
        replay_latency: u32 where 0..=1024,
        /// Cycles that each place of a load keeps the load unit of the SM.
        place_interval: u32 where 1..=64,
        /// Bytes of the SM's cache behind both. With 0 there is none, and misses go to the GPC's cache.
        shared_bytes: u32 where 0..=1 << 22,
        /// Ways of it.
        shared_ways: u32 where 1..=16,
        /// Cycles more that a line takes from there.
        shared_latency: u32 where 0..=1024,
    }
}

impl Spec {
    pub fn check(&self, checks: &mut Checks) {
        let line = u64::from(self.line_bytes);
        checks.power_of_two("sm.constants.line_bytes", line);
        checks.sets("sm.constants.operand_bytes", self.operand_bytes.into(), line, self.operand_ways.into());
        checks.sets("sm.constants.load_bytes", self.load_bytes.into(), line, self.load_ways.into());
        if self.shared_bytes > 0 {
            checks.sets("sm.constants.shared_bytes", self.shared_bytes.into(), line, self.shared_ways.into());
        }
    }
}
