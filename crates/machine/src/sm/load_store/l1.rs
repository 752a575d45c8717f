//! Tags of the first-level cache: sectored lines of 128 bytes, found by a hash, replaced by least recent use in a set.
//!
//! A line's tag is there from the moment it is asked for, so a second access to a sector on its way is a hit that waits.
//!
//! Sets have more ways than can be looked through, so lines are found in a table of their own, and the order of use is
//! kept lazily: a use stamps the line and nothing else, and whoever looks for the oldest line puts those that were used
//! since back in their new places. A lookup so touches little memory: many SMs take turns in the host's caches.

use super::super::look_ahead::extent;
use crate::units::{Cycle, LINE};
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// No flight.
pub const NONE: u32 = u32::MAX;

/// Sectors that loads can read, now or at `ready`, as a shift in a line's state.
const VALID: u32 = 0;
/// Sectors asked for and not answered, as a shift.
const PENDING: u32 = 4;

/// One line. It never lies across two lines of the host's caches.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[repr(align(32))]
pub struct Slot {
    pub line: u64,
    /// When the last of its sectors came.
    ready: Cycle,
    /// Its last use, a count and not a time.
    used: u64,
    /// First of the requests that are on their way for it, or [`NONE`].
    pub flight: u32,
    state: u16,
    /// Store requests for it on their way: the line is known meanwhile, though nothing can be read from it.
    pub stores: u16,
}

impl Slot {
    #[inline(always)]
    fn sectors(&self, what: u32) -> u8 {
        (self.state >> what) as u8 & 15
    }

    #[inline(always)]
    fn set(&mut self, what: u32, sectors: u8) {
        self.state |= u16::from(sectors & 15) << what;
    }

    #[inline(always)]
    fn clear(&mut self, what: u32, sectors: u8) {
        self.state &= !(u16::from(sectors & 15) << what);
    }

    #[inline(always)]
    pub fn valid(&self) -> u8 {
        self.sectors(VALID)
    }

    #[inline(always)]
    pub fn pending(&self) -> u8 {
        self.sectors(PENDING)
    }

    /// These sectors are asked for.
    #[inline(always)]
    pub fn ask(&mut self, sectors: u8) {
        self.set(PENDING, sectors);
    }

    /// Memory behind changes these sectors.
    #[inline(always)]
    pub fn forget(&mut self, sectors: u8) {
        self.clear(VALID, sectors);
    }

    /// A store to the line finds it.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.valid() | self.pending() != 0 || self.stores != 0
    }

    /// When all of these sectors, which are here, are there.
    #[inline(always)]
    pub fn ready(&self, sectors: u8) -> Cycle {
        if sectors != 0 { self.ready } else { Cycle(0) }
    }

    /// These sectors come at `at`.
    #[inline(always)]
    pub fn fill(&mut self, sectors: u8, at: Cycle) {
        if sectors != 0 {
            self.clear(PENDING, sectors);
            self.set(VALID, sectors);
            self.ready = self.ready.later(at);
        }
    }
}

/// The lines of a set in the order in which they give way. An entry is a use and the slot used: the slot's last use when
/// the entry was made, and no later than that of any entry made since.
#[derive(Serialize, Deserialize)]
struct Set {
    /// Lines as they came in.
    queue: VecDeque<u64>,
    /// Lines that were used again by the time that their turn came.
    again: BinaryHeap<Reverse<u64>>,
}

/// Bits of an entry that name the slot.
const SLOT_BITS: u32 = 16;

impl Set {
    #[inline(always)]
    fn lines(&self) -> usize {
        self.queue.len() + self.again.len()
    }

    /// Takes out the entry that is first in the order.
    #[inline(always)]
    fn first(&mut self) -> Option<u64> {
        match (self.queue.front(), self.again.peek()) {
            (Some(&a), Some(&Reverse(b))) if b < a => self.again.pop().map(|Reverse(entry)| entry),
            (None, _) => self.again.pop().map(|Reverse(entry)| entry),
            _ => self.queue.pop_front(),
        }
    }
}

/// The tags.
#[derive(Serialize, Deserialize)]
pub struct Tags {
    slots: Vec<Slot>,
    /// Places of lines, open addressing: upper half of an entry the line's mark, lower half its slot.
    table: Box<[u32]>,
    /// Takes the place in the table from a mark.
    shift: u32,
    sets: Box<[Set]>,
    ways: u32,
    /// Counts uses.
    clock: u64,
    /// For [`Tags::oldest`]: lines that cannot give way now.
    aside: Vec<u64>,
}

/// Lines next to each other whose entries lie together; a power of two. Half a line of the host's caches.
const NEIGHBOURS: u64 = 8;

/// No line's entry: slots have lower numbers.
const EMPTY: u32 = u32::MAX;

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
        // Half of it stays empty, so that lookups end soon. Entries have 16 bits for a hash and 16 for a slot.
        let places = (ways * sets * 2).next_power_of_two().clamp(16, 1 << 16);
        debug_assert!(ways * sets < places, "the configuration limits the cache's size");
        Tags {
            slots: Vec::with_capacity((ways * sets) as usize),
            table: vec![EMPTY; places as usize].into_boxed_slice(),
            sets: (0..sets).map(|_| Set { queue: VecDeque::new(), again: BinaryHeap::new() }).collect(),
            ways,
            shift: 16 - places.trailing_zeros(),
            clock: 0,
            aside: Vec::new(),
        }
    }

    /// What an entry has of its line: bits of a hash and, below them, the place among neighbours.
    #[inline(always)]
    pub fn mark(line: u64) -> u32 {
        let n = line / LINE;
        let hash = (n / NEIGHBOURS).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (((hash >> 48) & !(NEIGHBOURS - 1)) | (n % NEIGHBOURS)) as u32
    }

    /// Where the search for a mark begins. Neighbours lie together: warps of a CTA mostly ask for them in one turn of the SM,
    /// and the host's caches then fetch one line for all.
    #[inline(always)]
    fn home(&self, mark: u32) -> usize {
        let below = NEIGHBOURS as u32 - 1;
        (((mark >> self.shift) & !below) | (mark & below)) as usize
    }

    /// The set of a line: as good as drawn by lot, so that sets overflow one after the other as a footprint grows. Of
    /// chases through 192, 224, 256 and 320 KB on an H200, whose cache is 248 KB then, 0, 14, 66 and 100 % miss; of walks
    /// in order through 208, 216, 224, 240, 256 and 288 KB it is 0, 7, 26, 53, 68 and 100 %. 16 sets by lot give 1, 6, 13,
    /// 36, 66 and 96 %, and with this factor where allocations begin 0, 7, 14, 48, 73 and 90 %.
    #[inline(always)]
    fn set(&self, line: u64) -> usize {
        let n = line / LINE;
        let x = (n ^ n >> 11).wrapping_mul(0x687D_9F75_582F_2ACD);
        let x = (x ^ x >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The highest bits; of one set there is no bit.
        (x >> 32 << self.sets.len().trailing_zeros() >> 32) as usize & (self.sets.len() - 1)
    }

    /// The slot of a line that is there.
    #[inline(always)]
    pub fn find(&self, line: u64) -> Option<u32> {
        self.find_marked(line, Tags::mark(line))
    }

    /// The same with its mark.
    #[inline(always)]
    pub fn find_marked(&self, line: u64, mark: u32) -> Option<u32> {
        let mask = self.table.len() - 1;
        let mut place = self.home(mark);
        loop {
            let entry = self.table[place & mask];
            if entry == EMPTY {
                return None;
            }
            let slot = entry & 0xffff;
            if entry >> 16 == mark && self.slots[slot as usize].line == line {
                return Some(slot);
            }
            place += 1;
        }
    }

    /// As [`find`](Tags::find), where the line was before or is at first sight; its mark is only needed where it is not.
    #[inline(always)]
    pub fn find_from(&self, before: u32, line: u64, mark: impl FnOnce() -> u32) -> Option<u32> {
        match self.slots.get(before as usize) {
            Some(slot) if slot.line == line => Some(before),
            _ => self.find_marked(line, mark()),
        }
    }

    /// Where sets lie in the host's memory.
    pub fn extent(&self) -> (usize, usize) {
        extent(&self.sets)
    }

    /// A line will be looked up soon: its mark.
    #[inline(always)]
    pub fn expect(&self, line: u64) -> u32 {
        let mark = Tags::mark(line);
        prefetch(&self.table, self.home(mark));
        mark
    }

    /// The same, with the table's entry at hand: the slot that it names, mostly the line's.
    #[inline(always)]
    pub fn expect_slot(&self, mark: u32) -> u16 {
        let slot = self.table.get(self.home(mark)).map_or(u16::MAX, |&entry| entry as u16);
        self.expect_at(slot.into());
        slot
    }

    /// First of the requests that are on their way for the line of a slot.
    #[inline(always)]
    pub fn flight_of(&self, at: u16) -> u32 {
        self.slots.get(usize::from(at)).map_or(NONE, |slot| slot.flight)
    }

    /// A slot will be used soon.
    #[inline(always)]
    pub fn expect_at(&self, at: u32) {
        prefetch(&self.slots, at as usize);
    }

    #[inline(always)]
    pub fn slot(&mut self, at: u32) -> &mut Slot {
        &mut self.slots[at as usize]
    }

    /// Marks a line as used last.
    #[inline(always)]
    pub fn touch(&mut self, at: u32) {
        self.clock += 1;
        self.slots[at as usize].used = self.clock;
    }

    /// Takes the line that was not used for longest out of its set's order, but none that waits for an answer.
    #[inline(always)]
    fn oldest(&mut self, set: usize) -> Option<u32> {
        let set = &mut self.sets[set];
        let mut found = None;
        while let Some(entry) = set.first() {
            let at = entry as u32 & ((1 << SLOT_BITS) - 1);
            let slot = &self.slots[at as usize];
            let now = slot.used << SLOT_BITS | u64::from(at);
            if now != entry {
                set.again.push(Reverse(now));
            } else if slot.pending() != 0 {
                self.aside.push(entry);
            } else {
                found = Some(at);
                break;
            }
        }
        set.again.extend(self.aside.drain(..).map(Reverse));
        found
    }

    /// A slot for a line that is not there, without sectors; None if every line of the set waits for an answer.
    #[inline]
    pub fn insert(&mut self, line: u64) -> Option<u32> {
        let set = self.set(line);
        let at = if self.sets[set].lines() < self.ways as usize {
            self.slots.len() as u32
        } else {
            let at = self.oldest(set)?;
            self.unlist(at, self.slots[at as usize].line);
            at
        };
        self.clock += 1;
        let slot = Slot { line, ready: Cycle(0), used: self.clock, flight: NONE, state: 0, stores: 0 };
        self.put(set, at, slot);
        Some(at)
    }

    /// Puts a line that is used last into a slot, the next new one or one that was left.
    #[inline(always)]
    fn put(&mut self, set: usize, at: u32, slot: Slot) {
        self.list(at, slot.line);
        self.sets[set].queue.push_back(slot.used << SLOT_BITS | u64::from(at));
        match self.slots.get_mut(at as usize) {
            Some(old) => *old = slot,
            None => self.slots.push(slot),
        }
    }

    /// Enters a line in the table.
    #[inline(always)]
    fn list(&mut self, at: u32, line: u64) {
        let mark = Tags::mark(line);
        let mask = self.table.len() - 1;
        let mut place = self.home(mark);
        while self.table[place & mask] != EMPTY {
            place += 1;
        }
        self.table[place & mask] = mark << 16 | at;
    }

    /// Takes a line out of the table. Entries behind it move up where they would not be found any more.
    #[inline(always)]
    fn unlist(&mut self, at: u32, line: u64) {
        let mark = Tags::mark(line);
        let mask = self.table.len() - 1;
        let mut hole = self.home(mark);
        let wanted = mark << 16 | at;
        while self.table[hole & mask] != wanted {
            hole += 1;
        }
        let mut place = hole;
        loop {
            place += 1;
            let entry = self.table[place & mask];
            if entry == EMPTY {
                break;
            }
            // How far it is from where its search begins.
            let home = self.home(entry >> 16);
            let distance = place.wrapping_sub(home) & mask;
            if distance >= place - hole {
                self.table[hole & mask] = entry;
                hole = place;
            }
        }
        self.table[hole & mask] = EMPTY;
    }

    /// Drops all lines.
    pub fn invalidate(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        self.table.fill(EMPTY);
        for set in &mut self.sets {
            set.queue.clear();
            set.again.clear();
        }
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines of a set in the order of use, oldest first: what the tags must be like.
    #[derive(Default)]
    struct Model {
        lines: Vec<(u64, bool)>,
    }

    proptest! {
        #[test]
        fn the_least_recently_used_line_gives_way(
            uses in prop::collection::vec((0u64..40, 0u8..10), 1..400),
        ) {
            // One set of 12 lines.
            let mut tags = Tags::new(12 * LINE as u32, 1);
            let mut model = Model::default();
            for (n, action) in uses {
                let line = n * LINE;
                match (tags.find(line), action) {
                    (Some(at), 0..5) => {
                        tags.touch(at);
                        let place = model.lines.iter().position(|l| l.0 == line).expect("it is there");
                        let entry = model.lines.remove(place);
                        model.lines.push(entry);
                    }
                    (Some(at), _) => {
                        // It is asked for, or the answer comes.
                        let entry = model.lines.iter_mut().find(|l| l.0 == line).expect("it is there");
                        entry.1 = !entry.1;
                        let slot = tags.slot(at);
                        if entry.1 { slot.ask(1) } else { slot.fill(1, Cycle(1)) }
                    }
                    (None, 9) => {
                        tags.invalidate();
                        model.lines.clear();
                    }
                    (None, _) => {
                        let given = tags.insert(line);
                        if model.lines.len() == 12
                            && let Some(oldest) = model.lines.iter().position(|l| !l.1)
                        {
                            model.lines.remove(oldest);
                        }
                        prop_assert_eq!(given.is_some(), model.lines.len() < 12);
                        if given.is_some() {
                            model.lines.push((line, false));
                        }
                    }
                }
                for n in 0..40 {
                    let there = model.lines.iter().any(|l| l.0 == n * LINE);
                    prop_assert_eq!(tags.find(n * LINE).is_some(), there);
                }
            }
        }
    }
}
