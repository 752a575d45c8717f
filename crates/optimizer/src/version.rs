//! An optimized block: its code, where each instruction came from, and what it assumes.

use crate::profile::Where;
use crate::sites::Site;
use isa::Inst;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What optimized code takes for granted, and checks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// A value is this in all lanes.
    Equal(Where, u32),
    /// No lane jumps at the branch (`taken` false), or all do.
    Branch { place: u32, taken: bool },
    /// What the store writes, the load does not read.
    Apart { store: u32, load: u32 },
    /// The guard of this instruction, and of others behind it, holds in no lane.
    Off { place: u32 },
    /// What the load at this place reads lies at a multiple of so many bytes.
    Aligned { load: u32, bytes: u32 },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Kind::Equal(Where::Register(r), x) => write!(f, "R{r} is {x:#x}"),
            Kind::Equal(Where::Constant(bank, at), x) => write!(f, "c[{bank:#x}][{at:#x}] is {x:#x}"),
            Kind::Equal(Where::Loaded(place), x) => write!(f, "what {place:#x} loads is {x:#x}"),
            Kind::Branch { place, taken: true } => write!(f, "all lanes jump at {place:#x}"),
            Kind::Branch { place, taken: false } => write!(f, "no lane jumps at {place:#x}"),
            Kind::Apart { store, load } => write!(f, "{load:#x} reads nothing that {store:#x} wrote"),
            Kind::Off { place } => write!(f, "no lane runs {place:#x}"),
            Kind::Aligned { load, bytes } => write!(f, "{load:#x} loads from a multiple of {bytes}"),
        }
    }
}

impl Kind {
    /// What many of one sort say together: before their number, and behind it.
    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Kind::Equal(Where::Register(_), _) => ("", " registers hold what they were seen to hold"),
            Kind::Equal(Where::Constant(..), _) => ("", " constants are what they were seen to be"),
            Kind::Equal(Where::Loaded(_), _) => ("", " loads give what they were seen to give"),
            Kind::Branch { taken: true, .. } => ("all lanes jump at ", " branches"),
            Kind::Branch { taken: false, .. } => ("no lane jumps at ", " branches"),
            Kind::Apart { .. } => ("", " pairs of a store and a load are apart"),
            Kind::Off { .. } => ("no lane runs what ", " guards keep out"),
            Kind::Aligned { .. } => ("", " loads are aligned"),
        }
    }

    /// Assumptions in short: those of one sort are counted.
    pub fn grouped(kinds: impl IntoIterator<Item = Kind>) -> Vec<String> {
        let kinds: std::collections::BTreeSet<Kind> = kinds.into_iter().collect();
        let mut groups: Vec<(Kind, usize)> = Vec::new();
        for k in kinds {
            match groups.iter_mut().find(|g| g.0.words() == k.words()) {
                Some(g) => g.1 += 1,
                None => groups.push((k, 1)),
            }
        }
        let text = |(kind, count): (Kind, usize)| match kind.words() {
            _ if count == 1 => kind.to_string(),
            (before, behind) => format!("{before}{count}{behind}"),
        };
        groups.into_iter().map(text).collect()
    }
}

/// An assumption and where it is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Assumption {
    pub kind: Kind,
    /// Index in [`Version::code`] of the branch that leaves for the original code when it does not hold. One branch may stand for
    /// several assumptions.
    pub check: u32,
}

/// What was done to the code besides its order, for people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Done {
    /// Both ways of the branch became guarded code.
    Converted { place: u32 },
    /// So many guarded instructions from here on are gone around.
    Skipped { place: u32, instructions: u32 },
    /// So many loads of neighbouring words, the first of them here, are one.
    Widened { place: u32, loads: u32 },
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Done::Converted { place } => write!(f, "both ways of the branch at {place:#x} are guarded code"),
            Done::Skipped { place, instructions } => {
                write!(
                    f,
                    "{instructions} instructions from {place:#x} on, which no lane runs, are gone around"
                )
            }
            Done::Widened { place, loads } => {
                write!(f, "{loads} loads of words in a row, from that at {place:#x} on, are one")
            }
        }
    }
}

/// What a version is made from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    Original,
    /// The original, without those assumptions of the last version that failed too often.
    Last(&'a Version),
}

/// What a version may use, and what things cost in the machine that will run it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Registers a thread may use.
    pub registers: u32,
    pub code_bytes: u32,
    /// An assumption may fail once in so many checks.
    pub failures_one_in: u64,
    /// Cycles until a load from shared memory can be used.
    pub shared: u32,
    /// The same for one that misses the first-level cache.
    pub global: u32,
    /// Cycles from a comparison to a branch or guard that depends on it.
    pub guard: u32,
    /// Cycles that a taken branch costs a warp.
    pub branch: u32,
    /// Cycles until a vote can be used.
    pub vote: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            registers: 32,
            code_bytes: 8 << 10,
            failures_one_in: 64,
            shared: 23,
            global: 300,
            guard: 13,
            branch: 12,
            vote: 12,
        }
    }
}

/// A place in the code of a version that names another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Link {
    /// An index in the version's code.
    Inside(u32),
    /// A place in the original code.
    Original(u32),
}

/// An optimized block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Version {
    /// The block that it stands for.
    pub block: u32,
    /// Its instructions; branches and convergence points name the places of [`Version::links`], see [`Version::place`].
    #[serde(with = "words")]
    pub code: Vec<Inst>,
    /// The instruction of the original from which each one comes. A BAR whose origin is a barrier is that barrier: behind it comes
    /// the block that this one opens, and a jump there stands behind the BAR for whoever does not retarget it.
    pub origin: Vec<u32>,
    /// Where branches and convergence points go: index of the instruction, place.
    pub links: Vec<(u32, Link)>,
    /// What to record in it: index of the instruction, and the site with its place in the original.
    pub sites: Vec<(u32, Site)>,
    /// Index of the instruction at which it is entered.
    pub entry: u32,
    /// Registers a thread needs.
    pub registers: u32,
    pub assumptions: Vec<Assumption>,
    pub done: Vec<Done>,
    /// Cycles that an execution of the block by one warp is thought to be shorter.
    pub gain: u64,
    /// What making it took, in instructions looked at.
    pub work: u64,
    /// How often the block was optimized.
    pub level: u32,
}

/// Instructions as the words that they are encoded in.
mod words {
    use isa::Inst;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub fn serialize<S: Serializer>(code: &[Inst], to: S) -> Result<S::Ok, S::Error> {
        let words: Result<Vec<u128>, _> = code.iter().map(Inst::encode).collect();
        words.map_err(ser::Error::custom)?.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Inst>, D::Error> {
        let words = Vec::<u128>::deserialize(from)?;
        words.into_iter().map(|w| Inst::decode(w).map_err(de::Error::custom)).collect()
    }
}

impl Version {
    /// The instructions for code that begins at this place.
    pub fn place(&self, at: u32) -> Vec<Inst> {
        let mut code = self.code.clone();
        for &(n, link) in &self.links {
            if let Some(inst) = code.get_mut(n as usize) {
                inst.set_target(match link {
                    Link::Inside(to) => at + to,
                    Link::Original(to) => to,
                });
            }
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumptions_of_one_sort_are_counted() {
        let loaded = |place| Kind::Equal(Where::Loaded(place), 7);
        let branch = |place, taken| Kind::Branch { place, taken };
        let list = [loaded(3), branch(8, false), loaded(4), loaded(3), branch(9, true), loaded(5)];
        assert_eq!(
            Kind::grouped(list),
            ["3 loads give what they were seen to give", "no lane jumps at 0x8", "all lanes jump at 0x9"]
        );
    }
}
