//! Samples before they are records: runs of moments at which a warp was in one state, and tables made of them, a row a
//! moment.

use serde::{Deserialize, Serialize};

/// Rows of a table: few enough that it stays in the host's nearest cache.
const ROWS: u64 = 32;

/// A warp in a state: its instruction, a bit for every reason, the CTA slot. No reason: no warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    pub pc: u32,
    pub stalls: u32,
    pub cta: u16,
}

/// A warp in one state at moments of its slot that follow each other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run {
    first: u64,
    count: u32,
    cell: Cell,
}

/// A warp slot as the cell sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub struct Slot {
    /// The next moment, and its number; never where the warp is not wanted.
    pub next: u64,
    pub number: u64,
    /// In the order of time; those in front of `done` have gone on.
    runs: Vec<Run>,
    done: usize,
    pub cta: u16,
    pub is_wanted: bool,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot { next: u64::MAX, number: 0, runs: Vec::new(), done: 0, cta: 0, is_wanted: false }
    }
}

impl Slot {
    /// So many moments from the next one on are in a state.
    #[inline(always)]
    pub fn put(&mut self, cell: Cell, count: u32) {
        self.runs.push(Run { first: self.number, count, cell });
    }
}

/// A table of moments and slots.
pub struct Rows {
    slots: usize,
    rows: usize,
    cells: Vec<Cell>,
}

impl Rows {
    pub fn new(slots: usize) -> Rows {
        Rows { slots, rows: 0, cells: vec![Cell::default(); slots * ROWS as usize] }
    }

    /// Takes the next moments before number `end` out of the slots: the first number, and how many runs are used up. Without
    /// any the table is empty.
    pub fn fill(&mut self, slots: &mut [Slot], end: u64) -> (u64, usize) {
        self.cells.fill(Cell::default());
        let first = slots.iter().filter_map(|s| Some(s.runs.get(s.done)?.first)).min().unwrap_or(end);
        let end = end.min(first.saturating_add(ROWS));
        self.rows = end.saturating_sub(first) as usize;
        let mut used = 0;
        for (n, slot) in slots.iter_mut().enumerate() {
            while let Some(run) = slot.runs.get_mut(slot.done).filter(|r| r.first < end) {
                let count = (end - run.first).min(run.count.into());
                let at = (run.first - first) as usize * self.slots + n;
                let cells = self.cells[at..].iter_mut().step_by(self.slots);
                cells.take(count as usize).for_each(|cell| *cell = run.cell);
                run.first += count;
                run.count -= count as u32;
                if run.count > 0 {
                    break;
                }
                slot.done += 1;
                used += 1;
            }
            if slot.done > 0 && slot.done == slot.runs.len() {
                slot.runs.clear();
                slot.done = 0;
            } else if slot.done > slot.runs.len() / 2 {
                slot.runs.drain(..slot.done);
                slot.done = 0;
            }
        }
        (first, used)
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [Cell]> {
        self.cells.chunks_exact_mut(self.slots).take(self.rows)
    }
}
