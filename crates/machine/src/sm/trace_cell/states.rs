//! Samples before they are records: states of warp slots in the order in which they are told, mostly a word each. They become
//! rows, one a moment with a column a slot, when all that could come before them is known.
//!
//! They are many, and many SMs take turns in the host's caches: so they are small, and written one behind the other.

use crate::stall::{STALLS, Stall};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::ops::Range;
use trace::record::INSTRUCTION_BYTES;

/// Rows that are made at once: seldom, since that takes much of the host's caches.
pub const ROWS: usize = 512;
/// Columns: most warp slots of an SM.
pub const SLOTS: usize = 64;

/// A warp in a state: its instruction, a bit for every reason, the CTA slot or, where plain records are wanted, the SM's number.
/// No reason: no warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    pub pc: u32,
    pub stalls: u32,
    pub place: u16,
}

/// Bits of the reasons in a packed cell, and of the place, which are as many as a record has for the SM's number: an SM has fewer
/// CTA slots than bits of warp slots.
const STALL_BITS: u32 = 22;
const PLACE_BITS: u32 = 10;

const _: () = assert!(STALLS as u32 <= STALL_BITS);

/// The eight bytes that every record has.
pub type PlainRecord = [u8; 8];

/// A cell in one word: a plain record, where its place is the SM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Packed(u64);

impl Packed {
    /// Where the place is.
    const PLACE: u32 = 32 + STALL_BITS;

    #[inline(always)]
    fn new(cell: Cell) -> Packed {
        let pc = u64::from(cell.pc.wrapping_mul(INSTRUCTION_BYTES));
        let place = u64::from(cell.place) & ((1 << PLACE_BITS) - 1);
        Packed(place << Packed::PLACE | u64::from(cell.stalls) << 32 | pc)
    }

    #[inline(always)]
    fn cell(self) -> Cell {
        Cell {
            pc: self.0 as u32 / INSTRUCTION_BYTES,
            stalls: (self.0 >> 32) as u32 & ((1 << STALL_BITS) - 1),
            place: (self.0 >> Packed::PLACE) as u16,
        }
    }

    /// A state that is told in a word, without a place.
    #[inline(always)]
    fn short(word: u32) -> Packed {
        let pc = u64::from((word >> PC).wrapping_mul(INSTRUCTION_BYTES));
        Packed(u64::from(Why(word).stalls()) << 32 | pc)
    }

    /// A state that is told in these words.
    fn told(words: &[u32], place: u16) -> Packed {
        let cell = match *words {
            [word, pc, why, _] if word & NO_REASON == NO_REASON => {
                Packed::new(Cell { pc, stalls: Why(why).stalls(), place: 0 })
            }
            _ => words.first().map_or(Packed(0), |&word| Packed::short(word)),
        };
        Packed(cell.0 | u64::from(place) << Packed::PLACE)
    }

    /// The plain record of a cell that has no place yet.
    #[inline(always)]
    fn record(self, place: Packed) -> PlainRecord {
        (self.0 | place.0).to_le_bytes()
    }
}

/// Bits of a word: the reason, what is missing besides, whether the next word tells the number of moments, the slot, and above
/// them the instruction.
const REASON_BITS: u32 = 5;
const MISSING_BITS: u32 = 2;
const SLOT_BITS: u32 = 6;
const MANY: u32 = 1 << (REASON_BITS + MISSING_BITS);
const SLOT: u32 = REASON_BITS + MISSING_BITS + 1;
const PC: u32 = SLOT + SLOT_BITS;
/// In the place of a reason: moments of the slot are left out, as many as the next two words say, and what comes then is in
/// another place, which is where the instruction would be. With [`MANY`]: a state whose instruction does not fit; the next words
/// tell it, the reason and the number of moments.
const NO_REASON: u32 = (1 << REASON_BITS) - 1;

const _: () = assert!(STALLS as u32 <= NO_REASON && SLOTS == 1 << SLOT_BITS);

/// A reason, and what is missing besides, in the bits that a word has for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Why(u32);

impl Why {
    /// The lowest bit of `missing` tells of results of memory, the next one of those of other units of variable latency.
    #[inline(always)]
    pub fn new(reason: Stall, missing: u32) -> Why {
        Why(reason as u32 | (missing & ((1 << MISSING_BITS) - 1)) << REASON_BITS)
    }

    /// A bit for every reason.
    #[inline(always)]
    fn stalls(self) -> u32 {
        Why::STALLS[self.0 as usize % Why::ALL]
    }

    /// As many as there are.
    const ALL: usize = 1 << (REASON_BITS + MISSING_BITS);

    const STALLS: [u32; Why::ALL] = {
        let mut all = [0; Why::ALL];
        let mut n = 0;
        while n < Why::ALL {
            let (reason, missing) = (n as u32 & NO_REASON, n as u32 >> REASON_BITS);
            let (long, short) = (missing & 1, missing >> 1 & 1);
            all[n] =
                1 << reason | long << Stall::LongScoreboard as u32 | short << Stall::ShortScoreboard as u32;
            n += 1;
        }
        all
    };
}

impl From<Stall> for Why {
    #[inline(always)]
    fn from(reason: Stall) -> Why {
        Why(reason as u32)
    }
}

/// Words that are kept before they become rows: many launches have fewer.
const MOST_WORDS: usize = 1 << 16;

/// Words that there is room for at first.
const FIRST_WORDS: usize = 256;

/// What the first words of a list tell: moments of a slot that are left out, or in one state.
struct Told {
    slot: usize,
    is_left_out: bool,
    count: u64,
    words: usize,
}

/// Most words of one.
const MOST: usize = 4;

impl Told {
    fn read(words: &[u32]) -> Option<Told> {
        let &word = words.first()?;
        let is_left_out = word & (NO_REASON | MANY) == NO_REASON;
        let (count, used) = match (word & NO_REASON == NO_REASON, word & MANY != 0) {
            (false, false) => (1, 1),
            (false, true) => (u64::from(*words.get(1)?), 2),
            (true, false) => (u64::from(*words.get(1)?) | u64::from(*words.get(2)?) << 32, 3),
            (true, true) => (u64::from(*words.get(3)?), 4),
        };
        Some(Told { slot: slot_of(word), is_left_out, count, words: used })
    }
}

/// Where the slot of these moments goes on.
#[inline(always)]
fn place_of(word: u32) -> u16 {
    (word >> PC) as u16 & ((1 << PLACE_BITS) - 1)
}

#[inline(always)]
fn slot_of(word: u32) -> usize {
    (word >> SLOT) as usize % SLOTS
}

/// Moments and the slots that have a warp then. What is looked at whenever one is told comes first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct States {
    words: Vec<u32>,
    /// Moments before which all is told by a word, and the one behind that.
    marks: Vec<(u64, usize)>,
    /// The moment before which nothing comes any more.
    first: u64,
    read: Read,
}

/// Up to where slots were read: the moment behind the last one of each, and its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Read {
    #[serde(with = "simt::arrays")]
    next: [u64; SLOTS],
    #[serde(with = "simt::arrays")]
    places: [u16; SLOTS],
}

impl Default for Read {
    fn default() -> Read {
        Read { next: [0; SLOTS], places: [0; SLOTS] }
    }
}

/// States by the row that they begin in, and what slots are in while rows are gone through. Often many moments lie in one
/// state: only the slots whose state changes are looked at from one row to the next. Made once a host thread, since the SMs
/// that it runs need them in turn.
struct Rows {
    /// The words of states that begin in a row, each in the place of its slot, and the slots that have one there, a bit each.
    /// [`NO_REASON`]: where the instruction would be is the number of a cell.
    words: Vec<[u32; SLOTS]>,
    begun: [u64; ROWS],
    /// Slots whose state ended with the row before.
    ended: [u64; ROWS],
    /// Of what is not told by a word alone.
    others: Vec<Packed>,
    /// What slots are in, with room to copy some more, and those that are in anything.
    cells: [Packed; SLOTS + AT_ONCE],
    present: u64,
}

/// Records that are copied at once.
const AT_ONCE: usize = 8;

/// Records of rows that are handed on at once.
const BATCH: usize = 2048;

thread_local! {
    /// With the words that are left when rows are made.
    static SCRATCH: RefCell<(Rows, Vec<u32>)> = const { RefCell::new((Rows::EMPTY, Vec::new())) };
    /// Records on their way out of rows.
    static OUT: RefCell<Vec<PlainRecord>> = const { RefCell::new(Vec::new()) };
}

impl Rows {
    const EMPTY: Rows = Rows {
        words: Vec::new(),
        begun: [0; ROWS],
        ended: [0; ROWS],
        others: Vec::new(),
        cells: [Packed(0); SLOTS + AT_ONCE],
        present: 0,
    };

    fn clear(&mut self) {
        self.words.resize(ROWS, [0; SLOTS]);
        self.begun.fill(0);
        self.ended.fill(0);
        self.others.clear();
        self.present = 0;
    }

    /// A slot is in what a word tells from one row on up to another.
    #[inline(always)]
    fn put(&mut self, rows: Range<u64>, slot: usize, word: u32) {
        let (slot, bit) = (slot % SLOTS, 1 << (slot % SLOTS));
        if let Some(words) = self.words.first_chunk_mut::<ROWS>() {
            words[rows.start as usize % ROWS][slot] = word;
            self.begun[rows.start as usize % ROWS] |= bit;
        }
        // What lies behind the last row is left out.
        if let Some(ended) = self.ended.get_mut(rows.end as usize) {
            *ended |= bit;
        }
    }

    /// Puts states that a list tells from word `n` on into their rows, up to one that is not in these rows alone, or not told
    /// by words alone: which word that is. As most are; by itself, so that all it needs is in registers of the host.
    #[inline(never)]
    fn put_words(
        &mut self,
        words: &[u32],
        mut n: usize,
        next: &mut [u64; SLOTS],
        (first, many): (u64, u64),
    ) -> usize {
        let Some(begin) = self.words.first_chunk_mut::<ROWS>() else { return n };
        while let Some(&[word, more]) = words.get(n..).and_then(<[u32]>::first_chunk) {
            let slot = slot_of(word);
            // The host cannot guess which it is, so it is not asked to.
            let is_many = u32::from(word & MANY != 0);
            let count = u64::from(more & is_many.wrapping_neg() | is_many ^ 1);
            let row = next[slot].wrapping_sub(first);
            let end = row.wrapping_add(count);
            if word & NO_REASON == NO_REASON || row >= many || end > many {
                break;
            }
            let (row, bit) = (row as usize % ROWS, 1 << slot);
            begin[row][slot] = word;
            self.begun[row] |= bit;
            if let Some(ended) = self.ended.get_mut(end as usize) {
                *ended |= bit;
            }
            next[slot] += count;
            n += 1 + is_many as usize;
        }
        n
    }

    /// The same of a cell.
    fn put_other(&mut self, rows: Range<u64>, slot: usize, cell: Packed) {
        self.put(rows, slot, (self.others.len() as u32) << PC | NO_REASON);
        self.others.push(cell);
    }

    /// Goes on to the next row, and tells which slots have a warp there.
    #[inline(always)]
    fn go_to(&mut self, row: usize) -> Row<'_> {
        let begun = self.begun[row % ROWS];
        self.present = self.present & !self.ended[row % ROWS] | begun;
        if let Some(words) = self.words.get(row) {
            let mut rest = begun;
            while rest != 0 {
                let slot = rest.trailing_zeros() as usize % SLOTS;
                let word = words[slot];
                self.cells[slot] = match word & NO_REASON {
                    NO_REASON => self.others.get((word >> PC) as usize).copied().unwrap_or_default(),
                    _ => Packed::short(word),
                };
                rest &= rest - 1;
            }
        }
        Row { present: self.present, cells: &self.cells }
    }
}

// As many cells as there can be have numbers that fit.
const _: () = assert!(ROWS * SLOTS <= 1 << (32 - PC));

impl States {
    /// Bytes of it that are looked at whenever a state is told: its first.
    pub const NEAR: usize = std::mem::offset_of!(States, marks);

    /// So many moments of a slot are left out, and what comes then is in another place, if that matters.
    pub fn start(&mut self, slot: u16, count: u64, place: Option<u16>) {
        if count == 0 && place.is_none() {
            return;
        }
        self.make_room();
        let place = u32::from(place.unwrap_or_default()) & ((1 << PLACE_BITS) - 1);
        let slot = u32::from(slot) % SLOTS as u32;
        self.words.extend([place << PC | slot << SLOT | NO_REASON, count as u32, (count >> 32) as u32]);
    }

    /// Room for what is told at once.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.words.capacity() - self.words.len() < MOST {
            let room = if self.words.is_empty() { FIRST_WORDS } else { MOST };
            self.words.reserve(room);
        }
    }

    /// Where in the host's memory the next words go.
    #[inline(always)]
    pub fn end(&self) -> *const u32 {
        self.words.as_ptr().wrapping_add(self.words.len())
    }

    /// A slot is in a state at its next moment; false where that cannot be told in a word, or there has to be room for it
    /// first.
    #[inline(always)]
    pub fn put_one(&mut self, slot: u16, pc: u32, why: Why) -> bool {
        let has_room = self.words.len() < self.words.capacity();
        let is_short = pc >> (32 - PC) == 0 && has_room;
        if is_short {
            self.words.push(pc << PC | (u32::from(slot) % SLOTS as u32) << SLOT | why.0);
        }
        is_short
    }

    /// The same of so many moments.
    pub fn put(&mut self, slot: u16, pc: u32, why: Why, mut count: u64) {
        self.make_room();
        if count == 1 && self.put_one(slot, pc, why) {
            return;
        }
        let word = (u32::from(slot) % SLOTS as u32) << SLOT | MANY;
        while count > 0 {
            let some = count.min(u32::MAX.into());
            self.make_room();
            match pc >> (32 - PC) {
                0 => self.words.extend([word | pc << PC | why.0, some as u32]),
                _ => self.words.extend([word | NO_REASON, pc, why.0, some as u32]),
            }
            count -= some;
        }
    }

    /// All before number `end` is told. That is noted, and nothing else as long as there is little.
    pub fn mark(&mut self, end: u64) -> bool {
        let is_little = self.words.len() < MOST_WORDS;
        if is_little {
            self.marks.push((end, self.words.len()));
        }
        is_little
    }

    /// Takes out all rows before number `end`, which are over, and hands on those with warps.
    pub fn take(&mut self, end: u64, mut hand: impl FnMut(u64, Row<'_>)) {
        let (all, marks) = (std::mem::take(&mut self.words), std::mem::take(&mut self.marks));
        let mut used = 0;
        for (number, behind) in marks.into_iter().chain([(end, all.len())]) {
            self.words.extend_from_slice(all.get(used..behind).unwrap_or_default());
            used = used.max(behind);
            self.take_told(number.min(end), &mut hand);
        }
    }

    /// The same for records, where those are plain, and have this place: many at a time.
    pub fn take_records(&mut self, end: u64, place: u16, mut hand: impl FnMut(&[PlainRecord])) {
        let place = Packed::new(Cell { place, ..Cell::default() });
        OUT.with_borrow_mut(|out| {
            out.resize(BATCH, PlainRecord::default());
            let mut used = 0;
            self.take(end, |_, row| {
                if out.len() - used < SLOTS + AT_ONCE {
                    hand(&out[..used]);
                    used = 0;
                }
                if let Some(to) = out[used..].first_chunk_mut() {
                    used += row.write(place, to);
                }
            });
            hand(&out[..used]);
        });
    }

    /// The same where all that comes before `end` is told by the words that there are.
    fn take_told(&mut self, end: u64, hand: &mut impl FnMut(u64, Row<'_>)) {
        SCRATCH.with_borrow_mut(|(rows, left)| {
            while self.first < end && !self.words.is_empty() {
                let behind = end.min(self.first.saturating_add(ROWS as u64));
                rows.clear();
                left.clear();
                self.make_rows(rows, behind, left);
                let mut any = 0;
                for number in self.first..behind {
                    let row = rows.go_to((number - self.first) as usize);
                    any |= row.present;
                    if row.present != 0 {
                        hand(number, row);
                    }
                }
                std::mem::swap(&mut self.words, left);
                // Long stretches without warps are passed over.
                self.first = if any == 0 { self.next_number().clamp(behind, end) } else { behind };
            }
            self.first = self.first.max(end);
        });
    }

    /// Puts what there is before a moment into its rows, and all else aside.
    #[inline(never)]
    fn make_rows(&mut self, rows: &mut Rows, behind: u64, left: &mut Vec<u32>) {
        let (first, many) = (self.first, behind - self.first);
        let (words, Read { next, places }) = (self.words.as_slice(), &mut self.read);
        // Slots of which something was put aside: what comes behind it is, too.
        let mut aside = 0u64;
        let mut have_places = places.iter().any(|&place| place != 0);
        let mut n = 0;
        while let Some(&word) = words.get(n) {
            let slot = slot_of(word);
            if word & NO_REASON != NO_REASON && !have_places {
                let behind = rows.put_words(words, n, next, (first, many));
                if behind > n {
                    n = behind;
                    continue;
                }
            }
            let Some(told) = Told::read(&words[n..]) else { return };
            let all = &words[n..n + told.words];
            n += told.words;
            let (from, end_of_all) = (next[slot], next[slot].saturating_add(told.count));
            if aside >> slot & 1 != 0 || !told.is_left_out && from >= behind {
                aside |= 1 << slot;
                left.extend_from_slice(all);
                continue;
            }
            if told.is_left_out {
                (next[slot], places[slot]) = (end_of_all, place_of(word));
                have_places |= places[slot] != 0;
                continue;
            }
            let end = end_of_all.min(behind);
            next[slot] = end;
            // What lies before the first row is none of these.
            if end > first {
                rows.put_other(from.max(first) - first..end - first, slot, Packed::told(all, places[slot]));
            }
            if end < end_of_all {
                aside |= 1 << slot;
                left.extend_from_slice(all);
                // The last word tells how many there are.
                if let Some(count) = left.last_mut() {
                    *count = (end_of_all - end) as u32;
                }
            }
        }
    }

    /// The first moment of all that there is.
    #[cold]
    fn next_number(&self) -> u64 {
        let (mut n, mut first, mut next) = (0, u64::MAX, self.read.next);
        while let Some(told) = self.words.get(n..).and_then(Told::read) {
            if !told.is_left_out {
                first = first.min(next[told.slot]);
            }
            next[told.slot] = next[told.slot].saturating_add(told.count);
            n += told.words;
        }
        first
    }

    /// Whether states that were read from a file are of so many slots.
    pub fn is_sound(&self, slots: usize) -> bool {
        let (mut n, mut next) = (0, self.read.next);
        while n < self.words.len() {
            let Some(told) = Told::read(&self.words[n..]) else { return false };
            let Some(end) = next[told.slot].checked_add(told.count) else { return false };
            let has_reason = told.is_left_out || self.reason(n).is_some_and(|n| n < STALLS as u32);
            if told.slot >= slots || !has_reason || !told.is_left_out && told.count == 0 {
                return false;
            }
            (next[told.slot], n) = (end, n + told.words);
        }
        let marks = self.marks.iter().copied().chain([(u64::MAX, self.words.len())]);
        if !marks.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) {
            return false;
        }
        self.read.places.iter().all(|&place| place >> PLACE_BITS == 0)
    }

    /// The reason of a state that a list tells from word `n` on.
    fn reason(&self, n: usize) -> Option<u32> {
        match self.words.get(n)? & NO_REASON {
            NO_REASON => self.words.get(n + 2).copied(),
            reason => Some(reason),
        }
    }
}

/// A row with warps.
pub struct Row<'t> {
    present: u64,
    cells: &'t [Packed; SLOTS + AT_ONCE],
}

impl Row<'_> {
    /// The slots that have a warp, ascending.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (u16, Cell)> {
        let mut rest = self.present;
        std::iter::from_fn(move || {
            let slot = rest.trailing_zeros() as usize;
            let cell = self.cells[..SLOTS].get(slot)?.cell();
            rest &= rest - 1;
            Some((slot as u16, cell))
        })
    }

    /// Writes the warps' records one behind the other, where those are plain but for a place that is missing: how many. What
    /// comes behind them is of no use.
    #[inline(always)]
    fn write(&self, place: Packed, to: &mut [PlainRecord; SLOTS + AT_ONCE]) -> usize {
        let (mut from, mut written, mut rest) = (0, 0, self.present);
        // Mostly the first slots have warps, up to some number; then others, with gaps between.
        while rest != 0 {
            let gap = rest.trailing_zeros();
            let run = (rest >> gap).trailing_ones();
            from += gap as usize;
            let (cells, records) = (&self.cells[from..], &mut to[written..]);
            let all = cells.as_chunks::<AT_ONCE>().0.iter().zip(records.as_chunks_mut::<AT_ONCE>().0);
            for (cells, records) in all.take((run as usize).div_ceil(AT_ONCE)) {
                *records = cells.map(|cell| cell.record(place));
            }
            (from, written) = (from + run as usize, written + run as usize);
            rest = rest.checked_shr(gap + run).unwrap_or(0);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A slot is in a state, where some moments were left out before.
    fn put(states: &mut States, slot: u16, left_out: u64, count: u64, pc: u32) {
        states.start(slot, left_out, None);
        states.put(slot, pc, Stall::Wait.into(), count);
    }

    /// All rows before number `end`.
    fn take(states: &mut States, end: u64) -> Vec<(u64, Vec<(u16, u32)>)> {
        let mut found = Vec::new();
        states.take(end, |number, row| {
            found.push((number, row.iter().map(|(slot, cell)| (slot, cell.pc)).collect()));
        });
        assert!(states.is_sound(SLOTS));
        found
    }

    #[test]
    fn what_is_not_over_comes_in_its_turn() {
        let mut states = States::default();
        put(&mut states, 0, 0, 1, 1);
        let rows = ROWS as u64;
        put(&mut states, 0, 0, 3 * rows, 2);
        put(&mut states, 0, 0, 1, 3);
        put(&mut states, 1, 2, 1, 4);
        assert_eq!(take(&mut states, 3), [(0, vec![(0, 1)]), (1, vec![(0, 2)]), (2, vec![(0, 2), (1, 4)])]);
        put(&mut states, 1, rows - 2, 1, 5);
        let rest = take(&mut states, u64::MAX);
        assert_eq!(rest.len() as u64, 3 * rows - 1);
        assert!(rest.iter().map(|(number, _)| *number).eq(3..3 * rows + 2));
        assert_eq!(rest[ROWS - 2], (rows + 1, vec![(0, 2), (1, 5)]));
        assert_eq!(rest.last(), Some(&(3 * rows + 1, vec![(0, 3)])));
        assert!(states.words.is_empty());
    }

    #[test]
    fn moments_without_warps_cost_nothing() {
        let mut states = States::default();
        put(&mut states, 0, 1 << 50, 2, 1);
        assert_eq!(take(&mut states, 1 << 40), []);
        put(&mut states, 1, 1 << 40, 1, 2);
        assert_eq!(take(&mut states, 1 << 41), [(1 << 40, vec![(1, 2)])]);
        assert_eq!(take(&mut states, u64::MAX), [(1 << 50, vec![(0, 1)]), ((1 << 50) + 1, vec![(0, 1)])]);
    }

    #[test]
    fn long_waits_are_kept_once_and_lose_nothing() {
        let mut states = States::default();
        put(&mut states, 0, 7, 200_000, 1);
        put(&mut states, 1, 150_000, 1, 2);
        assert_eq!(states.words.len(), 3 + 2 + 3 + 1);
        let mut rows = take(&mut states, 100_000);
        rows.extend(take(&mut states, u64::MAX));
        assert!(rows.iter().map(|(number, _)| *number).eq(7..200_007));
        assert!(rows.iter().all(|(_, warps)| warps[0] == (0, 1)));
        assert_eq!(rows[150_000 - 7].1, [(0, 1), (1, 2)]);
    }

    #[test]
    fn states_survive_saving() {
        let mut states = States::default();
        put(&mut states, 2, 5, 1, 7);
        put(&mut states, 2, 0, 2, 1 << 20);
        put(&mut states, 2, 1, 100, 9);
        let bytes = postcard::to_allocvec(&states).expect("is written");
        let mut back: States = postcard::from_bytes(&bytes).expect("is read");
        let expected =
            [(5, vec![(2, 7)]), (6, vec![(2, 1 << 20)]), (7, vec![(2, 1 << 20)]), (9, vec![(2, 9)])];
        assert_eq!(take(&mut back, 10), expected);
        assert!(states.is_sound(3) && !states.is_sound(2));
        states.words.pop();
        assert!(!states.is_sound(3));
    }

    proptest! {
        /// The same as a map of all moments.
        #[test]
        fn every_moment_comes_once(
            puts in prop::collection::vec((0u16..4, 0u64..5, prop::sample::select(vec![1u64, 1, 1, 2, 63, 64, 65, 300])), 1..60),
            cuts in prop::collection::vec(1u64..400, 0..4),
        ) {
            let mut states = States::default();
            let (mut next, mut all) = ([0u64; 4], std::collections::BTreeMap::new());
            for (n, &(slot, gap, count)) in puts.iter().enumerate() {
                // Mostly one follows on the other.
                let left_out = gap.saturating_sub(2);
                let first = next[usize::from(slot)] + left_out;
                // Some do not fit into a word.
                let pc = if n % 7 == 6 { 1 << 18 | n as u32 } else { n as u32 };
                put(&mut states, slot, left_out, count, pc);
                for number in first..first + count {
                    all.entry(number).or_insert_with(Vec::new).push((slot, pc));
                }
                next[usize::from(slot)] = first + count;
                if n % 16 == 15 {
                    prop_assert!(states.mark(*next.iter().min().expect("there are slots")));
                }
            }
            all.values_mut().for_each(|row| row.sort_unstable());
            let (mut found, mut end) = (Vec::new(), 0);
            for cut in cuts {
                end += cut;
                found.extend(take(&mut states, end));
            }
            found.extend(take(&mut states, u64::MAX));
            prop_assert_eq!(found, all.into_iter().collect::<Vec<_>>());
        }
    }
}
