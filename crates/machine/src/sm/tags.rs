//! Tags of a small set-associative cache with least-recently-used replacement, for instructions and constants.

use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch;

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
    /// The place of the entry that was found last.
    last: u32,
}

/// An entry without a line.
const NOTHING: Entry = Entry { line: EMPTY, used: 0, ready: Cycle(0) };

impl Tags {
    /// A cache of `lines` lines; none at all when that is 0. `lines / ways` is a power of two.
    pub fn new(lines: u32, ways: u32) -> Tags {
        let ways = ways.clamp(1, lines.max(1));
        let sets = (lines / ways).max(1).next_power_of_two();
        let entries = if lines == 0 { 0 } else { (sets * ways) as usize };
        Tags {
            entries: vec![NOTHING; entries].into_boxed_slice(),
            ways: ways as usize,
            mask: u64::from(sets) - 1,
            clock: 0,
            last: 0,
        }
    }

    /// The place of the first entry of a line's set.
    #[inline(always)]
    fn first(&self, line: u64) -> usize {
        (line & self.mask) as usize * self.ways
    }

    #[inline(always)]
    fn set(&mut self, line: u64) -> &mut [Entry] {
        if self.entries.is_empty() {
            return &mut [];
        }
        let first = self.first(line);
        &mut self.entries[first..first + self.ways]
    }

    /// What was found last will be looked up soon.
    #[inline(always)]
    pub fn expect(&self) {
        prefetch(&self.entries, self.last as usize);
    }

    /// When the line is there, if it has a place. Counts as a use.
    #[inline(always)]
    pub fn find(&mut self, line: u64) -> Option<Cycle> {
        self.clock += 1;
        let clock = self.clock;
        let (way, entry) = self.set(line).iter_mut().enumerate().find(|(_, e)| e.line == line)?;
        entry.used = clock;
        let ready = entry.ready;
        self.last = (self.first(line) + way) as u32;
        Some(ready)
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
            *entry = NOTHING;
        }
    }

    pub fn clear(&mut self) {
        self.entries.fill(NOTHING);
    }

    /// Learns when a line was used last, if it has a place.
    fn note(&mut self, used: &Entry) {
        if used.line != EMPTY
            && let Some(entry) = self.set(used.line).iter_mut().find(|e| e.line == used.line)
        {
            entry.used = used.used;
        }
    }
}

/// Lines that were found last.
const RECENT: usize = 32;

/// The same cache, with the lines that were found last by themselves: they are few lines of the host's memory, the sets that
/// they are in are many. Nothing that is found or replaced differs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Near {
    /// Copies of entries, each used no sooner than that in its set.
    recent: [Entry; RECENT],
    tags: Tags,
}

impl Near {
    pub fn new(lines: u32, ways: u32) -> Near {
        Near { recent: [NOTHING; RECENT], tags: Tags::new(lines, ways) }
    }

    /// When the line is there, if it has a place. Counts as a use.
    #[inline(always)]
    pub fn find(&mut self, line: u64) -> Option<Cycle> {
        let entry = &mut self.recent[line as usize % RECENT];
        if entry.line != line {
            return self.look_up(line);
        }
        self.tags.clock += 1;
        entry.used = self.tags.clock;
        Some(entry.ready)
    }

    #[inline(never)]
    fn look_up(&mut self, line: u64) -> Option<Cycle> {
        let ready = self.tags.find(line)?;
        let entry = Entry { line, used: self.tags.clock, ready };
        let old = std::mem::replace(&mut self.recent[line as usize % RECENT], entry);
        self.tags.note(&old);
        Some(ready)
    }

    /// The sets learn all uses, and nothing is kept beside them.
    fn settle(&mut self) {
        for entry in &mut self.recent {
            self.tags.note(&std::mem::replace(entry, NOTHING));
        }
    }

    /// Gives a line a place; it is there from `ready` on.
    pub fn insert(&mut self, line: u64, ready: Cycle) {
        self.settle();
        self.tags.insert(line, ready);
    }

    /// Takes a line out.
    pub fn remove(&mut self, line: u64) {
        self.settle();
        self.tags.remove(line);
    }

    pub fn clear(&mut self) {
        self.settle();
        self.tags.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_found_last_changes_nothing(steps in proptest::collection::vec((0u8..8, 0u64..40), 1..300)) {
            let (mut near, mut tags) = (Near::new(16, 4), Tags::new(16, 4));
            for (n, (step, line)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        near.insert(line, Cycle(n as u64));
                        tags.insert(line, Cycle(n as u64));
                    }
                    1 => {
                        near.remove(line);
                        tags.remove(line);
                    }
                    _ => prop_assert_eq!(near.find(line), tags.find(line)),
                }
            }
        }
    }

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
