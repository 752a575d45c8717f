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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Slot {
    /// The number of its next moment.
    pub number: u64,
    /// In the order of time; those in front of `done` have gone on.
    runs: Vec<Run>,
    done: usize,
    pub cta: u16,
    pub is_wanted: bool,
}

impl Slot {
    /// So many moments from the next one on are in a state.
    #[inline(always)]
    pub fn put(&mut self, cell: Cell, count: u32) {
        self.runs.push(Run { first: self.number, count, cell });
    }
}

/// A table of moments, and of the slots that have any.
#[derive(Default)]
pub struct Rows {
    rows: usize,
    /// The slots, ascending, and for each one its moments.
    slots: Vec<u16>,
    cells: Vec<[Cell; ROWS as usize]>,
}

impl Rows {
    /// Takes the next moments before number `end` out of the slots: the first number, and how many runs are used up. Without
    /// any the table is empty.
    pub fn fill(&mut self, slots: &mut [Slot], end: u64) -> (u64, usize) {
        self.slots.clear();
        self.cells.clear();
        let first = slots.iter().filter_map(|s| Some(s.runs.get(s.done)?.first)).min().unwrap_or(end);
        let end = end.min(first.saturating_add(ROWS));
        self.rows = end.saturating_sub(first) as usize;
        let mut used = 0;
        for (n, slot) in slots.iter_mut().enumerate() {
            if slot.runs.get(slot.done).is_none_or(|r| r.first >= end) {
                continue;
            }
            let mut cells = [Cell::default(); ROWS as usize];
            while let Some(run) = slot.runs.get_mut(slot.done).filter(|r| r.first < end) {
                let count = (end - run.first).min(run.count.into());
                let at = (run.first - first) as usize;
                cells[at..at + count as usize].fill(run.cell);
                run.first += count;
                run.count -= count as u32;
                if run.count > 0 {
                    break;
                }
                slot.done += 1;
                used += 1;
            }
            if slot.done == slot.runs.len() {
                slot.runs.clear();
                slot.done = 0;
            }
            self.slots.push(n as u16);
            self.cells.push(cells);
        }
        (first, used)
    }

    /// Moments in the table.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// The slots that have a warp at a moment, ascending.
    #[inline(always)]
    pub fn row(&self, n: usize) -> impl Iterator<Item = (u16, Cell)> {
        let all = self.slots.iter().zip(&self.cells);
        all.map(move |(&slot, cells)| (slot, cells[n % ROWS as usize])).filter(|(_, cell)| cell.stalls != 0)
    }
}

/// Forgets runs that have gone on.
pub fn tidy(slots: &mut [Slot]) {
    for slot in slots {
        slot.runs.drain(..slot.done);
        slot.done = 0;
    }
}
