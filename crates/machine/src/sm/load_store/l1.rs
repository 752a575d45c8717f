//! Tags of the first-level cache: sectored lines of 128 bytes, found by a hash, replaced by least recent use in a set.
//!
//! A line's tag is there from the moment it is asked for, so a second access to a sector on its way is a hit that waits.
//!
//! Sets have more ways than can be looked through, so lines are found in a table of their own, and the order of use is
//! kept lazily: a use stamps the line and nothing else, and whoever looks for the oldest line puts those that were used
//! since back in their new places. A lookup so touches little memory: many SMs take turns in the host's caches.

use super::super::look_ahead::extent;
use super::coalesce::Piece;
use super::flight::NO_SLOT;
use crate::units::{Cycle, LINE};
use serde::{Deserialize, Serialize};
use simt::prefetch::{prefetch, prefetch_at};
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

/// What a load finds of a line.
pub struct Asked {
    /// Sectors that it asked for first, and those that others did.
    pub missing: u8,
    pub coming: u8,
    /// When all that are there are.
    pub ready: Cycle,
}

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

    /// A load wants these sectors: those that are neither there nor on their way are asked for from now on.
    #[inline(always)]
    pub fn ask(&mut self, sectors: u8) -> Asked {
        let away = sectors & !self.valid();
        let coming = away & self.pending();
        let missing = away ^ coming;
        self.set(PENDING, missing);
        Asked { missing, coming, ready: self.ready(sectors ^ away) }
    }

    /// First of the requests that are on their way for the line, or [`NONE`].
    #[inline(always)]
    pub fn flight(&self) -> u32 {
        if self.flight == NO_FLIGHT { NONE } else { self.flight.into() }
    }

    /// The same from now on. A request beyond those that can be named, of which an SM never has so many under way, is not known.
    #[inline(always)]
    pub fn set_flight(&mut self, token: u32) {
        self.flight = u16::try_from(token).unwrap_or(NO_FLIGHT);
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

/// Where the search for a mark begins in a table of this shift. Neighbours lie together: warps of a CTA mostly ask for them in one
/// turn of the SM, and the host's caches then fetch one line for all.
#[inline(always)]
fn home(mark: u32, shift: u32) -> usize {
    let below = NEIGHBOURS as u32 - 1;
    (((mark >> shift) & !below) | (mark & below)) as usize
}

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
    pub fn number(line: u64) -> u32 {
        (line / LINE) as u32
    }

    /// What an entry has of its line: bits of a hash and, below them, the place among neighbours.
    #[inline(always)]
    pub fn mark(number: u32) -> u32 {
        let n = u64::from(number);
        let hash = (n / NEIGHBOURS).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (((hash >> 48) & !(NEIGHBOURS - 1)) | (n % NEIGHBOURS)) as u32
    }

    /// The same in this table.
    #[inline(always)]
    fn home(&self, mark: u32) -> usize {
        home(mark, self.shift)
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
    pub fn find(&self, number: u32) -> Option<u32> {
        self.find_marked(number, Tags::mark(number))
    }

    /// The same with its mark.
    #[inline(always)]
    pub fn find_marked(&self, number: u32, mark: u32) -> Option<u32> {
        let mask = self.table.len() - 1;
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
    pub fn find_from(&self, before: u32, number: u32, mark: impl FnOnce() -> u32) -> Option<u32> {
        match self.slots.get(before as usize) {
            Some(slot) if slot.line == number => Some(before),
            _ => self.find_marked(number, mark()),
        }
    }

    /// Where sets lie in the host's memory.
    pub fn extent(&self) -> (usize, usize) {
        extent(&self.sets)
    }

    /// A line will be looked up soon: its mark.
    #[inline(always)]
    pub fn expect(&self, number: u32) -> u32 {
        let mark = Tags::mark(number);
        // It is in the table.
        prefetch_at(self.table.as_ptr().wrapping_add(self.home(mark)));
        mark
    }

    /// The same for several lines, whose marks go to a list.
    #[inline(always)]
    pub fn expect_marks(&self, numbers: &[u32], marks: &mut [u16]) {
        for (mark, &number) in marks.iter_mut().zip(numbers) {
            *mark = self.expect(number) as u16;
        }
    }

    /// The same for lines with these marks, with the table's entries at hand: the slots that they name, mostly the lines'.
    #[inline(never)]
    pub fn expect_slots(&self, marks: &[u16], slots: &mut [u16]) {
        let (table, all, shift) = (&*self.table, self.slots.as_slice(), self.shift);
        for (slot, &mark) in slots.iter_mut().zip(marks) {
            *slot = table.get(home(mark.into(), shift)).map_or(u16::MAX, |&entry| entry as u16);
            prefetch(all, (*slot).into());
        }
    }

    /// A load wants sectors of a line, in a use that is counted. What it finds; the line's slot, new if need be, or
    /// [`NO_SLOT`] where none can give way; and the requests that are on their way for it.
    #[inline(always)]
    pub fn load(&mut self, piece: &Piece, used: u16) -> (Asked, u32, u32) {
        let mut at = piece.slot;
        if self.slots.get(at as usize).is_none_or(|slot| slot.line != piece.number) {
            at = self.find_or_insert(piece.number, piece.mark, used);
        }
        match self.slots.get_mut(at as usize) {
            Some(slot) => {
                slot.used = used;
                let chain = slot.flight();
                (slot.ask(piece.sectors), at, chain)
            }
            None => (Asked { missing: piece.sectors, coming: 0, ready: Cycle(0) }, NO_SLOT, NONE),
        }
    }

    /// The slot of a line that is not where its search begins.
    #[inline(never)]
    fn find_or_insert(&mut self, number: u32, mark: u32, used: u16) -> u32 {
        self.find_marked(number, mark).or_else(|| self.insert(number, used)).unwrap_or(NO_SLOT)
    }

    /// First of the requests that are on their way for the line of a slot, or [`NONE`].
    #[inline(always)]
    pub fn flight_of(&self, at: u32) -> u32 {
        self.slots.get(at as usize).map_or(NONE, Slot::flight)
    }

    /// The first of the requests for the line of a slot, if there is one, is this from now on.
    #[inline(always)]
    pub fn set_flight(&mut self, at: u32, token: u32) {
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.set_flight(token);
        }
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

    /// A use of a line.
    #[inline(always)]
    pub fn touch(&mut self, at: u32, used: u16) {
        self.slots[at as usize].used = used;
    }

    /// So many lines may be used now: the first of these uses, the others follow. They come before lines are taken out of
    /// their sets' orders, which may be counted anew.
    #[inline(always)]
    pub fn uses(&mut self, lines: usize) -> u16 {
        if usize::from(u16::MAX - self.clock) < lines {
            self.count_anew();
        }
        let first = self.clock + 1;
        self.clock += lines as u16;
        first
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

    /// A slot for a line that is not there and is used now, without sectors; None if every line of the set waits for an answer.
    #[inline]
    pub fn insert(&mut self, number: u32, used: u16) -> Option<u32> {
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
        let mark = Tags::mark(number);
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
        let mark = Tags::mark(number);
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
                let used = tags.uses(1);
                match (tags.find(n as u32), action) {
                    (Some(at), 0..5) => {
                        tags.touch(at, used);
                        let place = model.lines.iter().position(|l| l.0 == line).expect("it is there");
                        let entry = model.lines.remove(place);
                        model.lines.push(entry);
                    }
                    (Some(at), _) => {
                        // It is asked for, or the answer comes.
                        let entry = model.lines.iter_mut().find(|l| l.0 == line).expect("it is there");
                        entry.1 = !entry.1;
                        let slot = tags.slot(at);
                        if entry.1 { slot.set(PENDING, 1) } else { slot.fill(1, Cycle(1)) }
                    }
                    (None, 9) => {
                        tags.invalidate();
                        model.lines.clear();
                    }
                    (None, _) => {
                        let given = tags.insert(n as u32, used);
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
                    prop_assert_eq!(tags.find(n as u32).is_some(), there);
                }
            }
        }
    }
}
