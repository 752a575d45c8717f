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
//! | `service.rs` | requests of a launch become versions, code grows, tables of larger sets of threads |
//! | `services.rs`, `room.rs` | all launches that run at once, and room for their code |
//! | `instrument.rs` | code with instructions that gather profiles |
//! | `report.rs` | what was done, for users |

mod instrument;
mod report;
mod room;
mod service;
mod services;
mod spec;
mod table;
mod watching;

pub use report::{BlockReport, Event, Happened, Mean, Optimized, Tally, VersionReport};
pub(crate) use room::most_instructions;
pub(crate) use service::Kept;
pub(crate) use services::{Saved as SavedServices, Services};
pub use spec::{Invalidation, Profiling, Source, Spec, Translation};
pub use table::{Entry, Level, Table};
pub use watching::{Checked, Known, Placed, Watcher, Watching};

use crate::units::Cycle;
use optimizer::Profile;

/// Bytes of an instruction in memory.
pub(crate) const INSTRUCTION_BYTES: u32 = crate::ppu::INSTRUCTION_BYTES as u32;

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

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Who, String> {
        let found = Who::ALL.into_iter().find(|w| w.name() == text);
        found.ok_or_else(|| {
            format!("there is no optimizer `{text}`: use {}", Who::ALL.map(Who::name).join(", "))
        })
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

impl Options {
    pub fn new(level: Level, who: Who) -> Options {
        Options { level, who, copies: false }
    }

    /// What a setting asks for: `off`, a level, or a level and who optimizes behind a comma.
    pub fn read(text: &str) -> Result<Option<Options>, String> {
        let (level, who) = text.split_once(',').unwrap_or((text, Who::Host.name()));
        if level == "off" {
            return Ok(None);
        }
        Ok(Some(Options::new(level.parse()?, who.parse()?)))
    }
}

/// A set of threads wants a better version of a block.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for level in Level::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
            for who in Who::ALL {
                assert_eq!(Options::read(&format!("{level},{who}")), Ok(Some(Options::new(level, who))));
            }
        }
        assert_eq!(Options::read("off"), Ok(None));
        assert_eq!(Options::read("sm"), Ok(Some(Options::new(Level::Sm, Who::Host))));
        assert!(Options::read("all").is_err_and(|e| e.contains("warp, cta, sm, tpc, gpc, ppu")));
        assert!(Options::read("sm,me").is_err_and(|e| e.contains("early-warp")));
    }
}
