//! Specification of an SM.

use crate::spec;
use serde::{Deserialize, Serialize};

/// How a scheduler orders its warps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Loose round robin: the next one after the last that issued.
    Lrr,
    /// Greedy, then the oldest.
    Gto,
    /// Greedy, then the youngest.
    Youngest,
}

spec! {
    /// One execution pipe of a sub-core.
    pub struct Pipe {
        /// What it is called in reports.
        name: String,
        /// Lanes that enter in a cycle; a warp takes 32 over this many cycles.
        lanes: u32,
        /// Warps that can wait in front of it, so that a busy pipe does not hold the scheduler; 0 for none.
        queue: u32,
        /// Kinds of instructions it runs: alu, fma, imad, half, fp64, xu, uniform, branch, misc, tensor, global, shared, constant, tex.
        runs: Vec<String>,
    }
}

spec! {
    /// Cycles from the issue of an instruction to the issue of one that needs its result.
    pub struct Latency {
        /// Integer, logic, moves.
        alu: u32,
        /// Predicates of integer comparisons, for a guard or selection.
        predicate: u32,
        /// Single precision.
        fma: u32,
        /// Integer multiply-add.
        imad: u32,
        /// Integer multiply-add with a 64-bit result.
        imad_wide: u32,
        /// Packed halves.
        half: u32,
        /// Double precision.
        fp64: u32,
        /// Special functions, conversions, bit counts.
        xu: u32,
        /// Uniform datapath.
        uniform: u32,
        /// A uniform result to the vector datapath, and from it.
        uniform_crossing: u32,
        /// Votes.
        vote: u32,
        /// Special registers read by the slow path.
        special_register: u32,
        /// From a branch to the issue of its target.
        branch: u32,
        /// From a branch not taken to the next instruction.
        branch_not_taken: u32,
        /// From the last arrival at a CTA barrier to the issue of the next instruction.
        barrier: u32,
        /// A memory barrier when nothing is outstanding.
        membar: u32,
        /// From a warp's last instruction to its slot being free.
        exit: u32,
        /// A call of the system: printf, malloc, free.
        system: u32,
    }
}

spec! {
    /// Streaming multiprocessor: schedulers with their register banks and pipes, and what they share.
    pub struct Spec {
        /// Warp slots.
        warps: u32,
        /// Schedulers, each with its own registers and pipes; warp w belongs to number w modulo this.
        sub_cores: u32,
        /// Instructions of one warp that a scheduler can issue in a cycle.
        dispatch_units: u32,
        /// CTA slots.
        ctas: u32,
        /// 32-bit registers.
        registers: u32,
        /// Registers are given to a warp in multiples of this.
        register_unit: u32,
        /// Named barriers for all CTAs together.
        barriers: u32,
        /// Bytes of memory that first-level cache and shared memory split between them.
        l1_shared_bytes: u32,
        /// Shared-memory sizes that the split can be set to, in bytes, ascending; the rest is cache.
        shared_splits: Vec<u32>,
        /// Shared bytes that every CTA takes for the system.
        shared_reserved: u32,
        /// Shared bytes are given to a CTA in multiples of this.
        shared_unit: u32,
        /// How schedulers order their warps: lrr, gto or youngest.
        policy: Policy,
        /// Register banks of a sub-core.
        register_banks: u32,
        /// Operands that a bank can read for one instruction without delay.
        bank_ports: u32,
        /// Cycles that the barrier unit takes for each warp that arrives.
        barrier_interval: u32,
        /// Cycles between the starts of two warps of a CTA on an SM.
        warp_start_interval: u32,
        /// The pipes of a sub-core.
        pipes: Vec<Pipe>,
        parts {
            /// Latencies of units.
            latency: Latency,
            /// Instruction caches and prefetcher.
            fetch: super::fetch::Spec,
            /// Constant caches.
            constants: super::constants::Spec,
            /// Load-store unit: queues, first-level cache, shared memory.
            load_store: super::load_store::Spec,
        }
    }
}
