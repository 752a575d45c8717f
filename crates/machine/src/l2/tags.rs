//! Tags of a slice: which lines it holds, which of their sectors, and since when.

use super::search;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::prefetch::{HOST_LINE, prefetch};

/// Sectors whose every byte is known.
pub const VALID: u32 = 0;
/// Sectors with bytes that DRAM has not seen, as a shift in a line's state.
pub const DIRTY: u32 = 4;
/// Sectors with some bytes written and the others unknown, as a shift.
pub const PARTIAL: u32 = 8;
/// A copy of a line whose home is the other half.
pub const REPLICA: u32 = 1 << 12;
/// The other half has, or had, a copy.
pub const COPIED: u32 = 1 << 13;
/// Brought by a copy from the host and not touched since.
pub const HOST: u32 = 1 << 14;

/// What a slice knows of a line besides its tag.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Way {
    /// When the last of its sectors that were asked for is there.
    pub ready: Cycle,
    pub state: u32,
}

impl Way {
    #[inline(always)]
    pub fn valid(&self) -> u8 {
        (self.state >> VALID) as u8 & 15
    }

    #[inline(always)]
    pub fn dirty(&self) -> u8 {
        (self.state >> DIRTY) as u8 & 15
    }

    #[inline(always)]
    pub fn partial(&self) -> u8 {
        (self.state >> PARTIAL) as u8 & 15
    }

    #[inline(always)]
    pub fn set(&mut self, what: u32, sectors: u8) {
        self.state |= u32::from(sectors) << what;
    }

    #[inline(always)]
    pub fn clear(&mut self, what: u32, sectors: u8) {
        self.state &= !(u32::from(sectors) << what);
    }
}

/// A line that gave way.
#[derive(Clone, Copy, Debug)]
pub struct Evicted {
    /// Its number, of which 32 bits are kept.
    pub line: u64,
    pub way: Way,
}

/// Lines of a slice. A tag is the line's number and one, in 32 bits: enough for 512 GB of addresses, and 0 for none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tags {
    ways: usize,
    copy_ways: usize,
    /// Of each set the tags of its ways, then their places in the order of giving way: both are read together, and
    /// nothing else is until a line is found.
    index: Vec<u32>,
    lines: Vec<Way>,
    clock: u32,
    used: bool,
}

/// Set in the order of lines that are at home: they give way after copies. The rest is when a line was last used, a
/// count and not a time; 0 is for ways that hold nothing.
const AT_HOME: u32 = 1 << 31;

#[inline(always)]
fn tag(line: u64) -> u32 {
    (line as u32).wrapping_add(1)
}

/// A way of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    line: u32,
    order: u32,
}

impl Tags {
    pub fn new(sets: u32, ways: u32, copy_ways: u32) -> Tags {
        let ways = ways.max(1) as usize;
        let lines = sets.max(1) as usize * ways;
        Tags {
            ways,
            copy_ways: (copy_ways as usize).min(ways),
            index: vec![0; 2 * lines],
            lines: vec![Way::default(); lines],
            clock: 0,
            used: false,
        }
    }

    #[inline(always)]
    fn slot(&self, set: u32, way: usize) -> Slot {
        let first = set as usize * self.ways;
        Slot { line: (first + way) as u32, order: (2 * first + self.ways + way) as u32 }
    }

    /// A line of this set will be looked up soon.
    #[inline(always)]
    pub fn expect(&self, set: u32) {
        let first = 2 * set as usize * self.ways;
        for n in (0..2 * self.ways).step_by(HOST_LINE / size_of::<u32>()) {
            prefetch(&self.index, first + n);
        }
    }

    /// The same, with the set at hand: for what is known of the line, or of the one that gives way to it. Whether the line is
    /// there.
    #[inline(always)]
    pub fn expect_line(&self, set: u32, line: u64) -> bool {
        let found = self.find_way(set, line);
        let way = found.unwrap_or_else(|| self.oldest(set));
        prefetch(&self.lines, set as usize * self.ways + way);
        found.is_some()
    }

    #[inline(always)]
    fn find_way(&self, set: u32, line: u64) -> Option<usize> {
        let first = 2 * set as usize * self.ways;
        let wanted = tag(line);
        search::position(&self.index[first..first + self.ways], wanted)
    }

    /// The way that gives way first.
    #[inline(always)]
    fn oldest(&self, set: u32) -> usize {
        let first = 2 * set as usize * self.ways;
        search::least(&self.index[first + self.ways..first + 2 * self.ways])
    }

    /// Where the line is, if it is there.
    #[inline(always)]
    pub fn find(&self, set: u32, line: u64) -> Option<Slot> {
        self.find_way(set, line).map(|way| self.slot(set, way))
    }

    /// As [`find`](Tags::find), and the line counts as used.
    #[inline(always)]
    pub fn touch(&mut self, set: u32, line: u64) -> Option<Slot> {
        let slot = self.find(set, line)?;
        let now = self.tick();
        let order = &mut self.index[slot.order as usize];
        *order = (*order & AT_HOME) | now;
        Some(slot)
    }

    #[inline(always)]
    pub fn way(&mut self, slot: Slot) -> &mut Way {
        &mut self.lines[slot.line as usize]
    }

    #[inline(always)]
    fn tick(&mut self) -> u32 {
        self.clock += 1;
        if self.clock == AT_HOME {
            self.forget_order();
        }
        self.clock
    }

    /// Once in two billion uses: who was used when is forgotten.
    #[cold]
    fn forget_order(&mut self) {
        self.clock = 2;
        for set in self.index.chunks_exact_mut(2 * self.ways) {
            for order in &mut set[self.ways..] {
                *order = if *order == 0 { 0 } else { (*order & AT_HOME) | 1 };
            }
        }
    }

    /// Makes room for a line that is not there; it has no sectors yet. Copies of far lines give way first, then what
    /// was not used for longest; a copy from the host takes no more than its ways.
    pub fn allocate(&mut self, set: u32, line: u64, flags: u32) -> (Slot, Option<Evicted>) {
        self.used = true;
        let first = 2 * set as usize * self.ways;
        let mut way = self.oldest(set);
        if flags & HOST != 0 {
            let orders = &self.index[first + self.ways..first + 2 * self.ways];
            let ways = &self.lines[set as usize * self.ways..][..self.ways];
            let host = |way: usize| ways[way].state & HOST != 0;
            if (0..self.ways).filter(|&way| host(way)).count() >= self.copy_ways {
                way = (0..self.ways).filter(|&way| host(way)).min_by_key(|&way| orders[way]).unwrap_or(way);
            }
        }
        let slot = self.slot(set, way);
        let old = std::mem::replace(&mut self.index[first + way], tag(line));
        let evicted = (old != 0)
            .then(|| Evicted { line: u64::from(old.wrapping_sub(1)), way: self.lines[slot.line as usize] });
        let home = if flags & REPLICA == 0 { AT_HOME } else { 0 };
        self.index[slot.order as usize] = home | self.tick();
        self.lines[slot.line as usize] = Way { ready: Cycle(0), state: flags };
        (slot, evicted)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.used) {
            self.index.fill(0);
            self.lines.fill(Way::default());
            self.clock = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_far_lines_give_way_first() {
        let mut tags = Tags::new(2, 4, 2);
        for line in 0..4 {
            let (_, evicted) = tags.allocate(1, line, if line == 2 { REPLICA } else { 0 });
            assert!(evicted.is_none());
        }
        tags.touch(1, 0);
        let gone = |(_, e): (Slot, Option<Evicted>)| e.map(|e| e.line);
        assert_eq!(gone(tags.allocate(1, 10, 0)), Some(2));
        assert_eq!(gone(tags.allocate(1, 11, 0)), Some(1));
        assert!(tags.find(1, 0).is_some() && tags.find(1, 1).is_none() && tags.find(0, 0).is_none());
    }

    #[test]
    fn copies_from_the_host_keep_to_their_ways() {
        let mut tags = Tags::new(1, 4, 2);
        for line in 0..10 {
            tags.allocate(0, line, HOST);
        }
        assert_eq!((0..10).filter(|&l| tags.find(0, l).is_some()).collect::<Vec<_>>(), [8, 9]);
        tags.clear();
        assert!(tags.find(0, 9).is_none());
    }
}
