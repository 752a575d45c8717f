//! Specification of the block.

use crate::config::Checks;
use crate::spec;

spec! {
    /// Crossbar: virtual channels between GPCs and memory partitions.
    pub struct Spec {
        /// Half of the second-level cache that each GPC is near to, in the order of GPCs.
        halves: Vec<u32> where 0..=1,
        /// Cycles one way between a GPC and a memory partition of its own half.
        latency: u32 where 0..=10_000,
        /// Bytes that a request takes on its channel besides the data it carries.
        request_bytes: u32 where 0..=1024,
        /// Bytes that an answer takes on its channel besides the data it carries.
        answer_bytes: u32 where 0..=1024,
        /// Bytes that the request channel of a GPC passes in a cycle.
        request_bytes_per_cycle: f64,
        /// Bytes that the answer channel of a GPC passes in a cycle.
        answer_bytes_per_cycle: f64,
    }
}

impl Spec {
    /// Rules between the numbers of the crossbar, which connects `gpcs` to so many halves of the cache.
    pub fn check(&self, checks: &mut Checks, gpcs: usize, halves: u32) {
        checks.that(
            "crossbar.halves",
            self.halves.len() == gpcs,
            format!("has {} numbers", self.halves.len()),
            format!("one for each of the {gpcs} GPCs"),
        );
        checks.that(
            "crossbar.halves",
            self.halves.iter().all(|&h| h < halves),
            "names a half that is not there",
            format!("`l2.halves` is {halves}"),
        );
        checks.rate("crossbar.request_bytes_per_cycle", self.request_bytes_per_cycle);
        checks.rate("crossbar.answer_bytes_per_cycle", self.answer_bytes_per_cycle);
    }
}
