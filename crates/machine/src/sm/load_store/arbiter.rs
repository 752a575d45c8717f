//! Which cycles the data banks give to answers from memory: accesses of warps find out whether they lost theirs.

use crate::units::Cycle;

/// Words of 64 cycles that are looked ahead by.
const WORDS: usize = 64;

/// A bit a cycle from now on.
pub struct Arbiter {
    bits: [u64; WORDS],
    /// Number of the first word of cycles that is kept.
    first: u64,
}

impl Arbiter {
    pub fn new() -> Arbiter {
        Arbiter { bits: [0; WORDS], first: 0 }
    }

    /// Forgets cycles before `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        let first = now.0 / 64;
        if first > self.first {
            for word in self.first..first.min(self.first + WORDS as u64) {
                self.bits[word as usize % WORDS] = 0;
            }
            self.first = first;
        }
    }

    /// The banks are an answer's for `cycles` cycles. What lies too far ahead is not kept.
    #[inline]
    pub fn mark(&mut self, at: Cycle, cycles: u32) {
        for cycle in at.0..at.0 + u64::from(cycles) {
            let word = cycle / 64;
            if (self.first..self.first + WORDS as u64).contains(&word) {
                self.bits[word as usize % WORDS] |= 1 << (cycle % 64);
            }
        }
    }

    /// How many of `cycles` cycles are an answer's.
    #[inline(always)]
    pub fn lost(&self, at: Cycle, cycles: u32) -> u32 {
        let mut lost = 0;
        for cycle in at.0..at.0 + u64::from(cycles) {
            let word = cycle / 64;
            let kept = (self.first..self.first + WORDS as u64).contains(&word);
            lost += u32::from(kept && self.bits[word as usize % WORDS] >> (cycle % 64) & 1 != 0);
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_lost_to_answers_and_forgotten() {
        let mut a = Arbiter::new();
        a.mark(Cycle(63), 2);
        assert_eq!(a.lost(Cycle(60), 3), 0);
        assert_eq!(a.lost(Cycle(60), 8), 2);
        a.advance(Cycle(70));
        assert_eq!(a.lost(Cycle(60), 8), 1);
        a.advance(Cycle(4096 + 70));
        assert_eq!(a.lost(Cycle(4096 + 60), 8), 0);
        // Too far ahead.
        a.mark(Cycle(100_000), 1);
        assert_eq!(a.lost(Cycle(100_000), 1), 0);
    }
}
