//! The dynamic optimizer: machine code between two barriers, what is seen of it while it runs, and a better version of it.
//!
//! Everything here is a pure function of code, profile and limits. Who collects profiles, when a version is made, what that
//! costs and who runs it is for others to say.
//!
//! | module | holds |
//! | --- | --- |
//! | [`blocks`] | translation: a function cut into blocks that barriers bound |
//! | [`profile`] | what was seen of a block, and how it is recorded |
//! | [`liveness`] | which registers are read before they are written |
//! | [`sites`] | which instructions of a block are worth watching, and what for |
//! | [`version`] | an optimized block: code, where it came from, what it assumes |
//! | `optimize` | the way from one to the other; its parts, in their order: |
//! | `whole` | where all lanes of a warp are together |
//! | `stable` | what stays the same from one execution to the next |
//! | `trace` | the likely ways through a block, loops unrolled |
//! | `convert` | branches that become guarded code, and guarded code that is gone around |
//! | `graph` | a trace in values instead of registers |
//! | `specialise`, `fold`, `evaluate` | values that turn out known, and what follows from them |
//! | `apart`, `memory` | loads that need not be repeated; what may change places |
//! | `widen` | loads of neighbouring words that become one |
//! | `simplify`, `gather` | what is computed twice or for nobody; ways out that can be taken at once |
//! | `order`, `assign`, `emit`, `reuse` | the order of instructions, registers, code, operands that are kept |
//! | `explain` | all that as text |
//! | [`damaged`] | what the fuzz target runs |
//!
//! # Contract
//! Where a version begins, where it waits at a barrier, and wherever it goes back to the original code, every register, predicate,
//! uniform register and convergence register that the original still reads holds what it would hold there. Memory is accessed as
//! the original would, or less: no load is executed whose address the original would not have loaded from on that path, and floating-point
//! operations are never reassociated. So results and faults are the same bit for bit.

mod apart;
mod assign;
pub mod blocks;
mod convert;
pub mod damaged;
mod emit;
mod evaluate;
mod explain;
mod fold;
mod gather;
mod graph;
pub mod liveness;
mod memory;
mod optimize;
mod order;
pub mod profile;
mod reuse;
mod simplify;
pub mod sites;
mod specialise;
mod stable;
mod trace;
pub mod version;
mod whole;
mod widen;

pub use blocks::{Block, Blocks, translate};
pub use explain::explain;
pub use optimize::optimize;
pub use profile::{Profile, Recorder};
pub use sites::{Site, Watch, sites};
pub use version::{Assumption, Done, Kind, Limits, Source, Version};
