//! Warp-cycles by reason and instruction; the reasons themselves are those of trace records.

pub use trace::stall::{STALLS, Stall, StallCycles};

/// Room of an instruction in a [`StallTable`]: two cache lines, the reasons that are charged most in the first.
const ROOM: usize = 32;

/// Warp-cycles by reason for every instruction of a program. Small, because an SM that takes its turn on the host comes
/// back to a cold cache: counts are 32 bits and overflow into a list that is hardly ever used.
#[derive(Clone, Debug, Default)]
pub struct StallTable {
    counts: Vec<u32>,
    /// Instruction, reason and warp-cycles that did not fit.
    more: Vec<(u32, u8, u64)>,
}

/// `NotSelected` comes first, the others follow in their order.
#[inline(always)]
fn place(instruction: usize, reason: Stall) -> usize {
    let n = if reason == Stall::NotSelected { 0 } else { reason as usize + 1 };
    instruction * ROOM + n
}

impl StallTable {
    /// A table for so many instructions, all counts zero.
    pub fn reset(&mut self, instructions: usize) {
        // A new one: pages that are never touched cost nothing.
        self.counts = vec![0; instructions * ROOM];
        self.more.clear();
    }

    #[inline(always)]
    pub fn charge(&mut self, instruction: usize, reason: Stall, cycles: u64) {
        let count = &mut self.counts[place(instruction, reason)];
        match u32::try_from(u64::from(*count) + cycles) {
            Ok(sum) => *count = sum,
            Err(_) => self.more.push((instruction as u32, reason as u8, cycles)),
        }
    }

    /// Adds everything to a list, a row an instruction; the sum.
    pub fn add_to(&self, rows: &mut [StallCycles]) -> u64 {
        let mut total = 0;
        for (n, row) in rows.iter_mut().enumerate() {
            for reason in Stall::ALL {
                let cycles = u64::from(self.counts.get(place(n, reason)).copied().unwrap_or(0));
                row[reason as usize] += cycles;
                total += cycles;
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
    }
}
