//! Options that all commands have which optimize code while it runs, and what they show of it.

use crate::show::thousands;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use driver::machine::optimizing::{Event, Happened, Level, Optimized, Options, Who};
use driver::{Problem, Problems};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::str::FromStr;

/// Reads one of these names.
fn named<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Reads a level.
pub fn level() -> impl TypedValueParser<Value = Level> {
    named(Level::ALL.map(Level::name))
}

/// Reads who optimizes.
pub fn who() -> impl TypedValueParser<Value = Who> {
    named(Who::ALL.map(Who::name))
}

/// The largest sets of threads that share optimized code, where there are any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Upto(Option<Level>);

impl FromStr for Upto {
    type Err = String;

    fn from_str(text: &str) -> Result<Upto, String> {
        if text == OFF { Ok(Upto(None)) } else { text.parse().map(|level| Upto(Some(level))) }
    }
}

const OFF: &str = "off";

fn upto() -> impl TypedValueParser<Value = Upto> {
    named([OFF].into_iter().chain(Level::ALL.map(Level::name)))
}

#[derive(clap::Args, Clone, Copy, Serialize, Deserialize)]
pub struct Arguments {
    /// Optimize the code between barriers while it runs, from what its warps are seen to do; the largest sets of threads that
    /// share optimized code. Results stay the same (docs/optimizer.md).
    #[arg(long, value_name = "LEVEL", value_parser = upto(), default_value = OFF)]
    optimize: Upto,
    /// Who optimizes: the host on request, the first warp at a barrier, or a helper warp of each SM.
    #[arg(long, value_name = "WHO", value_parser = who(), default_value = "host")]
    optimizer: Who,
}

impl Arguments {
    /// What the machine is asked for.
    pub fn options(&self) -> Option<Options> {
        self.optimize.0.map(|level| Options::new(level, self.optimizer))
    }

    /// What cannot be had together.
    pub fn check(&self, functional: bool) -> Result<(), Problems> {
        if self.optimize.0.is_some() && functional {
            let problem = Problem::new("--optimize needs the timed machine");
            return Err(problem.help("leave out --functional").into());
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
