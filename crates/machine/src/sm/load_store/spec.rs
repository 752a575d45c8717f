//! Specification of the load-store unit.

use crate::spec;

spec! {
    /// First-level cache.
    pub struct L1 {
        /// Sets; each has as many ways as the cache's share of the memory gives it.
        sets: u32,
        /// Lines whose tags are looked up in one cycle.
        tags_per_cycle: u32,
        /// Cycles from the issue of a load that hits to the issue of an instruction that needs its result.
        load_latency: u32,
        /// Cycles that every further 32-bit register of a lane adds to a load.
        wide_latency: u32,
        /// Cycles from the tag stage to a request leaving the SM.
        miss_latency: u32,
        /// Cycles from the arrival of the last sector to the issue of an instruction that needs the load's result.
        fill_latency: u32,
        /// Sectors of loads that can be on their way at once; with as many, no further access to global or local memory is issued.
        miss_sectors: u32,
        /// Cycles between two requests that leave the SM.
        request_interval: u32,
        /// Bytes of store data that leave the SM in a cycle.
        store_bytes: u32,
        /// A store that misses takes a line, so that later stores to its sectors count as hits.
        store_allocates: bool,
    }
}

spec! {
    /// Shared memory.
    pub struct Shared {
        /// Cycles from the issue of a load to the issue of an instruction that needs its result.
        load_latency: u32,
        /// Cycles that loads of four registers a lane take more.
        quad_latency: u32,
        /// Cycles that each further pass through the banks adds to the latency of one access; others use the cycles between.
        replay_latency: u32,
        /// Cycles from the issue of an atomic to the issue of an instruction that needs its result.
        atomic_latency: u32,
        /// Hundredths of a cycle that each further lane on the same address adds to an atomic.
        atomic_lane_latency: u32,
        /// Hundredths of a cycle for which each further lane on the same address keeps the banks from others.
        atomic_lane_busy: u32,
        /// As the last two, for atomics without a result: the unit adds up what lanes add to one address.
        reduction_lane_latency: u32,
        /// Cycles from the issue of a shuffle to the issue of an instruction that needs its result.
        shuffle_latency: u32,
    }
}

spec! {
    /// Load-store unit: queues of the sub-cores, address units, and the memory that first-level cache and shared memory split.
    pub struct Spec {
        /// Accesses to global and local memory that a sub-core can have waiting.
        global_queue: u32,
        /// Accesses to shared memory and shuffles that a sub-core can have waiting.
        shared_queue: u32,
        /// Cycles that a sub-core's address unit takes for an access.
        address_interval: u32,
        /// Cycles between two accesses that the SM's unit takes from the sub-cores.
        accept_interval: u32,
        /// Cycles from issue to the tags or banks when nothing is in the way.
        address_latency: u32,
        /// Cycles from issue until a load has read its address.
        load_read: u32,
        /// ... a load from shared memory.
        shared_load_read: u32,
        /// ... until a store has read address and data.
        store_read: u32,
        /// ... a store to shared memory.
        shared_store_read: u32,
        /// Cycles that every further 32-bit register of a lane adds for a store.
        store_wide_read: u32,
        parts {
            /// First-level cache.
            l1: L1,
            /// Shared memory.
            shared: Shared,
        }
    }
}
