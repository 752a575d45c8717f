//! Specification of the dynamic optimizer.

use crate::spec;
use serde::{Deserialize, Serialize};

/// When code becomes blocks that can be watched and optimized.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Translation {
    /// The whole program, when it is loaded.
    Load,
    /// A block, when it is first to be optimized.
    Demand,
    /// The same for every set of threads by itself.
    Instance,
}

/// What an optimization starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The program's code, which is translated again each time.
    Bytecode,
    /// The block as it was translated.
    Block,
    /// That, and what became of the assumptions of the last version.
    Mix,
}

/// How profiles are gathered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profiling {
    /// By counters beside the warps: it takes no cycles.
    Counters,
    /// By instructions that are put into the code: it takes what they take.
    Instructions,
}

/// What caches of instructions forget when code is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invalidation {
    /// Lines with barriers that lead elsewhere now: nothing else changes.
    Lines,
    All,
}

spec! {
    /// Dynamic optimizer: blocks between barriers are profiled, optimized and replaced while a kernel runs.
    pub struct Spec {
        /// When code becomes blocks: "load", "demand" or "instance" (for every set of threads by itself).
        translation: Translation,
        /// What an optimization starts from: "bytecode" (translated again each time), "block" (as it was translated) or "mix" (that, and what became of the assumptions of the last version).
        source: Source,
        /// How profiles are gathered: "counters" (at no cost) or "instructions" (put into the code).
        profiling: Profiling,
        /// Instructions that are put before each place of the code that is watched.
        profiling_instructions: u32 where 1..=64,
        /// Cycles from a request at a barrier until the host has it, and from a version until the machine has it, together.
        host_latency: u32 where ..=100_000_000,
        /// Cycles that the host takes for a unit of work: an instruction that is looked at.
        host_unit: u32 where ..=1_000_000,
        /// Issue slots that a warp which optimizes takes for a unit of work.
        warp_unit: u32 where 1..=1_000_000,
        /// Cycles between two issue slots of a warp that optimizes.
        warp_interval: u32 where 1..=4096,
        /// Units of work that translating an instruction takes.
        translation_work: u32 where ..=1_000_000,
        /// Executions of a block by a set of threads before it is optimized, and between two times.
        executions: u32 where 1..=1_000_000,
        /// A block is optimized again while a counter of its profile, taken for a thousand entries, differs by more than this from the one behind its last version.
        threshold: u32 where ..=1_000_000_000,
        /// Times that a set of threads optimizes a block at most.
        attempts: u32 where 1..=1000,
        /// A version is given up when one of its assumptions fails more than once in so many checks.
        failures_one_in: u32 where 1..=1_000_000,
        /// A version is given up when its executions take more cycles than those before it, by so many percent.
        slower_percent: u32 where ..=1000,
        /// Executions of a version before that is looked at.
        trial_executions: u32 where 1..=1_000_000,
        /// What the instruction caches of a set of threads forget when its code is replaced: "lines" (with barriers that lead elsewhere now) or "all".
        invalidation: Invalidation,
        /// Lines of a version's code that an SM asks for when the version has come, before warps go there.
        fetch_ahead: u32 where ..=4096,
        /// Bytes of code that versions may take.
        code_bytes: u32 where 256..=1 << 24,
    }
}
