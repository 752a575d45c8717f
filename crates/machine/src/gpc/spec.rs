//! Specification of the block.

use crate::config::Checks;
use crate::spec;

spec! {
    /// GPC: pipeline manager, first level of address translation, cache behind the instruction and constant caches of its SMs, and the point where equal requests of its SMs meet.
    pub struct Spec {
        /// Cycles that a request takes through the GPC to the crossbar, its page being known.
        latency: u32 where 0..=10_000,
        /// Lines under way that the request coalescer knows, a power of two; 0: equal requests do not meet.
        coalescer_entries: u32 where 0..=1 << 20,
        /// TPCs that share a coalescer.
        coalescer_tpcs: u32 where 1..=64,
        /// Requests that may wait for the answer to one that is under way.
        coalescer_followers: u32 where 0..=255,
        /// Bytes of a page.
        page_bytes: u64 where 4096..=1 << 40,
        /// Pages that the first-level TLB of a GPC knows, a power of two.
        tlb_entries: u32 where 1..=1 << 20,
        /// Cycles more when the page is only in the second-level TLB, which all GPCs share.
        tlb_miss: u32 where 0..=100_000,
        /// Pages that the second-level TLB knows, a power of two.
        l2_tlb_entries: u32 where 1..=1 << 20,
        /// Cycles more when the page tables must be read.
        page_walk: u32 where 0..=100_000,
        /// Bytes of the cache behind the instruction and constant caches.
        l15_bytes: u32 where 0..=1 << 26,
        /// Its ways.
        l15_ways: u32 where 1..=64,
        /// Bytes that it asks the second-level cache for when one is missing.
        l15_fill_bytes: u32 where 128..=4096,
        /// Cycles from a request at it to its answer leaving for the SM.
        l15_latency: u32 where 0..=10_000,
        /// Bytes that it gives in a cycle.
        l15_bytes_per_cycle: f64,
        /// Bytes of a launch's code, from its beginning, that come into it with the first of them that an SM needs.
        launch_code_bytes: u32 where 0..=1 << 26,
        /// Sectors that the second-level cache looks up, and finds, for each of its slices that an SM has used: the memory barrier that ends a launch goes there, and to the other slice of the pair. Counted, of no weight in time.
        barrier_sectors: u32 where 0..=64,
        /// Sectors that it looks up, and finds, for each GPC when a launch begins and ends: what describes the launch, its constants, and barriers of the whole machine. Counted, of no weight in time.
        launch_sectors: u32 where 0..=1 << 20,
        /// Sectors that it looks up, and does not find, for each GPC in a launch: what is written about it. Counted, of no weight in time.
        launch_misses: u32 where 0..=1 << 20,
    }
}

impl Spec {
    /// Rules between the numbers of a GPC.
    pub fn check(&self, checks: &mut Checks) {
        checks.power_of_two("gpc.page_bytes", self.page_bytes);
        checks.power_of_two("gpc.tlb_entries", self.tlb_entries.into());
        checks.power_of_two("gpc.l2_tlb_entries", self.l2_tlb_entries.into());
        if self.coalescer_entries != 0 {
            checks.power_of_two("gpc.coalescer_entries", self.coalescer_entries.into());
        }
        checks.power_of_two("gpc.l15_fill_bytes", self.l15_fill_bytes.into());
        checks.rate("gpc.l15_bytes_per_cycle", self.l15_bytes_per_cycle);
    }
}
