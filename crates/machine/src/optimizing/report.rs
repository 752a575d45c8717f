//! What the dynamic optimizer did, for users.

use super::table::Level;
use super::watching::Checked;
use super::{Options, Placed};
use optimizer::{Blocks, Profile, Version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Cycles of executions. The first is left out where there are others: it found no code in the caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Mean {
    first: Option<u64>,
    sum: u64,
    squares: u64,
    count: u64,
}

/// Standard errors by which two means must differ.
const ERRORS: u128 = 2;

impl Mean {
    pub fn add(&mut self, cycles: u64) {
        match self.first {
            None => self.first = Some(cycles),
            Some(_) => {
                self.sum += cycles;
                self.squares = self.squares.saturating_add(cycles.saturating_mul(cycles));
                self.count += 1;
            }
        }
    }

    /// Executions after the first.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn is_known(&self) -> bool {
        self.first.is_some()
    }

    pub fn cycles(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(self.first.unwrap_or(0))
    }

    /// The variance of the mean, for a thousandth of a cycle; none where too little was seen.
    fn spread(&self) -> Option<u128> {
        let (n, sum) = (u128::from(self.count), u128::from(self.sum));
        let squares = (u128::from(self.squares) * n).saturating_sub(sum * sum);
        (n > 1).then(|| squares * 1000 / (n * n * (n - 1)))
    }

    /// Whether it is above another by more than so many percent, and by more than executions differ among each other.
    pub fn is_above(&self, other: &Mean, percent: u64) -> bool {
        let limit = other.cycles() * (100 + percent) / 100;
        let above = u128::from(self.cycles().saturating_sub(limit));
        let own = self.spread().unwrap_or(0);
        // One execution may lie as far off as those of the other do.
        let spread = own + other.spread().unwrap_or(own * u128::from(self.count));
        above > 0 && above * above * 1000 > ERRORS * ERRORS * spread
    }

    fn merge(&mut self, other: &Mean) {
        self.first = self.first.or(other.first);
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.count += other.count;
    }
}

/// What happened to a version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happened {
    Made {
        block: u32,
        version: u32,
    },
    /// A set of threads runs it from now on.
    Replaced {
        block: u32,
        version: u32,
    },
    RolledBack {
        block: u32,
        version: u32,
        why: Box<Happened>,
    },
    /// An assumption failed too often.
    Failed,
    /// It took longer than what it replaced.
    Slower,
    /// Threads of a set of this level waited together, and share versions.
    Merged(Level),
}

/// Something that happened, when and to whom.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Cycles since the launch began.
    pub at: u64,
    pub sm: Option<u16>,
    /// CTA, and the unit in it.
    pub threads: Option<(u64, u32)>,
    pub what: Happened,
}

impl Event {
    pub fn new(at: u64, sm: u16, threads: Option<(u64, u32)>, what: Happened) -> Event {
        Event { at, sm: Some(sm), threads, what }
    }
}

/// What an SM counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Cycles of executions of blocks by units: the originals by block, versions by number.
    originals: Vec<Mean>,
    versions: Vec<Mean>,
    pub checked: BTreeMap<u32, Checked>,
    /// Issue slots that optimizing warps took, and jobs that they finished.
    pub slots: u64,
    pub jobs: u64,
    /// Times that instruction caches were invalidated.
    pub invalidated: u64,
    /// Versions that lost against others.
    pub discarded: u64,
}

impl Tally {
    pub fn new(blocks: usize) -> Tally {
        Tally { originals: vec![Mean::default(); blocks], ..Tally::default() }
    }

    pub fn resize(&mut self, versions: usize) {
        self.versions.resize(versions, Mean::default());
    }

    pub fn add(&mut self, block: u32, version: Option<u32>, cycles: u64) {
        let mean = match version {
            None => self.originals.get_mut(block as usize),
            Some(v) => self.versions.get_mut(v as usize),
        };
        if let Some(mean) = mean {
            mean.add(cycles);
        }
    }

    pub fn merge(&mut self, other: &Tally) {
        let (blocks, versions) = (other.originals.len(), other.versions.len());
        self.originals.resize(self.originals.len().max(blocks), Mean::default());
        self.versions.resize(self.versions.len().max(versions), Mean::default());
        self.originals.iter_mut().zip(&other.originals).for_each(|(a, b)| a.merge(b));
        self.versions.iter_mut().zip(&other.versions).for_each(|(a, b)| a.merge(b));
        for (place, c) in &other.checked {
            let all = self.checked.entry(*place).or_default();
            (all.checks, all.failed) = (all.checks + c.checks, all.failed + c.failed);
        }
        self.slots += other.slots;
        self.jobs += other.jobs;
        self.invalidated += other.invalidated;
        self.discarded += other.discarded;
    }
}

/// A block of the program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockReport {
    pub block: u32,
    /// The place where it begins.
    pub entry: u32,
    pub instructions: u32,
    /// Executions of the original by sets of threads, and cycles of one.
    pub executions: u64,
    pub cycles: u64,
}

/// A version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VersionReport {
    pub version: u32,
    pub block: u32,
    /// How often the block had been optimized.
    pub level: u32,
    /// Cycles since the launch began when it was asked for.
    pub at: u64,
    pub first: u32,
    pub instructions: u32,
    /// Places of the original that its instructions come from.
    pub origin: Vec<u32>,
    /// In short: those of one sort are counted.
    pub assumptions: Vec<String>,
    pub checks: u64,
    pub failures: u64,
    /// Executions by sets of threads, and cycles of one.
    pub executions: u64,
    pub cycles: u64,
    /// Cycles that one warp was thought to gain.
    pub gain: u64,
    pub work: u64,
    /// Sets of threads that took it, and those that gave it up.
    pub taken: u64,
    pub given_up: u64,
}

/// What was done during a launch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Optimized {
    pub options: Options,
    pub blocks: Vec<BlockReport>,
    pub versions: Vec<VersionReport>,
    pub events: Vec<Event>,
    /// Requests for versions.
    pub requests: u64,
    /// Issue slots that optimizing warps took.
    pub slots: u64,
    pub invalidated: u64,
    pub discarded: u64,
    /// Cycles for which the host worked.
    pub host_cycles: u64,
    /// For explanations: the code, and each version with the profile behind it.
    #[serde(skip)]
    pub code: Option<Blocks>,
    #[serde(skip)]
    pub made: Vec<(Version, Profile)>,
}

impl Optimized {
    pub(super) fn new(
        options: Options,
        blocks: &Blocks,
        made: &[(Version, Profile, u64, u32)],
        placed: &[Placed],
        tally: &Tally,
        mut events: Vec<Event>,
        start: u64,
    ) -> Optimized {
        events.sort_by_key(|e| (e.at, e.sm));
        events.iter_mut().for_each(|e| e.at = e.at.saturating_sub(start));
        let count =
            |is_it: &dyn Fn(&Happened) -> bool| events.iter().filter(|e| is_it(&e.what)).count() as u64;
        let times =
            |mean: Option<&Mean>| mean.map_or((0, 0), |m| (m.count() + u64::from(m.is_known()), m.cycles()));
        let versions = (0u32..).zip(made.iter().zip(placed)).map(|(n, ((v, _, at, _), placed))| {
            let checked = tally.checked.range(placed.first..placed.end);
            let sum = checked.fold(Checked::default(), |s, (_, c)| Checked {
                checks: s.checks + c.checks,
                failed: s.failed + c.failed,
            });
            let (executions, cycles) = times(tally.versions.get(n as usize));
            VersionReport {
                version: n,
                block: v.block,
                level: v.level,
                at: at.saturating_sub(start),
                first: placed.first,
                instructions: v.code.len() as u32,
                origin: v.origin.clone(),
                assumptions: optimizer::Kind::grouped(v.assumptions.iter().map(|a| a.kind)),
                checks: sum.checks,
                failures: sum.failed,
                executions,
                cycles,
                gain: v.gain,
                work: v.work,
                taken: count(&|w| matches!(w, Happened::Replaced { version, .. } if *version == n)),
                given_up: count(&|w| matches!(w, Happened::RolledBack { version, .. } if *version == n)),
            }
        });
        let versions = versions.collect();
        let of_block = |b: &optimizer::Block| {
            let (executions, cycles) = times(tally.originals.get(b.id as usize));
            BlockReport {
                block: b.id,
                entry: b.entry,
                instructions: b.places.len() as u32,
                executions,
                cycles,
            }
        };
        Optimized {
            options,
            blocks: blocks.blocks.iter().map(of_block).collect(),
            versions,
            events,
            requests: 0,
            slots: tally.slots,
            invalidated: tally.invalidated,
            discarded: tally.discarded,
            host_cycles: 0,
            code: Some(blocks.clone()),
            made: made.iter().map(|(v, p, ..)| (v.clone(), p.clone())).collect(),
        }
    }

    /// The code of a version and the one that it replaces, and what was seen of that.
    pub fn explain(&self, version: u32) -> String {
        let (Some(blocks), Some((v, profile))) = (&self.code, self.made.get(version as usize)) else {
            return String::new();
        };
        optimizer::explain(blocks, profile, v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(cycles: &[u64]) -> Mean {
        let mut m = Mean::default();
        // The first is left out.
        m.add(10_000);
        cycles.iter().for_each(|&c| m.add(c));
        m
    }

    #[test]
    fn a_mean_is_above_another_by_more_than_noise() {
        let old = mean(&[700, 900, 800, 650]);
        assert!(!mean(&[820, 950, 700, 900]).is_above(&old, 2), "executions differ by more than that");
        assert!(mean(&[1200, 1250, 1300, 1220]).is_above(&old, 2));
        assert!(!mean(&[500, 510, 505, 500]).is_above(&old, 2));
        assert!(!mean(&[102, 102, 102]).is_above(&mean(&[100, 100, 100]), 2), "two percent are allowed");
        assert!(mean(&[103, 103, 103]).is_above(&mean(&[100, 100, 100]), 2), "nothing differs");
        assert!(!mean(&[900, 500, 1000, 480]).is_above(&mean(&[600]), 2), "one execution tells little");
    }
}
