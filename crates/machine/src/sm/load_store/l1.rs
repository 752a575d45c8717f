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

/// What is known of a line in a word: sectors that loads can read, now or when they are ready; sectors asked for and not answered;
/// store requests on their way; and, above them, when the last of its sectors came. As shifts.
const VALID: u32 = 0;
const PENDING: u32 = 4;
const STORES: u32 = 8;
const READY: u32 = 21;

/// Store requests that are counted.
const MOST_STORES: u64 = (1 << (READY - STORES)) - 1;

const _: () = assert!(crate::sm::LAST_CYCLE < 1 << (u64::BITS - READY));

/// One line. Small: many SMs take turns in the host's caches, and lines that follow each other are mostly used together.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[repr(align(16))]
pub struct Slot {
    line: u32,
    /// Its last use, a count and not a time.
    used: u16,
    /// First of the requests that are on their way for it, or [`NO_FLIGHT`].
    flight: u16,
    known: u64,
}

/// No flight, in a slot.
const NO_FLIGHT: u16 = u16::MAX;

impl Slot {
    #[inline(always)]
    fn set(&mut self, what: u32, sectors: u8) {
        self.known |= u64::from(sectors & 15) << what;
    }

    #[inline(always)]
    fn clear(&mut self, what: u32, sectors: u8) {
        self.known &= !(u64::from(sectors & 15) << what);
    }

    #[inline(always)]
    pub fn valid(&self) -> u8 {
        (self.known >> VALID) as u8 & 15
    }

    #[inline(always)]
    pub fn pending(&self) -> u8 {
        (self.known >> PENDING) as u8 & 15
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

    /// A store to the line finds it: it has sectors, or stores of it are on their way, though nothing can be read from it then.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.known & ((1 << READY) - 1) != 0
    }

    /// Requests with stores to the line leave. More than are counted are never under way at once.
    #[inline(always)]
    pub fn stores(&mut self, requests: u64) {
        let more = requests.min(MOST_STORES - (self.known >> STORES & MOST_STORES));
        self.known += more << STORES;
    }

    /// The answer to one of them came.
    #[inline(always)]
    pub fn stored(&mut self) {
        if self.known >> STORES & MOST_STORES != 0 {
            self.known -= 1 << STORES;
        }
    }

    /// As its set's order has it, in the slot `at`.
    #[inline(always)]
    fn entry(&self, at: u32) -> u32 {
        u32::from(self.used) << SLOT_BITS | at
    }

    /// When all of these sectors, which are here, are there.
    #[inline(always)]
    pub fn ready(&self, sectors: u8) -> Cycle {
        if sectors != 0 { Cycle(self.known >> READY) } else { Cycle(0) }
    }

    /// These sectors come at `at`.
    #[inline(always)]
    pub fn fill(&mut self, sectors: u8, at: Cycle) {
        if sectors != 0 {
            self.clear(PENDING, sectors);
            self.set(VALID, sectors);
            let below = self.known & ((1 << READY) - 1);
            self.known = self.known.max(at.0 << READY | below);
        }
    }
}

/// The lines of a set in the order in which they give way. An entry is a use and the slot used: the slot's last use when
/// the entry was made, and no later than that of any entry made since.
#[derive(Serialize, Deserialize)]
struct Set {
    /// Lines as they came in.
    queue: VecDeque<u32>,
    /// Lines that were used again by the time that their turn came.
    again: BinaryHeap<Reverse<u32>>,
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
    fn first(&mut self) -> Option<u32> {
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
    clock: u16,
    /// For [`Tags::oldest`]: lines that cannot give way now.
    aside: Vec<u32>,
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

    /// The number that a line is known by: 32 bits, enough for 512 GB of addresses.
    #[inline(always)]
    fn number(line: u64) -> u32 {
        (line / LINE) as u32
    }

    /// What an entry has of its line: bits of a hash and, below them, the place among neighbours.
    #[inline(always)]
    pub fn mark(line: u64) -> u32 {
        Tags::mark_of(Tags::number(line))
    }

    #[inline(always)]
    fn mark_of(number: u32) -> u32 {
        let n = u64::from(number);
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
    fn set(&self, number: u32) -> usize {
        let n = u64::from(number);
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
        let (mask, number) = (self.table.len() - 1, Tags::number(line));
        let mut place = self.home(mark);
        loop {
            let entry = self.table[place & mask];
            if entry == EMPTY {
                return None;
            }
            let slot = entry & 0xffff;
            if entry >> 16 == mark && self.slots[slot as usize].line == number {
                return Some(slot);
            }
            place += 1;
        }
    }

    /// As [`find`](Tags::find), where the line was before or is at first sight; its mark is only needed where it is not.
    #[inline(always)]
    pub fn find_from(&self, before: u32, line: u64, mark: impl FnOnce() -> u32) -> Option<u32> {
        match self.slots.get(before as usize) {
            Some(slot) if slot.line == Tags::number(line) => Some(before),
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

    /// First of the requests that are on their way for the line of a slot, or [`NONE`].
    #[inline(always)]
    pub fn flight_of(&self, at: u32) -> u32 {
        match self.slots.get(at as usize).map_or(NO_FLIGHT, |slot| slot.flight) {
            NO_FLIGHT => NONE,
            token => token.into(),
        }
    }

    /// The same from now on. A request beyond those that can be named, of which an SM never has so many under way, is not known.
    #[inline(always)]
    pub fn set_flight(&mut self, at: u32, token: u32) {
        self.slots[at as usize].flight = u16::try_from(token).unwrap_or(NO_FLIGHT);
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
        self.slots[at as usize].used = self.tick();
    }

    /// A line is used now.
    #[inline(always)]
    fn tick(&mut self) -> u16 {
        if self.clock == u16::MAX {
            self.count_anew();
        }
        self.clock += 1;
        self.clock
    }

    /// Once in so many uses as can be counted: their order in the least numbers.
    #[cold]
    fn count_anew(&mut self) {
        let mut order: Vec<u32> = (0..self.slots.len() as u32).collect();
        order.sort_unstable_by_key(|&at| self.slots[at as usize].used);
        for set in &mut self.sets {
            set.queue.clear();
            set.again.clear();
        }
        for (n, &at) in (1..).zip(&order) {
            let slot = &mut self.slots[at as usize];
            slot.used = n;
            let (entry, number) = (slot.entry(at), slot.line);
            let set = self.set(number);
            self.sets[set].queue.push_back(entry);
        }
        self.clock = order.len() as u16;
    }

    /// Takes the line that was not used for longest out of its set's order, but none that waits for an answer.
    #[inline(always)]
    fn oldest(&mut self, set: usize) -> Option<u32> {
        let set = &mut self.sets[set];
        let mut found = None;
        while let Some(entry) = set.first() {
            let at = entry & ((1 << SLOT_BITS) - 1);
            let slot = &self.slots[at as usize];
            let now = slot.entry(at);
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
        // Before a line is taken out of the order, which may be counted anew.
        let used = self.tick();
        let number = Tags::number(line);
        let set = self.set(number);
        let at = if self.sets[set].lines() < self.ways as usize {
            self.slots.len() as u32
        } else {
            let at = self.oldest(set)?;
            self.unlist(at, self.slots[at as usize].line);
            at
        };
        let slot = Slot { line: number, used, flight: NO_FLIGHT, known: 0 };
        self.list(at, number);
        self.sets[set].queue.push_back(slot.entry(at));
        match self.slots.get_mut(at as usize) {
            Some(old) => *old = slot,
            None => self.slots.push(slot),
        }
        Some(at)
    }

    /// Enters a line in the table.
    #[inline(always)]
    fn list(&mut self, at: u32, number: u32) {
        let mark = Tags::mark_of(number);
        let mask = self.table.len() - 1;
        let mut place = self.home(mark);
        while self.table[place & mask] != EMPTY {
            place += 1;
        }
        self.table[place & mask] = mark << 16 | at;
    }

    /// Takes a line out of the table. Entries behind it move up where they would not be found any more.
    #[inline(always)]
    fn unlist(&mut self, at: u32, number: u32) {
        let mark = Tags::mark_of(number);
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
            before in prop::sample::select(vec![0, u16::MAX - 70, u16::MAX]),
        ) {
            // One set of 12 lines.
            let mut tags = Tags::new(12 * LINE as u32, 1);
            tags.clock = before;
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
                prop_assert_eq!(tags.sets[0].lines(), model.lines.len());
                for n in 0..40 {
                    let there = model.lines.iter().any(|l| l.0 == n * LINE);
                    prop_assert_eq!(tags.find(n * LINE).is_some(), there);
                }
            }
        }
    }
}
