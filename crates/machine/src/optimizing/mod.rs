//! The dynamic optimizer in the machine: who makes versions of code while a kernel runs, when, and what that costs.
//!
//! What versions are and how they come about is `optimizer`'s; where they take the place of others is [`crate::sm::replacing`]'s. Everything
//! that goes beyond an SM happens here, at exchange points, in the order of cycles and SMs.
//!
//! | file | holds |
//! | --- | --- |
//! | `spec.rs` | what things cost, and when they are done |
//! | `table.rs` | version tables: publication, merging |
//! | `watching.rs` | what warps tell of the code that they run |
//! | `service.rs` | requests become versions, code grows, tables of larger sets of threads |
//! | `instrument.rs` | code with instructions that gather profiles |
//! | `report.rs` | what was done, for users |

mod instrument;
mod report;
mod service;
mod spec;
mod table;
mod watching;

pub use report::{BlockReport, Event, Happened, Mean, Optimized, Tally, VersionReport};
pub(crate) use service::{Kept, Service};
pub use spec::{Invalidation, Profiling, Spec, Translation};
pub use table::{Entry, Level, Table};
pub use watching::{Checked, Known, Placed, Watcher};

use crate::units::Cycle;
use optimizer::Profile;

/// Who makes versions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// The host, on request: it takes none of an SM's cycles.
    Host,
    /// The first warp at a barrier, while others of its CTA still run.
    EarlyWarp,
    /// A warp of the SM that does nothing else.
    Helper,
}

impl Who {
    pub const ALL: [Who; 3] = [Who::Host, Who::EarlyWarp, Who::Helper];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Who::Host => "host",
            Who::EarlyWarp => "early-warp",
            Who::Helper => "helper",
        }
    }
}

/// How a launch is optimized while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// The largest sets of threads that share versions.
    pub level: Level,
    pub who: Who,
    /// Blocks that nothing can be gained for are replaced by copies: it shows what replacing takes.
    pub copies: bool,
}

/// A set of threads wants a better version of a block.
#[derive(Clone, Debug)]
pub struct Request {
    pub at: Cycle,
    pub sm: u16,
    /// CTA slot, and the unit in it.
    pub slot: usize,
    pub unit: usize,
    pub block: u32,
    /// What it runs now.
    pub base: Option<Entry>,
    /// It never asked for this block before.
    pub is_first: bool,
    /// Versions that it gave up.
    pub bad: Vec<u32>,
    pub profile: Profile,
}

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub slot: usize,
    pub unit: usize,
    pub block: u32,
    /// None where there is nothing to gain.
    pub entry: Option<Entry>,
    /// When it is there; never where a warp has to work for it.
    pub ready: u64,
    /// Issue slots of that work.
    pub slots: u64,
}
