//! Tags of a small set-associative cache with least-recently-used replacement, for instructions and constants.

use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// No line has this number: line numbers are addresses over the line size.
const EMPTY: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    line: u64,
    used: u64,
    /// When the line is there: a fill on its way has its place already.
    ready: Cycle,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tags {
    entries: Box<[Entry]>,
    ways: usize,
    /// Sets less one; they are a power of two.
    mask: u64,
    /// Counts uses.
    clock: u64,
}

impl Tags {
    /// A cache of `lines` lines; none at all when that is 0. `lines / ways` is a power of two.
    pub fn new(lines: u32, ways: u32) -> Tags {
        let ways = ways.clamp(1, lines.max(1));
        let sets = (lines / ways).max(1).next_power_of_two();
        let entries = if lines == 0 { 0 } else { (sets * ways) as usize };
        let empty = Entry { line: EMPTY, used: 0, ready: Cycle(0) };
        Tags {
            entries: vec![empty; entries].into_boxed_slice(),
            ways: ways as usize,
            mask: u64::from(sets) - 1,
            clock: 0,
        }
    }

    #[inline(always)]
    fn set(&mut self, line: u64) -> &mut [Entry] {
        if self.entries.is_empty() {
            return &mut [];
        }
        let first = (line & self.mask) as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// When the line is there, if it has a place. Counts as a use.
    #[inline(always)]
    pub fn find(&mut self, line: u64) -> Option<Cycle> {
        self.clock += 1;
        let clock = self.clock;
        let entry = self.set(line).iter_mut().find(|e| e.line == line)?;
        entry.used = clock;
        Some(entry.ready)
    }

    /// Gives a line a place; it is there from `ready` on.
    pub fn insert(&mut self, line: u64, ready: Cycle) {
        self.clock += 1;
        let clock = self.clock;
        let set = self.set(line);
        let place = match set.iter().position(|e| e.line == line) {
            Some(place) => place,
            None => match set.iter().enumerate().min_by_key(|(_, e)| e.used) {
                Some((oldest, _)) => oldest,
                None => return,
            },
        };
        set[place] = Entry { line, used: clock, ready };
    }

    /// Takes a line out.
    pub fn remove(&mut self, line: u64) {
        if let Some(entry) = self.set(line).iter_mut().find(|e| e.line == line) {
            *entry = Entry { line: EMPTY, used: 0, ready: Cycle(0) };
        }
    }

    pub fn clear(&mut self) {
        self.entries.fill(Entry { line: EMPTY, used: 0, ready: Cycle(0) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes() {
        let mut tags = Tags::new(4, 2);
        tags.insert(0, Cycle(1));
        tags.insert(2, Cycle(2));
        assert_eq!(tags.find(0), Some(Cycle(1)));
        tags.insert(4, Cycle(3));
        assert_eq!(tags.find(2), None);
        assert_eq!(tags.find(0), Some(Cycle(1)));
        assert_eq!(tags.find(4), Some(Cycle(3)));
        assert_eq!(tags.find(1), None);
        tags.remove(4);
        assert_eq!((tags.find(4), tags.find(0)), (None, Some(Cycle(1))));
        tags.clear();
        assert_eq!(tags.find(0), None);
    }

    #[test]
    fn a_cache_may_be_absent() {
        let mut tags = Tags::new(0, 4);
        tags.insert(3, Cycle(0));
        assert_eq!(tags.find(3), None);
    }
}
