//! Specification of the block.

use crate::config::Checks;
use crate::spec;

spec! {
    /// TPC: SMs that share a port to the crossbar.
    pub struct Spec {
        /// Cycles between an SM and its GPC, one way.
        latency: u32 where 0..=10_000,
        /// Bytes of requests that the port of all its SMs sends in a cycle.
        request_bytes_per_cycle: f64,
        /// Bytes of answers that the port takes in a cycle for all its SMs.
        bytes_per_cycle: f64,
        /// Bytes of answers that one SM takes in a cycle.
        sm_bytes_per_cycle: f64,
    }
}

impl Spec {
    /// Rules between the numbers of a TPC.
    pub fn check(&self, checks: &mut Checks) {
        checks.rate("tpc.request_bytes_per_cycle", self.request_bytes_per_cycle);
        checks.rate("tpc.bytes_per_cycle", self.bytes_per_cycle);
        checks.rate("tpc.sm_bytes_per_cycle", self.sm_bytes_per_cycle);
    }
}
