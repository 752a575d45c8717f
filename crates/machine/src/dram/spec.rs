//! Specification of the block.

use crate::spec;

spec! {
    /// DRAM: channels, banks, row buffers, refresh.
    pub struct Spec {
        /// Channels of all memory partitions together: a multiple of the number of L2 slices of a half.
        channels: u32,
        /// Banks of a channel.
        banks: u32,
        /// Bytes of a row.
        row_bytes: u32,
        /// Bytes of one access: a miss reads this many, whatever it asked for.
        access_bytes: u32,
        /// Bytes that a channel's bus passes in a cycle.
        bytes_per_cycle: f64,
        /// Cycles to the controller, through its queues and back, besides those of the banks.
        latency: u32,
        /// From opening a row to the first access in it (tRCD).
        row_to_column: u32,
        /// From closing a row to opening another of the bank (tRP).
        precharge: u32,
        /// From an access to its data (CL).
        column: u32,
        /// From opening a row to opening the next of the bank, at least (tRC).
        row_cycle: u32,
        /// Between two accesses to the open row of a bank (tCCD).
        column_interval: u32,
        /// Cycles between two refreshes of a channel (tREFI); 0: none.
        refresh_interval: u32,
        /// Cycles in which a refresh opens no row (tRFC).
        refresh: u32,
    }
}
