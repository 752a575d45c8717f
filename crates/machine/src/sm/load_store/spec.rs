//! Specification of the load-store unit.

use crate::config::Checks;
use crate::spec;

spec! {
    /// First-level cache.
    pub struct L1 {
        /// Sets; each has as many ways as the cache's share of the memory gives it.
        sets: u32 where 1..=4096,
        /// Banks of tags: 1, 2 or 4. Each looks up a line in a cycle; lines looked up in one cycle go through the data banks together.
        tags_per_cycle: u32 where 1..=4,
        /// Cycles from the issue of a load that hits to the issue of an instruction that needs its result.
        load_latency: u32 where 1..=4096,
        /// Cycles from the tag stage to a request leaving the SM.
        miss_latency: u32 where 0..=4096,
        /// Cycles from the arrival of the last sector to the issue of an instruction that needs the load's result.
        fill_latency: u32 where 0..=4096,
        /// Sectors of loads that can be on their way at once; with as many, no further access to global or local memory is issued.
        miss_sectors: u32 where 1..=1 << 20,
        /// Share of the cache's lines that can be on their way at a time, in percent: a line has its place from the moment it is asked for, and sets fill unevenly.
        miss_lines_percent: u32 where 1..=100,
        /// Cycles between two requests for lines that leave the SM.
        request_interval: u32 where 1..=1024,
        /// Bytes of store data that leave the SM in a cycle; what does not fill its sectors takes a cycle more for the mask of its bytes. No load from global or local memory reads the banks then.
        store_bytes: u32 where 1..=1024,
        /// Cycles of store data that can wait to leave the SM. With as much, stores and what comes behind them wait in their queues.
        store_backlog: u32 where 1..=1 << 20,
        /// Cycles from a store leaving the SM to its acknowledgement for which the way to memory has room: stores that take longer wait before they leave.
        store_trip: u32 where 1..=1 << 20,
        /// Bytes of data from memory that are written to the banks in a cycle, in which no store to global or local memory is.
        fill_bytes: u32 where 1..=1024,
        /// A store that misses has a line until it is acknowledged: other stores to the line count as hits meanwhile.
        store_allocates: bool,
    }
}

spec! {
    /// Shared memory.
    pub struct Shared {
        /// Cycles from the issue of a load to the issue of an instruction that needs its result.
        load_latency: u32 where 1..=4096,
        /// Cycles from the issue of an atomic to the issue of an instruction that needs its result.
        atomic_latency: u32 where 1..=4096,
        /// Cycles that each further lane on the same address adds to an atomic.
        atomic_lane_latency: u32 where 0..=1024,
        /// Cycles for which each further lane on the same address keeps others from the banks.
        atomic_lane_busy: u32 where 0..=1024,
        /// Times that a compare-and-swap goes to the banks for each lane; other atomics go once.
        cas_rounds: u32 where 1..=16,
        /// Cycles from the issue of a shuffle to the issue of an instruction that needs its result.
        shuffle_latency: u32 where 1..=4096,
        /// Cycles more until the predicate of a shuffle can be a guard.
        shuffle_guard_latency: u32 where 0..=1024,
    }
}

spec! {
    /// Load-store unit: queues of the sub-cores, address units, and the memory that first-level cache and shared memory split.
    pub struct Spec {
        /// Accesses to global and local memory that a sub-core can have waiting.
        global_queue: u32 where 1..=1024,
        /// Accesses to shared memory and shuffles that a sub-core can have waiting.
        shared_queue: u32 where 1..=1024,
        /// Cycles that a sub-core's address unit takes for an access.
        address_interval: u32 where 1..=1024,
        /// Cycles that a sub-core takes for each 32-bit register of a lane that a load brings.
        load_interval: u32 where 0..=1024,
        /// Cycles that a sub-core takes for each 32-bit register of a lane after the first that a store sends.
        store_interval: u32 where 0..=1024,
        /// Cycles between two accesses that the SM's unit takes from the sub-cores.
        accept_interval: u32 where 1..=1024,
        /// Cycles from issue to the tags or banks when nothing is in the way.
        address_latency: u32 where 0..=4096,
        /// Cycles that each further pass through the banks adds to the latency of one access; others use the cycles between.
        replay_latency: u32 where 0..=1024,
        /// Cycles that loads of four registers a lane take more.
        quad_latency: u32 where 0..=1024,
        /// Cycles from issue until a load has read its address.
        load_read: u32 where 0..=4096,
        /// ... a load from shared memory.
        shared_load_read: u32 where 0..=4096,
        /// ... until a store to global memory has read address and data.
        store_read: u32 where 0..=4096,
        /// ... a store to shared memory.
        shared_store_read: u32 where 0..=4096,
        /// Cycles for which reading a special register keeps loads from the banks.
        special_cycles: u32 where 0..=64,
        /// Cycles for which each place of a constant load keeps stores from the banks.
        constant_cycles: u32 where 0..=64,
        /// Cycles from the issue of an operation whose guard holds for no lane to the issue of an instruction that needs its
        /// result: it goes the way of one that touches memory.
        idle_latency: u32 where 1..=4096,
        parts {
            /// First-level cache.
            l1: L1,
            /// Shared memory.
            shared: Shared,
        }
    }
}

impl Spec {
    /// Rules between the numbers of the unit.
    pub fn check(&self, checks: &mut Checks) {
        checks.power_of_two("sm.load_store.l1.sets", self.l1.sets.into());
        checks.power_of_two("sm.load_store.l1.tags_per_cycle", self.l1.tags_per_cycle.into());
        let shortest = self.l1.load_latency.min(self.shared.load_latency).min(self.shared.shuffle_latency);
        checks.that(
            "sm.load_store.address_latency",
            self.address_latency <= shortest,
            format!("is {}", self.address_latency),
            format!("it is a part of the latency of loads and shuffles, at most {shortest}"),
        );
    }
}
