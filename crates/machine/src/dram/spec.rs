//! Specification of the block.

use crate::config::Checks;
use crate::spec;

spec! {
    /// DRAM: channels, banks, row buffers, refresh.
    pub struct Spec {
        /// Channels of all memory partitions together: a multiple of the number of L2 slices.
        channels: u32 where 1..=4096,
        /// Banks of a channel, a power of two.
        banks: u32 where 1..=4096,
        /// Bytes of a row, a power of two.
        row_bytes: u32 where 128..=1 << 20,
        /// Bytes of one access: a miss reads this many, whatever it asked for.
        access_bytes: u32 where 32..=128,
        /// Bytes that a channel's bus passes in a cycle.
        bytes_per_cycle: f64,
        /// Cycles to the controller, through its queues and back, besides those of the banks.
        latency: u32 where 0..=100_000,
        /// From opening a row to the first access in it (tRCD).
        row_to_column: u32 where 0..=10_000,
        /// From closing a row to opening another of the bank (tRP).
        precharge: u32 where 0..=10_000,
        /// From an access to its data (CL).
        column: u32 where 0..=10_000,
        /// From opening a row to opening the next of the bank, at least (tRC).
        row_cycle: u32 where 0..=10_000,
        /// From opening a row to opening one of another bank (tRRD).
        row_interval: u32 where 0..=64,
        /// Between two accesses to the open row of a bank (tCCD).
        column_interval: u32 where 0..=10_000,
        /// Cycles between two refreshes of a channel (tREFI); 0: none.
        refresh_interval: u32 where 0..=1 << 30,
        /// Cycles in which a refresh opens no row (tRFC).
        refresh: u32 where 0..=1 << 20,
    }
}

impl Spec {
    /// Rules between the numbers of DRAM, which has `slices` of the second-level cache before it.
    pub fn check(&self, checks: &mut Checks, slices: u32) {
        checks.multiple("dram.channels", self.channels.into(), slices.into());
        checks.power_of_two("dram.banks", self.banks.into());
        checks.power_of_two("dram.row_bytes", self.row_bytes.into());
        checks.power_of_two("dram.access_bytes", self.access_bytes.into());
        checks.rate("dram.bytes_per_cycle", self.bytes_per_cycle);
        checks.that(
            "dram.refresh",
            self.refresh_interval == 0 || self.refresh < self.refresh_interval,
            format!("is {}", self.refresh),
            "it must be less than `dram.refresh_interval`",
        );
    }
}
