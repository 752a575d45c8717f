//! A machine's configuration: every number of every block, read strictly from TOML.

use crate::spec;

spec! {
    /// A whole machine.
    pub struct Config {
        /// What the configuration is called.
        name: String,
        /// What it stands for, in a sentence.
        description: String,
        /// Core clock in MHz; all latencies and rates are in cycles of it.
        clock_mhz: u32,
        /// Cycles between two exchange points: between them SMs do not see each other. No path between two SMs may be shorter.
        quantum: u32,
        /// TPCs of each GPC.
        tpcs: Vec<u32>,
        /// SMs of a TPC.
        sms_per_tpc: u32,
        /// Bytes of device memory.
        memory_bytes: u64,
        parts {
            /// I/O unit: the link to the host; commands and data cross it.
            io: crate::io::Spec,
            /// Host interface: reads push buffers and hands commands to the front end.
            host: crate::host::Spec,
            /// Front end: decodes commands and sends tasks and state to their units.
            front_end: crate::front_end::Spec,
            /// Compute scheduler unit: keeps tasks by priority and gives them to work distribution.
            compute_scheduler: crate::compute_scheduler::Spec,
            /// Compute work distribution: places CTAs on SMs.
            distribution: crate::distribution::Spec,
            /// GPC: pipeline manager, first level of address translation, cache behind the instruction and constant caches of its SMs, and the point where equal requests of its SMs meet.
            gpc: crate::gpc::Spec,
            /// TPC: SMs that share a port to the crossbar.
            tpc: crate::tpc::Spec,
            /// Crossbar: virtual channels between GPCs and memory partitions.
            crossbar: crate::crossbar::Spec,
            /// Second-level cache: slices in two halves.
            l2: crate::l2::Spec,
            /// DRAM: channels, banks, row buffers, refresh.
            dram: crate::dram::Spec,
            /// Streaming multiprocessor.
            sm: crate::sm::Spec,
        }
    }
}

impl Config {
    /// SMs of the machine.
    pub fn sms(&self) -> u32 {
        self.tpcs.iter().sum::<u32>() * self.sms_per_tpc
    }
}
