//! Warp-cycles by reason and instruction; the reasons themselves are those of trace records.

use serde::{Deserialize, Serialize};
pub use trace::stall::{STALLS, Stall, StallCycles};

/// Room of an instruction in a [`StallTable`]: two cache lines, the reasons that are charged most in the first.
const ROOM: usize = 32;

/// Warp-cycles by reason for every instruction of a program. Small, because every issue adds to one or two of its rows: counts
/// are 32 bits and overflow into a list that is hardly ever used.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StallTable {
    /// Instructions that there is room for, as soon as one has a count: most SMs have no use for their own table.
    instructions: usize,
    #[serde(with = "sparse")]
    counts: Vec<[u32; ROOM]>,
    /// Instruction, reason and warp-cycles that did not fit.
    more: Vec<(u32, u8, u64)>,
}

/// How counts are saved: their number, and the rows that are not all zeros.
mod sparse {
    use super::ROOM;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// No program of any size has more.
    const MOST: usize = 1 << 28;

    pub fn serialize<S: Serializer>(all: &[[u32; ROOM]], to: S) -> Result<S::Ok, S::Error> {
        let rows = all.iter().enumerate().filter(|(_, row)| row.iter().any(|&n| n != 0));
        let rows: Vec<(usize, &[u32; ROOM])> = rows.collect();
        (all.len(), rows).serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<[u32; ROOM]>, D::Error> {
        let (len, rows): (usize, Vec<(usize, [u32; ROOM])>) = Deserialize::deserialize(from)?;
        if len > MOST {
            return Err(D::Error::custom("more instructions than there are"));
        }
        let mut all = vec![[0; ROOM]; len];
        for (n, row) in rows {
            *all.get_mut(n).ok_or_else(|| D::Error::custom("a row behind the last"))? = row;
        }
        Ok(all)
    }
}

/// The counts of one instruction.
pub struct Row<'a> {
    instruction: usize,
    counts: &'a mut [u32; ROOM],
    more: &'a mut Vec<(u32, u8, u64)>,
}

impl Row<'_> {
    /// The place of a reason: `NotSelected` comes first, the others follow in their order.
    #[inline(always)]
    fn place(reason: Stall) -> usize {
        if reason == Stall::NotSelected { 0 } else { reason as usize + 1 }
    }

    #[inline(always)]
    pub fn charge(&mut self, reason: Stall, cycles: u64) {
        self.add(Row::place(reason), cycles);
    }

    /// Charges one cycle.
    #[inline(always)]
    pub fn count(&mut self, reason: Stall) {
        let n = Row::place(reason);
        let (sum, is_over) = self.counts[n % ROOM].overflowing_add(1);
        self.counts[n % ROOM] = sum;
        if is_over {
            carry(self.more, self.instruction, n, 1 << u32::BITS);
        }
    }

    /// Adds to the count of the reason in place `n`.
    #[inline(always)]
    fn add(&mut self, n: usize, cycles: u64) {
        let sum = u64::from(self.counts[n % ROOM]) + cycles;
        self.counts[n % ROOM] = sum as u32;
        if sum > u64::from(u32::MAX) {
            carry(self.more, self.instruction, n, sum);
        }
    }

    /// Charges cycles for want of a pipe, those in which the dispatcher was held, those in which others were chosen.
    #[inline(always)]
    pub fn charge_waiting(&mut self, [throttle, held, others]: [u64; 3], reason: Stall) {
        if throttle > 0 {
            self.charge(reason, throttle);
        }
        if held > 0 {
            self.charge(Stall::DispatchStall, held);
        }
        self.charge(Stall::NotSelected, others);
    }
}

/// Keeps what does not fit of a count. Not part of [`Row`], which is only in registers of the host.
#[cold]
#[inline(never)]
fn carry(more: &mut Vec<(u32, u8, u64)>, instruction: usize, n: usize, sum: u64) {
    let reason = if n == 0 { Stall::NotSelected as u8 } else { n as u8 - 1 };
    more.push((instruction as u32, reason, sum & !u64::from(u32::MAX)));
}

impl StallTable {
    /// A table for so many instructions, all counts zero.
    pub fn reset(&mut self, instructions: usize) {
        *self = StallTable { instructions, ..StallTable::default() };
    }

    /// Where there is no such row yet, there are none at all.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.counts.is_empty() {
            self.counts = vec![[0; ROOM]; self.instructions];
        }
    }

    /// Instructions that there is room for.
    pub fn len(&self) -> usize {
        self.instructions
    }

    pub fn is_empty(&self) -> bool {
        self.instructions == 0
    }

    #[inline(always)]
    pub fn row(&mut self, instruction: usize) -> Row<'_> {
        if instruction >= self.counts.len() {
            self.make_room();
        }
        Row { instruction, counts: &mut self.counts[instruction], more: &mut self.more }
    }

    #[inline(always)]
    pub fn charge(&mut self, instruction: usize, reason: Stall, cycles: u64) {
        self.row(instruction).charge(reason, cycles);
    }

    /// Takes in another of as many instructions, which is empty then.
    pub fn take_in(&mut self, other: &mut StallTable) {
        for (n, counts) in other.counts.iter_mut().enumerate() {
            for (k, count) in std::mem::take(counts).into_iter().enumerate().filter(|(_, n)| *n > 0) {
                self.row(n).add(k, count.into());
            }
        }
        self.more.append(&mut other.more);
    }

    /// Adds everything to a list, a row an instruction; the sum.
    pub fn add_to(&self, rows: &mut [StallCycles]) -> u64 {
        let mut total = 0;
        for (row, counts) in rows.iter_mut().zip(&self.counts) {
            for (reason, sum) in row.iter_mut().enumerate() {
                let n = if reason == Stall::NotSelected as usize { 0 } else { reason + 1 };
                *sum += u64::from(counts[n]);
                total += u64::from(counts[n]);
            }
        }
        for &(n, reason, cycles) in &self.more {
            if let Some(row) = rows.get_mut(n as usize) {
                row[reason as usize] += cycles;
                total += cycles;
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_where_counts_overflow() {
        let mut table = StallTable::default();
        table.reset(2);
        for _ in 0..3 {
            table.charge(1, Stall::NotSelected, 3 << 30);
            table.charge(1, Stall::Wait, 1);
        }
        let mut rows = vec![[0; STALLS]; 2];
        assert_eq!(table.add_to(&mut rows), 3 * (3 << 30) + 3);
        assert_eq!(rows[1][Stall::NotSelected as usize], 3 * (3 << 30));
        assert_eq!(rows[1][Stall::Wait as usize], 3);
        assert_eq!(rows[0], [0; STALLS]);
        // One by one, too.
        let mut counted = StallTable::default();
        counted.reset(1);
        counted.charge(0, Stall::Selected, u32::MAX.into());
        (0..2).for_each(|_| counted.row(0).count(Stall::Selected));
        assert_eq!(counted.add_to(&mut [[0; STALLS]]), (1 << 32) + 1);
        // Nor where tables are put together.
        let mut other = table.clone();
        table.take_in(&mut other);
        rows.iter_mut().for_each(|row| *row = [0; STALLS]);
        assert_eq!(table.add_to(&mut rows), 6 * (3 << 30) + 6);
        assert_eq!(rows[1][Stall::NotSelected as usize], 6 * (3 << 30));
        assert_eq!(other.add_to(&mut rows), 0);
    }
}
