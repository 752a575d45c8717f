//! Specification of the block.

use crate::spec;

spec! {
    /// GPC: pipeline manager, first level of address translation, cache behind the instruction and constant caches of its SMs, and the point where equal requests of its SMs meet.
    pub struct Spec {
        /// Cycles that a request takes through the GPC to the crossbar, its page being known.
        latency: u32,
        /// Lines under way that the request coalescer knows, a power of two; 0: equal requests do not meet.
        coalescer_entries: u32,
        /// TPCs that share a coalescer.
        coalescer_tpcs: u32,
        /// Requests that may wait for the answer to one that is under way.
        coalescer_followers: u32,
        /// Bytes of a page.
        page_bytes: u64,
        /// Pages that the first-level TLB of a GPC knows, a power of two.
        tlb_entries: u32,
        /// Cycles more when the page is only in the second-level TLB, which all GPCs share.
        tlb_miss: u32,
        /// Pages that the second-level TLB knows, a power of two.
        l2_tlb_entries: u32,
        /// Cycles more when the page tables must be read.
        page_walk: u32,
        /// Bytes of the cache behind the instruction and constant caches.
        l15_bytes: u32,
        /// Its ways.
        l15_ways: u32,
        /// Cycles from a request at it to its answer leaving for the SM.
        l15_latency: u32,
        /// Bytes that it gives in a cycle.
        l15_bytes_per_cycle: f64,
    }
}
