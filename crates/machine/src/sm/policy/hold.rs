//! Cycles for which something other than a pipe keeps warps from issuing.

use super::bits::{Bits, remap, remap_set};
use serde::{Deserialize, Serialize};

/// Warps that are held, since when, and for how long so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Holds {
    set: u64,
    #[serde(with = "simt::arrays")]
    since: [u64; 64],
    /// Cycles with a reason of their own when it began.
    #[serde(with = "simt::arrays")]
    marks: [(u64, u64); 64],
    #[serde(with = "simt::arrays")]
    cycles: [u64; 64],
}

impl Holds {
    pub fn new() -> Holds {
        Holds { set: 0, since: [0; 64], marks: [(0, 0); 64], cycles: [0; 64] }
    }

    pub fn is_held(&self, bit: u32) -> bool {
        self.set >> bit & 1 != 0
    }

    pub fn is_any(&self) -> bool {
        self.set != 0
    }

    /// From now on these are held, and no others.
    #[inline]
    pub fn set(&mut self, held: u64, now: u64, busy: impl Fn(u32) -> (u64, u64)) {
        if held == self.set {
            return;
        }
        for b in Bits(self.set & !held) {
            let n = b as usize;
            let (then, until) = (self.marks[n], busy(b));
            let other = until.0.saturating_sub(then.0) + until.1.saturating_sub(then.1);
            self.cycles[n] += now.saturating_sub(self.since[n]).saturating_sub(other);
        }
        for b in Bits(held & !self.set) {
            (self.since[b as usize], self.marks[b as usize]) = (now, busy(b));
        }
        self.set = held;
    }

    /// How long the warp was held; it is not any more.
    #[inline]
    pub fn forget(&mut self, bit: u32) -> u64 {
        self.set &= !(1 << bit);
        std::mem::take(&mut self.cycles[bit as usize % 64])
    }

    pub fn remap(&mut self, old: &[u8]) {
        remap_set(&mut self.set, old);
        remap(&mut self.since, old);
        remap(&mut self.marks, old);
        remap(&mut self.cycles, old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_with_another_reason_do_not_count() {
        let mut h = Holds::new();
        h.set(0b11, 10, |_| (5, 0));
        h.set(0b10, 20, |_| (8, 1));
        assert_eq!((h.forget(0), h.is_held(0)), (6, false));
        assert!(h.is_held(1));
        h.set(0, 30, |_| (8, 1));
        assert_eq!(h.forget(1), 16);
        assert_eq!(h.forget(1), 0);
    }
}
