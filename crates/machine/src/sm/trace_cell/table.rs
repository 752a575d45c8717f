//! Samples before they are records: a table with a row a moment and a column a warp slot, and runs of moments that are too
//! far ahead for it.

use crate::stall::STALLS;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use trace::record::INSTRUCTION_BYTES;

/// Rows of the table: a power of two. Few, so that it stays in the host's caches from one exchange point to the next.
pub const ROWS: u64 = 64;
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

/// A warp in one state at moments of its slot that follow each other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run {
    first: u64,
    count: u64,
    cell: Cell,
}

/// Moments and the slots that have a warp then.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// Columns that are used.
    slots: usize,
    /// The number of the first row, before which nothing comes any more; row `n` is at `n % ROWS`.
    first: u64,
    #[serde(with = "rows")]
    cells: Vec<[Packed; SLOTS]>,
    /// For each row the slots that have a warp, and how many these are in all rows.
    #[serde(with = "simt::arrays")]
    present: [u64; ROWS as usize],
    filled: u64,
    /// For each slot what lies behind the last row, in the order of time, and how many runs these are.
    later: Vec<VecDeque<Run>>,
    later_runs: usize,
}

/// A table without slots.
impl Default for Table {
    fn default() -> Table {
        let (cells, present, later) = (Vec::new(), [0; ROWS as usize], Vec::new());
        Table { slots: 0, first: 0, cells, present, filled: 0, later, later_runs: 0 }
    }
}

impl Table {
    pub fn new(slots: usize) -> Table {
        let cells = vec![[Packed::default(); SLOTS]; ROWS as usize];
        Table { slots, cells, later: vec![VecDeque::new(); slots], ..Table::default() }
    }

    /// A slot is in a state at so many moments from number `first` on. Moments of a slot come in their order.
    #[inline(always)]
    pub fn put(&mut self, slot: u16, first: u64, count: u64, cell: Cell) {
        if count != 1 || !self.put_near(slot, first, cell) {
            self.put_run(slot.into(), Run { first, count, cell });
        }
    }

    /// The same at one moment, if there is a row for it.
    #[inline(always)]
    pub fn put_near(&mut self, slot: u16, number: u64, cell: Cell) -> bool {
        let is_near = number.wrapping_sub(self.first) < ROWS;
        if is_near {
            self.put_one(slot.into(), number, Packed::new(cell));
            self.filled += 1;
        }
        is_near
    }

    /// A slot is in a state at a moment that there is a row for.
    #[inline(always)]
    fn put_one(&mut self, slot: usize, number: u64, cell: Packed) {
        let row = (number % ROWS) as usize;
        self.cells[row][slot % SLOTS] = cell;
        self.present[row] |= 1 << (slot % SLOTS);
    }

    #[inline(never)]
    fn put_run(&mut self, slot: usize, run: Run) {
        if let Some(rest) = self.put_run_near(slot, run) {
            self.later[slot].push_back(rest);
            self.later_runs += 1;
        }
    }

    /// Takes the moments of a run that there are rows for; the rest.
    fn put_run_near(&mut self, slot: usize, run: Run) -> Option<Run> {
        let (from, end) = (run.first.max(self.first), run.first + run.count);
        let near = end.min(self.first.saturating_add(ROWS));
        let cell = Packed::new(run.cell);
        for number in from..near {
            self.put_one(slot, number, cell);
        }
        self.filled += near.saturating_sub(from);
        let rest = from.max(near);
        (rest < end).then(|| Run { first: rest, count: end - rest, cell: run.cell })
    }

    /// Takes out all rows before number `end`, which are over, and hands on those with warps.
    pub fn take(&mut self, end: u64, mut hand: impl FnMut(u64, Row<'_>)) {
        loop {
            if self.filled == 0 {
                // On to what lies behind the rows.
                let firsts = self.later.iter().filter_map(|runs| Some(runs.front()?.first));
                let first = firsts.min().unwrap_or(end).min(end);
                self.first = self.first.max(first);
            }
            self.come_near();
            if self.first >= end || self.filled == 0 {
                return;
            }
            let rows = end.min(self.first.saturating_add(ROWS));
            while self.first < rows && self.filled > 0 {
                let row = (self.first % ROWS) as usize;
                let present = std::mem::take(&mut self.present[row]);
                if present != 0 {
                    self.filled -= u64::from(present.count_ones());
                    hand(self.first, Row { present, cells: &self.cells[row] });
                }
                self.first += 1;
            }
        }
    }

    /// Runs that there are rows for by now take their places.
    fn come_near(&mut self) {
        if self.later_runs == 0 {
            return;
        }
        for slot in 0..self.slots {
            let end = self.first.saturating_add(ROWS);
            while let Some(run) = self.later[slot].front().copied().filter(|r| r.first < end) {
                match self.put_run_near(slot, run) {
                    Some(rest) => self.later[slot][0] = rest,
                    None => {
                        self.later[slot].pop_front();
                        self.later_runs -= 1;
                    }
                }
            }
        }
    }

    /// Whether a table that was read from a file is one of so many slots.
    pub fn is_sound(&self, slots: usize) -> bool {
        let filled: u64 = self.present.iter().map(|set| u64::from(set.count_ones())).sum();
        let is_used = |set: &u64| slots >= SLOTS || set >> slots == 0;
        let later = self.later.iter().flatten();
        (self.slots, self.later.len(), self.cells.len()) == (slots, slots, ROWS as usize)
            && self.present.iter().all(is_used)
            && self.filled == filled
            && self.later_runs == later.clone().count()
            && later.map(|r| r.first.checked_add(r.count)).all(|end| end.is_some())
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

/// How cells are saved: the number of rows, and the cells that are not empty.
mod rows {
    use super::{Packed, SLOTS};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// No table has more.
    const MOST: usize = 1 << 10;

    pub fn serialize<S: Serializer>(all: &[[Packed; SLOTS]], to: S) -> Result<S::Ok, S::Error> {
        let cells = all.as_flattened().iter().enumerate();
        let used: Vec<(usize, &Packed)> = cells.filter(|(_, c)| c.0 != 0).collect();
        (all.len(), used).serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<[Packed; SLOTS]>, D::Error> {
        let (len, used): (usize, Vec<(usize, Packed)>) = Deserialize::deserialize(from)?;
        if len > MOST {
            return Err(D::Error::custom("more rows than there are"));
        }
        let mut all = vec![[Packed::default(); SLOTS]; len];
        for (n, cell) in used {
            let place = all.as_flattened_mut().get_mut(n);
            *place.ok_or_else(|| D::Error::custom("a cell behind the last"))? = cell;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(pc: u32) -> Cell {
        Cell { pc, stalls: 1, cta: 0 }
    }

    /// All rows before number `end`.
    fn take(table: &mut Table, end: u64) -> Vec<(u64, Vec<(u16, u32)>)> {
        let mut found = Vec::new();
        table.take(end, |number, row| {
            found.push((number, row.iter().map(|(slot, cell)| (slot, cell.pc)).collect()));
        });
        found
    }

    #[test]
    fn what_is_too_far_ahead_comes_in_its_turn() {
        let mut table = Table::new(2);
        table.put(0, 0, 1, cell(1));
        table.put(0, 1, 3 * ROWS, cell(2));
        table.put(0, 3 * ROWS + 1, 1, cell(3));
        table.put(1, 2, 1, cell(4));
        assert_eq!(take(&mut table, 3), [(0, vec![(0, 1)]), (1, vec![(0, 2)]), (2, vec![(0, 2), (1, 4)])]);
        // A moment that there is a row for now, behind one that there was none for.
        table.put(1, ROWS + 1, 1, cell(5));
        let rest = take(&mut table, u64::MAX);
        assert_eq!(rest.len() as u64, 3 * ROWS - 1);
        assert!(rest.iter().map(|(number, _)| *number).eq(3..3 * ROWS + 2));
        assert_eq!(rest[ROWS as usize - 2], (ROWS + 1, vec![(0, 2), (1, 5)]));
        assert_eq!(rest.last(), Some(&(3 * ROWS + 1, vec![(0, 3)])));
        assert_eq!((table.filled, table.later_runs), (0, 0));
    }

    #[test]
    fn moments_without_warps_cost_nothing() {
        let mut table = Table::new(1);
        table.put(0, 1 << 50, 2, cell(1));
        assert_eq!(take(&mut table, 1 << 40), []);
        assert_eq!(take(&mut table, u64::MAX), [(1 << 50, vec![(0, 1)]), ((1 << 50) + 1, vec![(0, 1)])]);
    }

    #[test]
    fn tables_survive_saving() {
        let mut table = Table::new(3);
        table.put(2, 5, 1, cell(7));
        let bytes = postcard::to_allocvec(&table).expect("is written");
        let mut back: Table = postcard::from_bytes(&bytes).expect("is read");
        assert_eq!(take(&mut back, 9), [(5, vec![(2, 7)])]);
    }
}
