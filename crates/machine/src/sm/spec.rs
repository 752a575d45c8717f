//! Specification of an SM.

use crate::config::Checks;
use crate::spec;
use serde::{Deserialize, Serialize};

/// How a scheduler orders its warps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Loose round robin: the next one after the last that issued.
    Lrr,
    /// Greedy, then the oldest.
    Gto,
    /// Greedy, then the youngest.
    Youngest,
    /// A few warps take turns before all others.
    TwoLevel,
    /// The one that has been able to issue for longest.
    Oldest,
    /// The greatest weight, made of credits and more.
    Credit,
    /// The oldest instruction of a window.
    Window,
}

impl Policy {
    pub const ALL: [Policy; 7] = [
        Policy::Lrr,
        Policy::Gto,
        Policy::Youngest,
        Policy::TwoLevel,
        Policy::Oldest,
        Policy::Credit,
        Policy::Window,
    ];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Lrr => "lrr",
            Policy::Gto => "gto",
            Policy::Youngest => "youngest",
            Policy::TwoLevel => "two-level",
            Policy::Oldest => "oldest",
            Policy::Credit => "credit",
            Policy::Window => "window",
        }
    }
}

spec! {
    /// One execution pipe of a sub-core.
    pub struct Pipe {
        /// What it is called in reports.
        name: String,
        /// Lanes that enter in a cycle; a warp takes 32 over this many cycles.
        lanes: u32 where 1..=32,
        /// Warps that can wait in front of it, so that a busy pipe does not hold the scheduler; 0 for none.
        queue: u32 where 0..=64,
        /// Kinds of instructions it runs: alu, fma, imad, half, fp64, xu, uniform, branch, misc, tensor, global, shared, constant, tex.
        runs: Vec<String>,
    }
}

spec! {
    /// Cycles from the issue of an instruction to the issue of one that needs its result.
    pub struct Latency {
        /// Integer, logic, moves.
        alu: u32 where 0..=4096,
        /// Predicates as operands: of selections, carries, logic.
        predicate: u32 where 0..=4096,
        /// Predicates as guards of instructions and branches.
        guard: u32 where 0..=4096,
        /// More for a result of the multiply-add pipes that another pipe uses, the other way round, and for what goes to the
        /// load-store unit.
        pipe_crossing: u32 where 0..=4096,
        /// Single precision.
        fma: u32 where 0..=4096,
        /// Integer multiply-add.
        imad: u32 where 0..=4096,
        /// Integer multiply-add with a 64-bit result.
        imad_wide: u32 where 0..=4096,
        /// Packed halves.
        half: u32 where 0..=4096,
        /// Double precision.
        fp64: u32 where 0..=4096,
        /// Special functions, conversions, bit counts.
        xu: u32 where 0..=4096,
        /// Conversions of the fast pipes: from 32-bit integers to single precision, between half and single precision.
        conversion: u32 where 0..=4096,
        /// Uniform datapath.
        uniform: u32 where 0..=4096,
        /// A uniform result to the vector datapath, and from it.
        uniform_crossing: u32 where 0..=4096,
        /// Votes.
        vote: u32 where 0..=4096,
        /// Special registers read by the slow path.
        special_register: u32 where 0..=4096,
        /// From a branch to the issue of its target.
        branch: u32 where 0..=4096,
        /// From a branch not taken to the next instruction.
        branch_not_taken: u32 where 0..=4096,
        /// From the last arrival at a CTA barrier to the issue of the next instruction.
        barrier: u32 where 0..=4096,
        /// A memory barrier when nothing is outstanding.
        membar: u32 where 0..=4096,
        /// From a warp's last instruction to its slot being free.
        exit: u32 where 0..=4096,
        /// A call of the system: printf, malloc, free.
        system: u32 where 0..=65536,
    }
}

spec! {
    /// Streaming multiprocessor: schedulers with their register banks and pipes, and what they share.
    pub struct Spec {
        /// Warp slots.
        warps: u32 where 1..=64,
        /// Schedulers, each with its own registers and pipes; warp w belongs to number w modulo this.
        sub_cores: u32 where 1..=16,
        /// Instructions of one warp that a scheduler can issue in a cycle.
        dispatch_units: u32 where 1..=2,
        /// CTA slots.
        ctas: u32 where 1..=64,
        /// 32-bit registers.
        registers: u32 where 1..=1 << 24,
        /// Registers are given to a warp in multiples of this.
        register_unit: u32 where 1..=65536,
        /// Named barriers for all CTAs together.
        barriers: u32 where 1..=1024,
        /// Bytes of memory that first-level cache and shared memory split between them.
        l1_shared_bytes: u32 where 0..=1 << 22,
        /// Shared-memory sizes that the split can be set to, in bytes, ascending; the rest is cache.
        shared_splits: Vec<u32>,
        /// Shared bytes that every CTA takes for the system.
        shared_reserved: u32,
        /// Shared bytes are given to a CTA in multiples of this.
        shared_unit: u32 where 1..=65536,
        /// How schedulers order their warps: lrr, gto, youngest, two-level, oldest, credit or window.
        policy: Policy,
        /// Register banks of a sub-core.
        register_banks: u32 where 1..=4,
        /// Registers that a bank can read in a cycle.
        bank_ports: u32 where 1..=4,
        /// Cycles of register reads that can wait in front of a bank before the dispatcher is held.
        operand_buffer: u32 where 0..=64,
        /// Cycles that the barrier unit takes for each warp that arrives.
        barrier_interval: u32 where 0..=1024,
        /// Cycles between the starts of two warps of a CTA on an SM.
        warp_start_interval: u32 where 0..=1024,
        /// The pipes of a sub-core: name in reports, lanes that enter in a cycle (a warp takes 32 over this many cycles), and the kinds of instructions that it runs: alu, fma, imad, half, fp64, xu, uniform, branch, misc, tensor.
        pipes: Vec<Pipe>,
        parts {
            /// Policies of the schedulers that need more than an order of warps.
            scheduler: super::policy::Scheduler,
            /// Latencies of units.
            latency: Latency,
            /// Instruction supply: a cache a sub-core, one for the SM, and a prefetcher between them and the GPC's cache.
            fetch: super::fetch::Spec,
            /// Constant caches: one a sub-core for operands, one for loads, one behind both.
            constants: super::constants::Spec,
            /// Load-store unit: queues of the sub-cores, address units, and the memory that first-level cache and shared memory split.
            load_store: super::load_store::Spec,
            /// Trace cell: samples warps and sends records to memory, when the host asks for it.
            trace_cell: super::trace_cell::Spec,
            /// Suspending and restoring CTAs: what it takes beside the traffic.
            preemption: super::preemption::Spec,
        }
    }
}

/// Kinds of instructions that pipes run.
/// Pipes that a sub-core can have.
const MAX_PIPES: usize = 31;

const KINDS: [&str; 10] = ["alu", "fma", "imad", "half", "fp64", "xu", "uniform", "branch", "misc", "tensor"];

impl Spec {
    /// Rules between the numbers of an SM.
    pub fn check(&self, checks: &mut Checks) {
        self.scheduler.check(checks);
        self.fetch.check(checks);
        self.constants.check(checks);
        checks.multiple("sm.warps", self.warps.into(), self.sub_cores.into());
        checks.not_empty("sm.shared_splits", &self.shared_splits);
        checks.ascending("sm.shared_splits", &self.shared_splits);
        let largest = self.shared_splits.iter().copied().max().unwrap_or(0);
        checks.that(
            "sm.shared_splits",
            largest <= self.l1_shared_bytes,
            format!("has {largest}"),
            format!("the whole is `sm.l1_shared_bytes`, {}", self.l1_shared_bytes),
        );
        let (pipes, most) = (self.pipes.len(), MAX_PIPES);
        checks.that("sm.pipes", pipes <= most, format!("has {pipes}"), format!("at most {most}"));
        self.load_store.check(checks);
        for kind in KINDS {
            let runs = self.pipes.iter().any(|p| p.runs.iter().any(|r| r == kind));
            // A machine without tensor or double-precision pipes is a machine all the same.
            let optional = ["tensor", "fp64"].contains(&kind);
            checks.that(
                "sm.pipes",
                runs || optional,
                format!("has no pipe that runs {kind}"),
                format!("add \"{kind}\" to the `runs` of a pipe"),
            );
        }
        for pipe in &self.pipes {
            let unknown = pipe.runs.iter().find(|r| !KINDS.contains(&r.as_str()));
            checks.that(
                "sm.pipes",
                unknown.is_none(),
                format!("has `{}` that runs \"{}\"", pipe.name, unknown.map_or("", String::as_str)),
                format!("kinds are {}", KINDS.join(", ")),
            );
        }
    }
}
