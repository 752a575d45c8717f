//! Specification of the trace cell.

use crate::spec;

spec! {
    /// Trace cell: samples warps and sends records to memory, when the host asks for it.
    pub struct Spec {
        /// Records that wait in the cell.
        fifo: u32 where 1..=4096,
        /// Records that the cell reads in a cycle from the schedulers' tables of warps.
        records_per_cycle: u32 where 1..=64,
        /// Bytes a cycle of the cell's own path to memory.
        own_bytes_per_cycle: u32 where 1..=1024,
        /// Bytes a cycle of the performance monitor's stream, if records take that.
        stream_bytes_per_cycle: u32 where 1..=1024,
    }
}
