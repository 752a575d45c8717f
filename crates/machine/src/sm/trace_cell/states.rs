//! Samples before they are records: states of warp slots in the order in which they are told, a word each where one follows on the
//! other. They become rows, one a moment with a column a slot, when all that could come before them is known.
//!
//! They are many, and many SMs take turns in the host's caches: so they are small, and written one behind the other.

use crate::sm::look_ahead::extent;
use crate::stall::STALLS;
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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

    /// A state for one reason at a place that [`Packed::place`] gave.
    #[inline(always)]
    fn short(pc: u32, reason: u32, place: u64) -> Packed {
        let pc = u64::from(pc.wrapping_mul(INSTRUCTION_BYTES));
        Packed(place | 1 << (32 + reason) | pc)
    }

    /// The place alone, where it is.
    #[inline(always)]
    fn place(self) -> u64 {
        self.0 >> Packed::PLACE << Packed::PLACE
    }

    #[inline(always)]
    fn record(self) -> PlainRecord {
        self.0.to_le_bytes()
    }

    #[inline(always)]
    fn of(record: PlainRecord) -> Packed {
        Packed(u64::from_le_bytes(record))
    }
}

/// Bits of a word: the reason, the slot, and above them the instruction.
const REASON_BITS: u32 = 5;
const SLOT_BITS: u32 = 6;
const PC: u32 = REASON_BITS + SLOT_BITS;
/// In the place of a reason: the state is told in full, in the words behind.
const IN_FULL: u32 = (1 << REASON_BITS) - 1;
/// The same: the reason is in the next word, with the number of moments above it.
const FOR_LONG: u32 = IN_FULL - 1;

const _: () = assert!(STALLS as u32 <= FOR_LONG && SLOTS == 1 << SLOT_BITS);

/// Words that are kept before they become rows: many launches have fewer.
const MOST_WORDS: usize = 1 << 16;

/// A moment that never comes.
const NEVER: u64 = u64::MAX;

/// Words of a state that is told in full, with the one that says so.
const FULL: usize = 7;

/// A state of a slot at moments that follow each other.
#[derive(Clone, Copy, Debug)]
struct Told {
    slot: usize,
    cell: Packed,
    first: u64,
    count: u64,
}

impl Told {
    fn words(self) -> [u32; FULL] {
        let [cell, first, count] =
            [self.cell.0, self.first, self.count].map(|n| [n as u32, (n >> 32) as u32]);
        let word = (self.slot as u32) << REASON_BITS | IN_FULL;
        [word, cell[0], cell[1], first[0], first[1], count[0], count[1]]
    }

    fn read(words: &[u32; FULL]) -> Told {
        let long = |n: usize| u64::from(words[n]) | u64::from(words[n + 1]) << 32;
        Told { slot: slot_of(words[0]), cell: Packed(long(1)), first: long(3), count: long(5) }
    }
}

/// Puts states of a moment each that a list begins with into their rows, up to one that is in none of these moments: how many.
#[inline(never)]
fn put_short(words: &[u32], read: &mut [(u64, u64); SLOTS], rows: &mut Rows, moments: Range<u64>) -> usize {
    let (first, many) = (moments.start, moments.end - moments.start);
    for (n, &word) in words.iter().enumerate() {
        let slot = slot_of(word);
        let (next, place) = &mut read[slot];
        let row = next.wrapping_sub(first);
        if word & IN_FULL >= FOR_LONG || row >= many {
            return n;
        }
        rows.put_one(row, slot, Packed::short(word >> PC, word & IN_FULL, *place));
        *next += 1;
    }
    words.len()
}

/// What the first words of a list tell, and how many they are, of a slot that was read up to a moment, and its place there.
#[inline(always)]
fn told(words: &[u32], next: u64, place: u64) -> Option<(Told, usize)> {
    let &word = words.first()?;
    let short = |reason: u32, count: u32| {
        let cell = Packed::short(word >> PC, reason, place);
        (reason < STALLS as u32).then_some(Told {
            slot: slot_of(word),
            cell,
            first: next,
            count: count.into(),
        })
    };
    Some(match word & IN_FULL {
        IN_FULL => (Told::read(words.first_chunk()?), FULL),
        FOR_LONG => {
            let &long = words.get(1)?;
            (short(long & IN_FULL, long >> REASON_BITS)?, 2)
        }
        reason => (short(reason, 1)?, 1),
    })
}

#[inline(always)]
fn slot_of(word: u32) -> usize {
    (word >> REASON_BITS) as usize % SLOTS
}

/// Moments and the slots that have a warp then.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct States {
    words: Vec<u32>,
    /// Moments before which all is told by a word, and the one behind that.
    marks: Vec<(u64, usize)>,
    /// The moment before which nothing comes any more.
    first: u64,
    /// Of each slot the moment behind the last one that was told: the next state of the same warp can be told in a word there.
    #[serde(with = "simt::arrays")]
    next: [u64; SLOTS],
    /// The same of those that became rows, and the place there where a packed cell has it.
    #[serde(with = "simt::arrays")]
    read: [(u64, u64); SLOTS],
}

impl Default for States {
    fn default() -> States {
        States { words: Vec::new(), marks: Vec::new(), first: 0, next: [NEVER; SLOTS], read: [(0, 0); SLOTS] }
    }
}

/// States by the row that they begin in, and what slots are in while rows are gone through. Often many moments lie in one
/// state: only the slots whose state changes are looked at from one row to the next. Made once a host thread, since the SMs
/// that it runs need them in turn.
struct Rows {
    /// The states that begin in a row, each in the place of its slot.
    begin: Vec<[PlainRecord; SLOTS]>,
    /// Slots that have one there, a bit each: for that row alone, and for more.
    short: [u64; ROWS],
    long: [u64; ROWS],
    /// Slots whose state ended with the row before, a bit each.
    ended: [u64; ROWS],
    cells: [PlainRecord; SLOTS],
    /// Slots that are in a state of several rows.
    present: u64,
}

thread_local! {
    /// With the words that are left when rows are made.
    static SCRATCH: RefCell<(Rows, Vec<u32>)> = const { RefCell::new((Rows::EMPTY, Vec::new())) };
}

impl Rows {
    const EMPTY: Rows = Rows {
        begin: Vec::new(),
        short: [0; ROWS],
        long: [0; ROWS],
        ended: [0; ROWS],
        cells: [[0; 8]; SLOTS],
        present: 0,
    };

    fn clear(&mut self) {
        self.begin.resize(ROWS, [[0; 8]; SLOTS]);
        self.short.fill(0);
        self.long.fill(0);
        self.ended.fill(0);
        self.present = 0;
    }

    /// A slot is in a state in one of the rows.
    #[inline(always)]
    fn put_one(&mut self, row: u64, slot: usize, cell: Packed) {
        let row = row as usize % ROWS;
        if let Some(begin) = self.begin.first_chunk_mut::<ROWS>() {
            begin[row][slot % SLOTS] = cell.record();
            self.short[row] |= 1 << (slot % SLOTS);
        }
    }

    /// A slot is in a state in these rows; what lies behind the last one is left out.
    #[inline(always)]
    fn put(&mut self, rows: Range<u64>, slot: usize, cell: Packed) {
        if rows.is_empty() {
            return;
        }
        if let (Some(begin), Some(long)) =
            (self.begin.get_mut(rows.start as usize), self.long.get_mut(rows.start as usize))
        {
            begin[slot % SLOTS] = cell.record();
            *long |= 1 << (slot % SLOTS);
        }
        if let Some(ended) = self.ended.get_mut(rows.end as usize) {
            *ended |= 1 << (slot % SLOTS);
        }
    }

    /// Goes on to the next row, and tells which slots have a warp there.
    #[inline(always)]
    fn go_to(&mut self, row: usize) -> Row<'_> {
        let (short, long) = (self.short[row % ROWS], self.long[row % ROWS]);
        let before = self.present & !self.ended[row % ROWS];
        self.present = before | long;
        let present = self.present | short;
        match self.begin.get(row) {
            // None but those that begin here.
            Some(begin) if before | long == 0 => Row { present, cells: begin },
            Some(begin) => {
                let mut rest = short | long;
                while rest != 0 {
                    let slot = rest.trailing_zeros() as usize % SLOTS;
                    self.cells[slot] = begin[slot];
                    rest &= rest - 1;
                }
                Row { present, cells: &self.cells }
            }
            None => Row { present, cells: &self.cells },
        }
    }
}

impl States {
    /// Where in the host's memory that lies which is looked at most.
    pub fn extent(&self) -> (usize, usize) {
        extent(&self.next)
    }

    /// A warp takes a slot.
    pub fn start(&mut self, slot: u16) {
        self.next[usize::from(slot) % SLOTS] = NEVER;
    }

    /// A slot is in a state for one reason at a moment. Moments of a slot are told of in their order.
    #[inline(always)]
    pub fn put_one(&mut self, slot: u16, number: u64, pc: u32, reason: u32, place: u16) {
        let s = usize::from(slot) % SLOTS;
        let has_room = self.words.len() < self.words.capacity();
        if self.next[s] == number && pc >> (32 - PC) == 0 && has_room {
            self.words.push(pc << PC | (s as u32) << REASON_BITS | reason);
            self.next[s] = number + 1;
            return;
        }
        self.put_first(slot, number, pc, reason, place);
    }

    /// The same where it cannot be told in a word, or there has to be room for it first.
    #[cold]
    #[inline(never)]
    fn put_first(&mut self, slot: u16, number: u64, pc: u32, reason: u32, place: u16) {
        self.words.reserve(FULL);
        let s = usize::from(slot) % SLOTS;
        if self.next[s] == number && pc >> (32 - PC) == 0 {
            return self.put_one(slot, number, pc, reason, place);
        }
        let cell = Packed::new(Cell { pc, stalls: 1 << reason, place });
        self.put_in_full(Told { slot: s, cell, first: number, count: 1 });
    }

    /// A slot is in a state at so many moments from number `first` on.
    pub fn put(&mut self, slot: u16, first: u64, count: u64, cell: Cell) {
        let (s, reason) = (usize::from(slot) % SLOTS, cell.stalls.trailing_zeros());
        let has_one = cell.stalls.is_power_of_two();
        if has_one && count == 1 {
            return self.put_one(slot, first, cell.pc, reason, cell.place);
        }
        let is_short = cell.pc >> (32 - PC) == 0 && count >> (32 - REASON_BITS) == 0;
        if has_one && is_short && self.next[s] == first {
            let word = cell.pc << PC | (s as u32) << REASON_BITS | FOR_LONG;
            self.words.extend([word, (count as u32) << REASON_BITS | reason]);
            self.next[s] = first + count;
            return;
        }
        self.put_in_full(Told { slot: s, cell: Packed::new(cell), first, count });
    }

    #[inline(never)]
    fn put_in_full(&mut self, told: Told) {
        self.next[told.slot] = told.first.saturating_add(told.count);
        self.words.extend(told.words());
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
    #[inline(always)]
    fn make_rows(&mut self, rows: &mut Rows, behind: u64, left: &mut Vec<u32>) {
        let (first, words) = (self.first, self.words.as_slice());
        // Slots of which something was put aside: what comes behind it is, too.
        let mut aside = 0u64;
        let mut n = 0;
        while let Some(&word) = words.get(n) {
            if word & IN_FULL < FOR_LONG && aside == 0 {
                let put = put_short(&words[n..], &mut self.read, rows, first..behind);
                n += put;
                if put > 0 {
                    continue;
                }
            }
            let slot = slot_of(word);
            let (next, place) = &mut self.read[slot];
            if word & IN_FULL < FOR_LONG {
                n += 1;
                if aside >> slot & 1 != 0 || *next >= behind {
                    aside |= 1 << slot;
                    left.push(word);
                    continue;
                }
                // One before the first is none of these.
                if *next >= first {
                    rows.put_one(*next - first, slot, Packed::short(word >> PC, word & IN_FULL, *place));
                }
                *next += 1;
                continue;
            }
            if word & IN_FULL == FOR_LONG
                && let Some(&long) = words.get(n + 1)
                && aside >> slot & 1 == 0
                && let end = *next + u64::from(long >> REASON_BITS)
                && *next >= first
                && end <= behind
            {
                // As most are.
                let cell = Packed::short(word >> PC, long & IN_FULL, *place);
                rows.put(*next - first..end - first, slot, cell);
                (*next, n) = (end, n + 2);
                continue;
            }
            let Some((told, used)) = told(&words[n..], *next, *place) else { return };
            let all = &words[n..n + used];
            n += used;
            if aside >> slot & 1 != 0 || told.first >= behind {
                aside |= 1 << slot;
                left.extend_from_slice(all);
                continue;
            }
            let end_of_all = told.first.saturating_add(told.count);
            let (from, end) = (told.first.max(first), end_of_all.min(behind));
            rows.put(from - first..end.saturating_sub(first), slot, told.cell);
            (*next, *place) = (end, told.cell.place());
            if end < end_of_all {
                aside |= 1 << slot;
                left.extend(Told { first: end, count: end_of_all - end, ..told }.words());
            }
        }
    }

    /// The first moment of all that there is.
    #[cold]
    fn next_number(&self) -> u64 {
        let (mut n, mut first, mut seen) = (0, u64::MAX, 0u64);
        while let Some((told, used)) = self.told_at(n, &self.read) {
            if seen >> told.slot & 1 == 0 {
                first = first.min(told.first);
            }
            seen |= 1 << told.slot;
            n += used;
        }
        first
    }

    /// What a place in the list tells, and its words, where slots were read up to here.
    fn told_at(&self, n: usize, read: &[(u64, u64); SLOTS]) -> Option<(Told, usize)> {
        let (next, place) = read[slot_of(*self.words.get(n)?)];
        told(&self.words[n..], next, place)
    }

    /// Whether states that were read from a file are of so many slots.
    pub fn is_sound(&self, slots: usize) -> bool {
        let (mut n, mut read) = (0, self.read);
        while n < self.words.len() {
            let Some((told, used)) = self.told_at(n, &read) else { return false };
            let Some(end) = told.first.checked_add(told.count) else { return false };
            let before = read[told.slot].0.max(self.first);
            if told.slot >= slots || told.count == 0 || told.first < before {
                return false;
            }
            (read[told.slot].0, n) = (end, n + used);
        }
        let marks = self.marks.iter().copied().chain([(u64::MAX, self.words.len())]);
        if !marks.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) {
            return false;
        }
        let has_place = |&(_, place): &(u64, u64)| Packed(place).place() == place;
        self.read.iter().all(has_place)
    }
}

/// A row with warps.
pub struct Row<'t> {
    present: u64,
    cells: &'t [PlainRecord; SLOTS],
}

impl Row<'_> {
    /// The slots that have a warp, ascending.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (u16, Cell)> {
        let mut rest = self.present;
        std::iter::from_fn(move || {
            let slot = rest.trailing_zeros() as usize;
            let cell = Packed::of(*self.cells.get(slot)?).cell();
            rest &= rest - 1;
            Some((slot as u16, cell))
        })
    }

    /// The warps' records, where those are plain; `room` is for those of which some slots between have none.
    #[inline(always)]
    pub fn records<'r>(&'r self, room: &'r mut [PlainRecord; SLOTS]) -> &'r [PlainRecord] {
        let mut n = self.present.trailing_ones() as usize;
        let mut rest = self.present & u64::MAX.checked_shl(n as u32).unwrap_or(0);
        // Mostly the first slots have warps, up to some number.
        if rest == 0 {
            return &self.cells[..n];
        }
        room[..n].copy_from_slice(&self.cells[..n]);
        while rest != 0 {
            room[n % SLOTS] = self.cells[rest.trailing_zeros() as usize % SLOTS];
            (n, rest) = (n + 1, rest & (rest - 1));
        }
        &room[..n.min(SLOTS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(pc: u32) -> Cell {
        Cell { pc, stalls: 1, place: 0 }
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
        states.put(0, 0, 1, cell(1));
        let rows = ROWS as u64;
        states.put(0, 1, 3 * rows, cell(2));
        states.put(0, 3 * rows + 1, 1, cell(3));
        states.put(1, 2, 1, cell(4));
        assert_eq!(take(&mut states, 3), [(0, vec![(0, 1)]), (1, vec![(0, 2)]), (2, vec![(0, 2), (1, 4)])]);
        states.put(1, rows + 1, 1, cell(5));
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
        states.put(0, 1 << 50, 2, cell(1));
        assert_eq!(take(&mut states, 1 << 40), []);
        states.put(1, 1 << 40, 1, cell(2));
        assert_eq!(take(&mut states, 1 << 41), [(1 << 40, vec![(1, 2)])]);
        assert_eq!(take(&mut states, u64::MAX), [(1 << 50, vec![(0, 1)]), ((1 << 50) + 1, vec![(0, 1)])]);
    }

    #[test]
    fn long_waits_are_kept_once_and_lose_nothing() {
        let mut states = States::default();
        states.put(0, 7, 200_000, cell(1));
        states.put(1, 150_000, 1, cell(2));
        assert_eq!(states.words.len(), 2 * FULL);
        let mut rows = take(&mut states, 100_000);
        rows.extend(take(&mut states, u64::MAX));
        assert!(rows.iter().map(|(number, _)| *number).eq(7..200_007));
        assert!(rows.iter().all(|(_, warps)| warps[0] == (0, 1)));
        assert_eq!(rows[150_000 - 7].1, [(0, 1), (1, 2)]);
    }

    #[test]
    fn states_survive_saving() {
        let mut states = States::default();
        states.put(2, 5, 1, cell(7));
        states.put(2, 6, 2, cell(8));
        states.put(2, 9, 100, cell(9));
        let bytes = postcard::to_allocvec(&states).expect("is written");
        let mut back: States = postcard::from_bytes(&bytes).expect("is read");
        let expected = [(5, vec![(2, 7)]), (6, vec![(2, 8)]), (7, vec![(2, 8)]), (9, vec![(2, 9)])];
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
                let first = next[usize::from(slot)] + gap.saturating_sub(2);
                states.put(slot, first, count, cell(n as u32));
                for number in first..first + count {
                    all.entry(number).or_insert_with(Vec::new).push((slot, n as u32));
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
