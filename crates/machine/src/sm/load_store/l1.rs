//! Tags of the first-level cache: sectored lines of 128 bytes, found by a hash, replaced by least recent use in a set.
//!
//! A line's tag is there from the moment it is asked for, so a second access to a sector on its way is a hit that waits.

use crate::units::{Cycle, LINE, SECTORS};

/// No slot, no flight.
pub const NONE: u32 = u32::MAX;
const NO_SLOT: u32 = NONE;

/// One line.
#[derive(Clone, Copy)]
pub struct Slot {
    pub line: u64,
    /// When each of its sectors came, or will come.
    pub ready: [Cycle; SECTORS as usize],
    /// First of the requests that are on their way for it, or [`NONE`].
    pub flight: u32,
    /// Sectors that loads can read, now or at `ready`.
    pub valid: u8,
    /// Sectors asked for and not answered.
    pub pending: u8,
    /// Sectors newer than memory behind: local memory only.
    pub dirty: u8,
    /// Store requests for it on their way: the line is known meanwhile, though nothing can be read from it.
    pub stores: u16,
    older: u32,
    newer: u32,
    chain: u32,
}

const EMPTY: Slot = Slot {
    line: 0,
    ready: [Cycle(0); SECTORS as usize],
    flight: NONE,
    valid: 0,
    pending: 0,
    dirty: 0,
    stores: 0,
    older: NO_SLOT,
    newer: NO_SLOT,
    chain: NO_SLOT,
};

impl Slot {
    /// A store to the line finds it.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.valid | self.pending != 0 || self.stores != 0
    }

    /// When all of these sectors are there.
    #[inline(always)]
    pub fn ready(&self, sectors: u8) -> Cycle {
        let mut at = Cycle(0);
        for (n, &ready) in self.ready.iter().enumerate() {
            if sectors >> n & 1 != 0 {
                at = at.later(ready);
            }
        }
        at
    }

    /// These sectors come at `at`.
    #[inline(always)]
    pub fn fill(&mut self, sectors: u8, at: Cycle) {
        self.valid |= sectors;
        for (n, ready) in self.ready.iter_mut().enumerate() {
            if sectors >> n & 1 != 0 {
                *ready = at;
            }
        }
    }
}

/// Ends of a set's order of use.
#[derive(Clone, Copy)]
struct Set {
    oldest: u32,
    newest: u32,
    used: u32,
}

/// The tags.
pub struct Tags {
    slots: Vec<Slot>,
    /// First slot of each hash chain.
    buckets: Box<[u32]>,
    sets: Box<[Set]>,
    /// Slots not in use; those never used come after.
    free: Vec<u32>,
    ways: u32,
    /// Takes the bucket from a hash.
    shift: u32,
}

/// What making room for a line threw out.
pub struct Victim {
    pub line: u64,
    pub dirty: u8,
}

impl Tags {
    /// Lines that there is room for.
    #[inline(always)]
    pub fn lines(&self) -> u32 {
        self.ways * self.sets.len() as u32
    }

    /// `bytes` of lines in `sets` sets.
    pub fn new(bytes: u32, sets: u32) -> Tags {
        let sets = sets.next_power_of_two();
        let lines = bytes / LINE as u32;
        let ways = (lines / sets).max(u32::from(lines > 0));
        let buckets = (lines * 2).next_power_of_two().max(2);
        let set = Set { oldest: NO_SLOT, newest: NO_SLOT, used: 0 };
        Tags {
            slots: Vec::new(),
            buckets: vec![NO_SLOT; buckets as usize].into_boxed_slice(),
            sets: vec![set; sets as usize].into_boxed_slice(),
            free: Vec::new(),
            ways,
            shift: 64 - buckets.trailing_zeros(),
        }
    }

    #[inline(always)]
    fn hash(line: u64) -> u64 {
        (line / LINE).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[inline(always)]
    fn bucket(&self, line: u64) -> usize {
        (Tags::hash(line) >> self.shift) as usize
    }

    /// The set of a line. Within 256 KB lines are spread unevenly, so that sets overflow one after the other as a
    /// footprint grows: of a chase through 192, 224, 256 and 320 KB on an H200, whose cache is 248 KB then, 0, 14, 66 and
    /// 100 % miss. The factor has that property with 16 sets. Bits above only swap sets.
    #[inline(always)]
    fn set(&self, line: u64) -> usize {
        let n = line / LINE;
        let low = ((n & 2047) as u32).wrapping_mul(0xABD5_CE85) as u64;
        let high = Tags::hash(line & !(256 * 1024 - 1)) >> 32;
        ((low ^ high & 0xffff_ffff) << self.sets.len().trailing_zeros() >> 32) as usize
            & (self.sets.len() - 1)
    }

    /// The slot of a line that is there.
    #[inline(always)]
    pub fn find(&self, line: u64) -> Option<u32> {
        let mut at = self.buckets[self.bucket(line)];
        while at != NO_SLOT {
            let slot = &self.slots[at as usize];
            if slot.line == line {
                return Some(at);
            }
            at = slot.chain;
        }
        None
    }

    #[inline(always)]
    pub fn slot(&mut self, at: u32) -> &mut Slot {
        &mut self.slots[at as usize]
    }

    /// Marks a line as used last.
    #[inline(always)]
    pub fn touch(&mut self, at: u32) {
        if self.slots[at as usize].newer != NO_SLOT {
            let set = self.set(self.slots[at as usize].line);
            self.unlink(set, at);
            self.append(set, at);
        }
    }

    #[inline(always)]
    fn unlink(&mut self, set: usize, at: u32) {
        let Slot { older, newer, .. } = self.slots[at as usize];
        match older {
            NO_SLOT => self.sets[set].oldest = newer,
            o => self.slots[o as usize].newer = newer,
        }
        match newer {
            NO_SLOT => self.sets[set].newest = older,
            n => self.slots[n as usize].older = older,
        }
    }

    #[inline(always)]
    fn append(&mut self, set: usize, at: u32) {
        let last = self.sets[set].newest;
        let slot = &mut self.slots[at as usize];
        (slot.older, slot.newer) = (last, NO_SLOT);
        match last {
            NO_SLOT => self.sets[set].oldest = at,
            l => self.slots[l as usize].newer = at,
        }
        self.sets[set].newest = at;
    }

    /// A slot for a line that is not there, without sectors; None if every line of the set waits for an answer.
    #[inline]
    pub fn insert(&mut self, line: u64) -> Option<(u32, Option<Victim>)> {
        let set = self.set(line);
        let mut victim = None;
        let at = if self.sets[set].used < self.ways {
            self.sets[set].used += 1;
            match self.free.pop() {
                Some(at) => at,
                None => {
                    self.slots.push(EMPTY);
                    self.slots.len() as u32 - 1
                }
            }
        } else {
            let mut at = self.sets[set].oldest;
            while at != NO_SLOT && self.slots[at as usize].pending != 0 {
                at = self.slots[at as usize].newer;
            }
            if at == NO_SLOT {
                return None;
            }
            let old = self.slots[at as usize];
            victim = Some(Victim { line: old.line, dirty: old.dirty });
            self.unlink(set, at);
            self.unchain(at);
            at
        };
        let bucket = self.bucket(line);
        self.slots[at as usize] = Slot { line, chain: self.buckets[bucket], ..EMPTY };
        self.buckets[bucket] = at;
        self.append(set, at);
        Some((at, victim))
    }

    fn unchain(&mut self, at: u32) {
        let Slot { line, chain, .. } = self.slots[at as usize];
        let bucket = self.bucket(line);
        if self.buckets[bucket] == at {
            self.buckets[bucket] = chain;
            return;
        }
        let mut before = self.buckets[bucket];
        while before != NO_SLOT {
            let next = self.slots[before as usize].chain;
            if next == at {
                self.slots[before as usize].chain = chain;
                return;
            }
            before = next;
        }
    }

    /// Drops a line.
    fn remove(&mut self, at: u32) {
        let set = self.set(self.slots[at as usize].line);
        self.unlink(set, at);
        self.unchain(at);
        self.sets[set].used -= 1;
        self.slots[at as usize] = EMPTY;
        self.free.push(at);
    }

    /// Drops all lines that memory behind has as new.
    pub fn invalidate(&mut self) {
        for set in 0..self.sets.len() {
            let mut at = self.sets[set].oldest;
            while at != NO_SLOT {
                let next = self.slots[at as usize].newer;
                if self.slots[at as usize].dirty == 0 {
                    self.remove(at);
                } else {
                    let slot = &mut self.slots[at as usize];
                    (slot.valid, slot.pending, slot.flight) = (slot.dirty, 0, NONE);
                }
                at = next;
            }
        }
    }
}
