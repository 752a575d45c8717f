//! What the machine counts. One list declares a counter, its meaning and how lists are added up.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Counters of a launch, of one SM or of the memory behind the SMs; they add up.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Counters {
            pub fn add(&mut self, other: &Counters) {
                $(self.$name += other.$name;)*
            }

            /// Names, values and meanings, in the order of the declaration.
            pub fn list(&self) -> Vec<(&'static str, u64, &'static str)> {
                vec![$((stringify!($name), self.$name, concat!($($doc),+).trim_ascii()),)*]
            }
        }
    };
}

counters! {
    /// Warp instructions executed.
    warp_instructions,
    /// Thread instructions executed.
    thread_instructions,
    /// Cycles in which an SM held at least one warp, summed over SMs.
    sm_active_cycles,
    /// Warps resident, summed over the active cycles of all SMs.
    warp_cycles,
    /// Cycles of schedulers that issued, summed over all.
    issue_cycles,
    /// Cycles of schedulers with at least one warp that could issue.
    eligible_cycles,
    /// Warps that could issue, summed over scheduler cycles.
    eligible_warps,
    /// Instructions issued to each kind of pipe: integer.
    pipe_alu,
    /// ... single-precision multiply-add.
    pipe_fma,
    /// ... half precision.
    pipe_half,
    /// ... double precision.
    pipe_fp64,
    /// ... special functions and conversions.
    pipe_xu,
    /// ... loads, stores, shuffles.
    pipe_lsu,
    /// ... uniform datapath.
    pipe_uniform,
    /// ... branches.
    pipe_branch,
    /// ... tensor.
    pipe_tensor,
    /// ... texture.
    pipe_tex,
    /// CTAs run to their end.
    ctas,
    /// Instruction lines asked of the level-0 instruction cache, and misses there.
    icache_requests,
    /// ... misses.
    icache_misses,
    /// Constant-cache lookups.
    constant_requests,
    /// ... misses.
    constant_misses,
    /// Requests to the first-level cache: one a warp instruction on global or local memory.
    l1_requests,
    /// Sectors that those requests look up.
    l1_sectors,
    /// ... found there.
    l1_hits,
    /// Sectors of global loads alone.
    l1_load_sectors,
    /// Sectors of global stores alone.
    l1_store_sectors,
    /// Requests to shared memory.
    shared_requests,
    /// Passes through the banks beyond the first that requests needed.
    bank_conflicts,
    /// Sectors looked up in the second-level cache, both halves.
    l2_sectors,
    /// ... found there.
    l2_hits,
    /// Sectors of loads from SMs.
    l2_load_sectors,
    /// Sectors of stores from SMs.
    l2_store_sectors,
    /// Sectors of atomics and reductions.
    l2_atomic_sectors,
    /// Sectors that crossed between the halves of the second level.
    l2_far_sectors,
    /// Requests that met one for the same sector on its way.
    coalesced_requests,
    /// Bytes read from DRAM.
    dram_read_bytes,
    /// Bytes written to DRAM.
    dram_write_bytes,
    /// DRAM accesses that found their row open.
    dram_row_hits,
    /// DRAM accesses.
    dram_accesses,
    /// Pages looked up in the TLBs.
    tlb_requests,
    /// ... not found.
    tlb_misses,
}
