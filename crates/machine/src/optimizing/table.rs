//! Version tables: which version of a block each set of threads runs.

use serde::{Deserialize, Serialize};

/// Sets of threads that are synchronised together, from the smallest to the largest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Warp,
    Cta,
    Sm,
    Tpc,
    Gpc,
    Ppu,
}

impl Level {
    pub const ALL: [Level; 6] = [Level::Warp, Level::Cta, Level::Sm, Level::Tpc, Level::Gpc, Level::Ppu];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Warp => "warp",
            Level::Cta => "cta",
            Level::Sm => "sm",
            Level::Tpc => "tpc",
            Level::Gpc => "gpc",
            Level::Ppu => "ppu",
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        let found = Level::ALL.into_iter().find(|l| l.name() == text);
        found.ok_or_else(|| {
            format!("there is no level `{text}`: use {}", Level::ALL.map(Level::name).join(", "))
        })
    }
}

/// A version as a table has it: its number, which stands for its place in memory, and how often the block was optimized.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub version: u32,
    pub level: u32,
}

/// The versions that a set of threads runs, by block; none is the original.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    entries: Vec<Option<Entry>>,
}

impl Table {
    pub fn new(blocks: usize) -> Table {
        Table { entries: vec![None; blocks] }
    }

    pub fn get(&self, block: usize) -> Option<Entry> {
        self.entries.get(block).copied().flatten()
    }

    pub fn blocks(&self) -> usize {
        self.entries.len()
    }

    /// Whether it can be one of a program with so many blocks, of which there are so many versions.
    pub fn is_of(&self, blocks: usize, versions: usize) -> bool {
        let exists = |e: &Entry| (e.version as usize) < versions;
        self.blocks() == blocks && self.entries.iter().flatten().all(exists)
    }

    /// Publishes a version of a block: the one with the higher level stays, of equal ones the first. Whether this one did.
    pub fn publish(&mut self, block: usize, new: Entry) -> bool {
        match self.entries.get_mut(block) {
            Some(entry) if entry.is_none_or(|old| new.level > old.level) => {
                *entry = Some(new);
                true
            }
            _ => false,
        }
    }

    /// Goes back to something else, the original where it is none.
    pub fn set(&mut self, block: usize, entry: Option<Entry>) {
        if let Some(old) = self.entries.get_mut(block) {
            *old = entry;
        }
    }

    /// At a wider barrier: takes what is better from a table below. Versions of this table that lost.
    pub fn merge(&mut self, below: &Table) -> u32 {
        let mut lost = 0;
        for (block, entry) in below.entries.iter().enumerate() {
            if let Some(new) = entry {
                let had = self.get(block);
                let is_new = self.publish(block, *new);
                lost += u32::from(had.is_some_and(|old| old.version != new.version) && is_new);
            }
        }
        lost
    }

    /// Forgets a version wherever it is.
    pub fn withdraw(&mut self, version: u32) {
        for entry in &mut self.entries {
            if entry.is_some_and(|e| e.version == version) {
                *entry = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: u32, level: u32) -> Entry {
        Entry { version, level }
    }

    #[test]
    fn publication_keeps_the_higher_level_and_of_equals_the_first() {
        let mut t = Table::new(2);
        assert!(t.publish(0, entry(3, 1)));
        assert!(!t.publish(0, entry(4, 1)), "the first of equals stays");
        assert_eq!(t.get(0), Some(entry(3, 1)));
        assert!(t.publish(0, entry(5, 2)));
        assert!(!t.publish(0, entry(6, 1)), "a lower level never takes its place");
        assert_eq!(t.get(0), Some(entry(5, 2)));
        assert_eq!(t.get(1), None);
        assert!(!t.publish(9, entry(1, 1)), "there is no such block");
    }

    #[test]
    fn merging_takes_the_better_and_tells_who_lost() {
        let (mut above, mut below) = (Table::new(3), Table::new(3));
        above.publish(0, entry(1, 1));
        above.publish(1, entry(2, 2));
        below.publish(0, entry(3, 2));
        below.publish(1, entry(4, 1));
        below.publish(2, entry(5, 1));
        assert_eq!(above.merge(&below), 1);
        assert_eq!(
            [0, 1, 2].map(|b| above.get(b)),
            [Some(entry(3, 2)), Some(entry(2, 2)), Some(entry(5, 1))]
        );
        above.withdraw(3);
        assert_eq!(above.get(0), None);
    }
}
