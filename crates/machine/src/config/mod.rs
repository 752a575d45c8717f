//! A machine's configuration: every number of every block, read strictly from TOML.

mod check;
mod error;
mod page;
mod read;
mod render;

pub use check::Checks;
pub use error::{Error, Problem};
pub use page::page;
pub use render::value;

use crate::sm::Policy;
use crate::sm::policy::Accesses;
use crate::spec;
use crate::spec::{Explained, Key};

/// Names and texts of the configurations that come with the program.
const PRESETS: [(&str, &str); 3] = [
    ("tiny", include_str!("../../presets/tiny.toml")),
    ("classic", include_str!("../../presets/classic.toml")),
    ("h200", include_str!("../../presets/h200.toml")),
];

spec! {
    /// A whole machine.
    pub struct Config {
        /// What the configuration is called.
        name: String,
        /// What it stands for, in a sentence.
        description: String,
        /// Core clock in MHz; all latencies and rates are in cycles of it.
        clock_mhz: u32 where 1..=100_000,
        /// Cycles between two exchange points: between them SMs do not see each other. No path between two SMs may be shorter; an SM that asks its GPC for code or constants waits for it in between.
        quantum: u32 where 1..=4096,
        /// TPCs of each GPC.
        tpcs: Vec<u32> where 1..=64,
        /// SMs of a TPC.
        sms_per_tpc: u32 where 1..=16,
        /// Bytes of device memory.
        memory_bytes: u64 where 1 << 20..=1 << 40,
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
            /// Dynamic optimizer: blocks between barriers are profiled, optimized and replaced while a kernel runs.
            optimizer: crate::optimizing::Spec,
        }
    }
}

impl Config {
    /// Names of the configurations that come with the program.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// The text of a configuration that comes with the program.
    pub fn preset_text(name: &str) -> Option<&'static str> {
        PRESETS.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }

    /// A configuration that comes with the program.
    pub fn preset(name: &str) -> Result<Config, Error> {
        match Config::preset_text(name) {
            Some(text) => Config::read(text),
            None => Err(error::no_preset(name, None).into()),
        }
    }

    /// Reads a configuration: all keys, or `base = "PRESET"` and the keys that differ from it.
    pub fn read(text: &str) -> Result<Config, Error> {
        read::read(text)
    }

    /// The configuration as TOML with an explanation for each key. Reading it gives the same configuration.
    pub fn render(&self) -> String {
        render::render(self)
    }

    /// All keys, in the order of [`Config::render`].
    pub fn keys() -> Vec<Key> {
        let mut keys = Vec::new();
        Config::explain("", &mut keys);
        keys
    }

    /// The keys that a user means: one by its path or, where that is unique, by its name alone, or all of a table.
    pub fn select(path: &str) -> Result<Vec<Key>, Problem> {
        let keys = Config::keys();
        let inside = format!("{path}.");
        let named = |k: &Key| k.split().0 == path && !k.is_table();
        let alone = keys.iter().filter(|k| named(k)).count() == 1 && keys.iter().all(|k| k.path != path);
        let wanted = |k: &&Key| k.path == path || k.path.starts_with(&inside) || (alone && named(k));
        let found: Vec<Key> = keys.iter().filter(wanted).cloned().collect();
        if found.is_empty() { Err(error::no_key(path, &keys)) } else { Ok(found) }
    }

    /// Keys and their values as TOML writes them, without tables.
    pub fn values(&self) -> Vec<(Key, toml::Value)> {
        render::values(self)
    }

    /// Cycles from a request of an SM to an answer of its GPC, at least.
    pub fn nearest_answer(&self) -> u32 {
        2 * self.tpc.latency + self.gpc.l15_latency
    }

    /// Changes the schedulers: a policy's name, with `+grants` where cache accesses wait for grants.
    pub fn set_scheduler(&mut self, text: &str) -> Result<(), Problem> {
        let (name, with) = text.split_once('+').unwrap_or((text, ""));
        let policy = Policy::ALL.into_iter().find(|p| p.name() == name);
        let (Some(policy), true) = (policy, ["", "grants"].contains(&with)) else {
            return Err(error::no_scheduler(text));
        };
        self.sm.policy = policy;
        self.sm.scheduler.grants.accesses = if with.is_empty() { Accesses::None } else { Accesses::Loads };
        Ok(())
    }

    /// SMs of the machine.
    pub fn sms(&self) -> u32 {
        self.tpcs.iter().sum::<u32>() * self.sms_per_tpc
    }
}
