//! Who else uses the data banks: passes of accesses find out whether they lost their cycle.
//!
//! The banks have a port to read and one to write. On an H200 special registers take cycles of the first and constant
//! loads of the second, before every access; so do, before accesses to global memory only, store data that leaves for
//! memory (read) and data that comes from there (written). A pass that meets one of them comes a cycle later, which
//! counts as a conflict. Accesses do not lose to each other: they come one after the other anyway.

use super::Path;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// Words of 64 cycles that are looked ahead by.
const WORDS: usize = 64;

/// One port of the banks.
#[derive(Serialize, Deserialize)]
pub struct Port {
    /// Cycles that accesses to shared memory lose.
    shared: Arbiter,
    /// Cycles that accesses to global and local memory lose.
    global: Arbiter,
}

impl Port {
    pub fn new() -> Port {
        Port { shared: Arbiter::new(), global: Arbiter::new() }
    }

    /// Forgets cycles before `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        // Both always come to the same word.
        if now.0 / 64 > self.shared.first {
            self.shared.advance(now);
            self.global.advance(now);
        }
    }

    /// Something that goes before every access.
    #[inline]
    pub fn take_from_all(&mut self, at: Cycle, cycles: u32) {
        self.shared.mark(at, cycles);
        self.global.mark(at, cycles);
    }

    /// Something that goes before accesses to global and local memory.
    #[inline]
    pub fn take_from_global(&mut self, at: Cycle, cycles: u32) {
        self.global.mark(at, cycles);
    }

    /// How many of `passes` passes of an access from `at` on lose their cycle.
    #[inline(always)]
    pub fn lost(&self, path: Path, at: Cycle, passes: u32) -> u32 {
        match path {
            Path::Shared => self.shared.lost(at, passes),
            Path::Global => self.global.lost(at, passes),
        }
    }
}

/// A bit a cycle from now on.
#[derive(Serialize, Deserialize)]
struct Arbiter {
    #[serde(with = "simt::arrays")]
    bits: [u64; WORDS],
    /// Number of the first word of cycles that is kept.
    first: u64,
    /// No cycle from here on is taken.
    end: u64,
}

impl Arbiter {
    fn new() -> Arbiter {
        Arbiter { bits: [0; WORDS], first: 0, end: 0 }
    }

    fn advance(&mut self, now: Cycle) {
        let first = now.0 / 64;
        if first > self.first {
            for word in self.first..first.min(self.first + WORDS as u64) {
                self.bits[word as usize % WORDS] = 0;
            }
            self.first = first;
        }
    }

    /// The port is taken for `cycles` cycles. What lies too far ahead is not kept.
    #[inline]
    fn mark(&mut self, at: Cycle, cycles: u32) {
        self.end = self.end.max(at.0 + u64::from(cycles));
        if let Some((word, bits)) = only_word(at, cycles) {
            if self.keeps(word) {
                self.bits[word as usize % WORDS] |= bits;
            }
            return;
        }
        for (word, bits) in words(at, cycles) {
            if self.keeps(word) {
                self.bits[word as usize % WORDS] |= bits;
            }
        }
    }

    #[inline(always)]
    fn keeps(&self, word: u64) -> bool {
        word.wrapping_sub(self.first) < WORDS as u64
    }

    /// How many of `cycles` cycles are taken.
    #[inline(always)]
    fn lost(&self, at: Cycle, cycles: u32) -> u32 {
        if at.0 >= self.end { 0 } else { self.count(at, cycles) }
    }

    fn count(&self, at: Cycle, cycles: u32) -> u32 {
        if let Some((word, bits)) = only_word(at, cycles) {
            let taken = self.bits[word as usize % WORDS] & bits;
            return if self.keeps(word) { taken.count_ones() } else { 0 };
        }
        let kept = words(at, cycles).filter(|&(word, _)| self.keeps(word));
        kept.map(|(word, bits)| (self.bits[word as usize % WORDS] & bits).count_ones()).sum()
    }
}

/// The word that all of so many cycles from `at` on are in, and their bits there: mostly there are few.
#[inline(always)]
fn only_word(at: Cycle, cycles: u32) -> Option<(u64, u64)> {
    let (first, cycles) = (at.0 % 64, u64::from(cycles));
    let is_one = cycles != 0 && first + cycles <= 64;
    is_one.then(|| (at.0 / 64, (u64::MAX >> (64 - cycles)) << first))
}

/// The words that so many cycles from `at` on are in, and their bits there.
#[inline(always)]
fn words(at: Cycle, cycles: u32) -> impl Iterator<Item = (u64, u64)> {
    let (mut from, to) = (at.0, at.0 + u64::from(cycles));
    std::iter::from_fn(move || {
        let (word, first) = (from / 64, from % 64);
        let cycles = to.saturating_sub(from).min(64 - first);
        from += cycles;
        // Between one and 64 bits: no shift is by 64.
        (cycles != 0).then(|| (word, (u64::MAX >> (64 - cycles)) << first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_goes_before_what_comes_and_leaves() {
        let mut p = Port::new();
        p.take_from_global(Cycle(10), 2);
        p.take_from_all(Cycle(20), 1);
        assert_eq!([p.lost(Path::Shared, Cycle(8), 8), p.lost(Path::Global, Cycle(8), 8)], [0, 2]);
        assert_eq!([p.lost(Path::Shared, Cycle(18), 8), p.lost(Path::Global, Cycle(18), 8)], [1, 1]);
    }

    #[test]
    fn cycles_are_lost_and_forgotten() {
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
