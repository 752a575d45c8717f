//! Options that all commands have which optimize code while it runs, and what they show of it.

use crate::show::thousands;
use driver::machine::optimizing::{Event, Happened, Level, Optimized, Options, Who};
use driver::{Problem, Problems};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The largest sets of threads that share optimized code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Serialize, Deserialize)]
pub enum Upto {
    #[default]
    Off,
    Warp,
    Cta,
    Sm,
    Tpc,
    Gpc,
    Ppu,
}

/// Who optimizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Serialize, Deserialize)]
pub enum By {
    #[default]
    Host,
    EarlyWarp,
    Helper,
}

impl By {
    pub fn who(self) -> Who {
        match self {
            By::Host => Who::Host,
            By::EarlyWarp => Who::EarlyWarp,
            By::Helper => Who::Helper,
        }
    }
}

impl Upto {
    pub fn level(self) -> Option<Level> {
        Some(match self {
            Upto::Off => return None,
            Upto::Warp => Level::Warp,
            Upto::Cta => Level::Cta,
            Upto::Sm => Level::Sm,
            Upto::Tpc => Level::Tpc,
            Upto::Gpc => Level::Gpc,
            Upto::Ppu => Level::Ppu,
        })
    }
}

#[derive(clap::Args, Clone, Copy, Serialize, Deserialize)]
pub struct Arguments {
    /// Optimize the code between barriers while it runs, from what its warps are seen to do; the largest sets of threads that
    /// share optimized code. Results stay the same (docs/optimizer.md).
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    optimize: Upto,
    /// Who optimizes: the host on request, the first warp at a barrier, or a helper warp of each SM.
    #[arg(long, value_name = "WHO", value_enum, default_value_t)]
    optimizer: By,
}

impl Arguments {
    /// What the machine is asked for.
    pub fn options(&self) -> Option<Options> {
        self.optimize.level().map(|level| Options { level, who: self.optimizer.who(), copies: false })
    }

    /// What cannot be had together.
    pub fn check(&self, functional: bool, checkpoints: bool, streams: bool) -> Result<(), Problems> {
        if self.optimize == Upto::Off {
            return Ok(());
        }
        let problem = |why: &str, help: &str| Err(Problem::new(why.to_owned()).help(help.to_owned()).into());
        if functional {
            return problem("--optimize needs the timed machine", "leave out --functional");
        }
        if checkpoints {
            return problem(
                "a launch that is optimized while it runs cannot be saved",
                "leave out --optimize or --checkpoint",
            );
        }
        if streams {
            return problem(
                "launches that run at once are not optimized while they run",
                "leave out --optimize, or streams and what makes CTAs take turns",
            );
        }
        Ok(())
    }
}

/// What was done, in lines.
pub fn text(optimized: &Optimized) -> String {
    let mut out = String::from("  Optimized while it ran\n");
    let _ = writeln!(
        out,
        "    level {}, by {}; {} requests, {} versions, caches invalidated {} times, {} issue slots",
        optimized.options.level.name(),
        optimized.options.who.name(),
        thousands(optimized.requests),
        optimized.versions.len(),
        thousands(optimized.invalidated),
        thousands(optimized.slots),
    );
    for v in &optimized.versions {
        let original = optimized.blocks.get(v.block as usize);
        let before = original.map_or(0, |b| b.cycles);
        let _ = writeln!(
            out,
            "    version {} of block {} (at {:#x}), level {}: taken {} times, given up {}; {} cycles instead of {}; {} \
             checks, {} failed",
            v.version,
            v.block,
            original.map_or(0, |b| b.entry),
            v.level,
            thousands(v.taken),
            thousands(v.given_up),
            thousands(v.cycles),
            thousands(before),
            thousands(v.checks),
            thousands(v.failures),
        );
        for a in &v.assumptions {
            let _ = writeln!(out, "      assumes that {a}");
        }
    }
    out
}

/// What happened, an event a line.
pub fn log(optimized: &Optimized, most: usize) -> String {
    let mut out = String::new();
    for e in optimized.events.iter().take(most) {
        let _ = writeln!(out, "{:>12}  {}{}", thousands(e.at), place(e), what(&e.what));
    }
    if optimized.events.len() > most {
        let _ = writeln!(out, "{:>12}  and {} more events", "", optimized.events.len() - most);
    }
    out
}

fn place(e: &Event) -> String {
    let sm = e.sm.map(|sm| format!("SM {sm}, ")).unwrap_or_default();
    sm + &e.threads.map(|(cta, _)| format!("CTA {cta}: ")).unwrap_or_default()
}

fn what(h: &Happened) -> String {
    match h {
        Happened::Made { block, version } => {
            format!("version {version} of block {block} is asked for and made")
        }
        Happened::Replaced { block, version } => {
            format!("version {version} takes the place of block {block}")
        }
        Happened::RolledBack { block, version, why } => {
            format!("version {version} of block {block} is given up: {}", what(why))
        }
        Happened::Failed => "an assumption failed too often".into(),
        Happened::Slower => "it is slower than what it replaced".into(),
        Happened::Merged(level) => format!("all threads of the {} wait: versions are merged", level.name()),
    }
}
