//! Samples before they are records: runs of moments at which a warp slot is in one state, which become rows, one a moment with
//! a column a slot, when all that could come before them is known.

use crate::stall::STALLS;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use trace::record::INSTRUCTION_BYTES;

/// Rows that are made at once.
const ROWS: usize = 64;
/// Columns: most warp slots of an SM.
pub const SLOTS: usize = 64;

/// A warp in a state: its instruction, a bit for every reason, the CTA slot. No reason: no warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    pub pc: u32,
    pub stalls: u32,
    pub cta: u16,
}

/// Bits of the reasons in a packed cell, and of the CTA slot: an SM has fewer of those than bits of warp slots.
const STALL_BITS: u32 = 22;
const CTA_BITS: u32 = 10;

const _: () = assert!(STALLS as u32 <= STALL_BITS);

/// A cell in one word: the eight bytes of a plain record with the CTA slot where that has the SM's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Packed(u64);

impl Packed {
    /// Where the CTA slot is.
    const CTA: u32 = 32 + STALL_BITS;

    #[inline(always)]
    fn new(cell: Cell) -> Packed {
        let pc = u64::from(cell.pc.wrapping_mul(INSTRUCTION_BYTES));
        let cta = u64::from(cell.cta) & ((1 << CTA_BITS) - 1);
        Packed(cta << Packed::CTA | u64::from(cell.stalls) << 32 | pc)
    }

    #[inline(always)]
    fn cell(self) -> Cell {
        Cell {
            pc: self.0 as u32 / INSTRUCTION_BYTES,
            stalls: (self.0 >> 32) as u32 & ((1 << STALL_BITS) - 1),
            cta: (self.0 >> Packed::CTA) as u16,
        }
    }

    /// The plain record of an SM.
    #[inline(always)]
    fn record(self, sm: u16) -> [u8; 8] {
        (self.0 & ((1 << Packed::CTA) - 1) | u64::from(sm) << Packed::CTA).to_le_bytes()
    }
}

/// A warp of a slot in one state at moments that follow each other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run {
    cell: Packed,
    /// The number of the first moment, from that of the first row.
    first: u32,
    count: u16,
    slot: u16,
}

const _: () = assert!(size_of::<Run>() == 16);

/// Rows from the first one that a run can begin in: its last one has a number of 32 bits, too.
const NEAR: u64 = 1 << 31;

/// Moments and the slots that have a warp then, as runs in the order in which they are told, for each slot that of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Runs {
    /// The number of the first row, before which nothing comes any more.
    first: u64,
    runs: Vec<Run>,
    /// Those that are too far from the first row: number, count. What came later of their slots is too.
    far: Vec<(u64, u64, Run)>,
}

impl Runs {
    /// A slot is in a state at so many moments from number `first` on. No moment of a slot is told of twice.
    #[inline(always)]
    pub fn put(&mut self, slot: u16, first: u64, count: u64, cell: Cell) {
        let cell = Packed::new(cell);
        match (first.wrapping_sub(self.first), u16::try_from(count)) {
            (first @ ..NEAR, Ok(count)) => self.runs.push(Run { cell, first: first as u32, count, slot }),
            _ => self.put_long(first, count, Run { cell, first: 0, count: 0, slot }),
        }
    }

    /// The same of one that begins too far from the first row, or is too long.
    #[cold]
    fn put_long(&mut self, first: u64, count: u64, run: Run) {
        let from = first.max(self.first);
        self.far.push((from, (first + count).saturating_sub(from), run));
        self.come_near();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Takes out all rows before number `end`, which are over, and hands on those with warps.
    pub fn take(&mut self, end: u64, mut hand: impl FnMut(u64, Row<'_>)) {
        loop {
            self.come_near();
            let first = self.far.iter().map(|(first, ..)| *first).min().unwrap_or(u64::MAX);
            let last = end.min(first);
            // What is too far begins behind all that is near.
            let rows = u32::try_from(last.saturating_sub(self.first)).unwrap_or(u32::MAX);
            if !self.runs.is_empty() {
                self.take_near(rows, &mut hand);
            }
            self.first = match self.runs.is_empty() {
                true => last.max(self.first),
                false => self.first + u64::from(rows),
            };
            if self.first >= end || (self.far.is_empty() && self.runs.is_empty()) {
                // Before others of their slots come.
                return self.come_near();
            }
        }
    }

    /// The same of the next so many rows, which are not numbered anew.
    fn take_near(&mut self, rows: u32, hand: &mut impl FnMut(u64, Row<'_>)) {
        let mut columns = Columns::new(&self.runs, rows);
        let mut cells = vec![[Packed::default(); SLOTS]; ROWS];
        while let Some(first) = columns.next() {
            let block = first..first.saturating_add(ROWS as u32).min(rows);
            let mut present = [0; ROWS];
            columns.fill(&block, &mut cells, &mut present);
            for (row, &present) in present.iter().enumerate().filter(|(_, present)| **present != 0) {
                let number = self.first + u64::from(block.start) + row as u64;
                hand(number, Row { present, cells: &cells[row] });
            }
        }
        // What is left is counted from the row behind these.
        self.runs.retain_mut(|run| {
            let last = u64::from(run.first) + u64::from(run.count);
            let from = run.first.max(rows);
            run.count = last.saturating_sub(from.into()) as u16;
            run.first = from - rows;
            run.count > 0
        });
    }

    /// Runs that were too far take their places, in parts that are not too long.
    fn come_near(&mut self) {
        let (base, runs) = (self.first, &mut self.runs);
        self.far.retain_mut(|(first, count, run)| {
            while *count > 0
                && let from @ ..NEAR = first.wrapping_sub(base)
            {
                let part = (*count).min(u16::MAX.into());
                runs.push(Run { first: from as u32, count: part as u16, ..*run });
                (*first, *count) = (*first + part, *count - part);
            }
            *count > 0
        });
    }

    /// Whether runs that were read from a file are of so many slots.
    pub fn is_sound(&self, slots: usize) -> bool {
        let is_near = |run: &Run| u64::from(run.first) < NEAR && run.count > 0;
        let runs = self.runs.iter().chain(self.far.iter().map(|(.., run)| run));
        runs.clone().all(|run| usize::from(run.slot) < slots)
            && self.runs.iter().all(is_near)
            && self
                .far
                .iter()
                .all(|(first, count, _)| *first >= self.first && first.checked_add(*count).is_some())
            && self
                .runs
                .iter()
                .all(|run| self.first.checked_add(u64::from(run.first) + u64::from(run.count)).is_some())
    }
}

/// Runs by slot, in the order of time, of which those of a block of rows come next.
struct Columns {
    runs: Vec<Run>,
    /// Of each slot the next run, and the end of its runs.
    next: [usize; SLOTS],
    ends: [usize; SLOTS],
    /// The row behind the last one that is wanted.
    rows: u32,
}

impl Columns {
    /// Those before a row.
    fn new(runs: &[Run], rows: u32) -> Columns {
        let column = |run: &Run| usize::from(run.slot) % SLOTS;
        let wanted = || runs.iter().filter(|run| run.first < rows);
        let mut ends = [0; SLOTS];
        wanted().for_each(|run| ends[column(run)] += 1);
        let mut count = 0;
        for end in &mut ends {
            count += *end;
            *end = count - *end;
        }
        // Where each slot's runs begin; behind the last one when all have their places.
        let next = ends;
        let mut sorted = vec![Run { cell: Packed::default(), first: 0, count: 0, slot: 0 }; count];
        for run in wanted() {
            sorted[ends[column(run)]] = *run;
            ends[column(run)] += 1;
        }
        Columns { runs: sorted, next, ends, rows }
    }

    /// The first row that has not been filled.
    fn next(&self) -> Option<u32> {
        let left = self.next.iter().zip(&self.ends).filter(|(next, end)| next < end);
        left.map(|(&next, _)| self.runs[next].first).min().filter(|&first| first < self.rows)
    }

    /// Fills a block of rows that is the next, and takes out what lies in it.
    fn fill(&mut self, block: &Range<u32>, cells: &mut [[Packed; SLOTS]], present: &mut [u64; ROWS]) {
        for slot in 0..SLOTS {
            while let Some(run) = self.runs[..self.ends[slot]].get_mut(self.next[slot])
                && run.first < block.end
            {
                let last = run.first + u32::from(run.count);
                for row in run.first.max(block.start)..last.min(block.end) {
                    let row = (row - block.start) as usize % ROWS;
                    cells[row][slot] = run.cell;
                    present[row] |= 1 << slot;
                }
                if last > block.end {
                    (run.first, run.count) = (block.end, (last - block.end) as u16);
                    break;
                }
                self.next[slot] += 1;
            }
        }
    }
}

/// A row with warps.
pub struct Row<'t> {
    present: u64,
    cells: &'t [Packed; SLOTS],
}

impl Row<'_> {
    /// The slots that have a warp, ascending.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (u16, Cell)> {
        let mut rest = self.present;
        std::iter::from_fn(move || {
            let slot = rest.trailing_zeros() as usize;
            let cell = self.cells.get(slot)?.cell();
            rest &= rest - 1;
            Some((slot as u16, cell))
        })
    }

    /// The plain records of an SM's warps.
    #[inline(always)]
    pub fn records<'r>(&self, sm: u16, room: &'r mut [[u8; 8]; SLOTS]) -> &'r [[u8; 8]] {
        // Mostly the first slots have warps, up to some number.
        let first = self.present.trailing_ones() as usize;
        room.iter_mut().zip(self.cells).take(first).for_each(|(r, cell)| *r = cell.record(sm));
        let (mut n, mut rest) = (first, self.present);
        rest &= u64::MAX.checked_shl(first as u32).unwrap_or(0);
        while rest != 0 {
            room[n % SLOTS] = self.cells[rest.trailing_zeros() as usize % SLOTS].record(sm);
            (n, rest) = (n + 1, rest & (rest - 1));
        }
        &room[..n.min(SLOTS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(pc: u32) -> Cell {
        Cell { pc, stalls: 1, cta: 0 }
    }

    /// All rows before number `end`.
    fn take(runs: &mut Runs, end: u64) -> Vec<(u64, Vec<(u16, u32)>)> {
        let mut found = Vec::new();
        runs.take(end, |number, row| {
            found.push((number, row.iter().map(|(slot, cell)| (slot, cell.pc)).collect()));
        });
        found
    }

    #[test]
    fn what_is_too_far_ahead_comes_in_its_turn() {
        let mut runs = Runs::default();
        runs.put(0, 0, 1, cell(1));
        let rows = ROWS as u64;
        runs.put(0, 1, 3 * rows, cell(2));
        runs.put(0, 3 * rows + 1, 1, cell(3));
        runs.put(1, 2, 1, cell(4));
        assert_eq!(take(&mut runs, 3), [(0, vec![(0, 1)]), (1, vec![(0, 2)]), (2, vec![(0, 2), (1, 4)])]);
        // A moment that there is a row for now, behind one that there was none for.
        runs.put(1, rows + 1, 1, cell(5));
        let rest = take(&mut runs, u64::MAX);
        assert_eq!(rest.len() as u64, 3 * rows - 1);
        assert!(rest.iter().map(|(number, _)| *number).eq(3..3 * rows + 2));
        assert_eq!(rest[ROWS - 2], (rows + 1, vec![(0, 2), (1, 5)]));
        assert_eq!(rest.last(), Some(&(3 * rows + 1, vec![(0, 3)])));
        assert!(runs.runs.is_empty() && runs.far.is_empty());
    }

    #[test]
    fn moments_without_warps_cost_nothing() {
        let mut runs = Runs::default();
        runs.put(0, 1 << 50, 2, cell(1));
        assert_eq!(take(&mut runs, 1 << 40), []);
        runs.put(1, 1 << 40, 1, cell(2));
        assert_eq!(take(&mut runs, 1 << 41), [(1 << 40, vec![(1, 2)])]);
        assert_eq!(take(&mut runs, u64::MAX), [(1 << 50, vec![(0, 1)]), ((1 << 50) + 1, vec![(0, 1)])]);
    }

    #[test]
    fn long_runs_lose_nothing() {
        let mut runs = Runs::default();
        runs.put(0, 7, 200_000, cell(1));
        runs.put(1, 150_000, 1, cell(2));
        let mut rows = take(&mut runs, 100_000);
        rows.extend(take(&mut runs, u64::MAX));
        assert!(rows.iter().map(|(number, _)| *number).eq(7..200_007));
        assert!(rows.iter().all(|(_, warps)| warps[0] == (0, 1)));
        assert_eq!(rows[150_000 - 7].1, [(0, 1), (1, 2)]);
    }

    #[test]
    fn runs_survive_saving() {
        let mut runs = Runs::default();
        runs.put(2, 5, 1, cell(7));
        let bytes = postcard::to_allocvec(&runs).expect("is written");
        let mut back: Runs = postcard::from_bytes(&bytes).expect("is read");
        assert_eq!(take(&mut back, 9), [(5, vec![(2, 7)])]);
    }
}
