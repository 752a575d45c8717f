//! Two levels: a few warps have precedence and take turns; one that waits for long gives its place to another.

use super::bits::{Bits, remap, remap_bit, remap_set};
use super::{gto, lrr};
use serde::{Deserialize, Serialize};

/// Which warps have precedence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TwoLevel {
    places: u32,
    active: u64,
    last: u32,
    /// Number of each warp's last issue.
    #[serde(with = "simt::arrays")]
    issued: [u64; 64],
    issues: u64,
}

impl TwoLevel {
    pub fn new(places: u32) -> TwoLevel {
        TwoLevel { places: places.max(1), active: 0, last: 64, issued: [0; 64], issues: 0 }
    }

    /// The warp waits for long, or has ended.
    pub fn leave(&mut self, bit: u32) {
        self.active &= !(1 << bit);
    }

    /// Active warps take turns, and with them the oldest others for which there are places; where none of these can issue,
    /// the oldest warp that can.
    pub fn choose(&self, set: u64, newest: u32) -> u32 {
        let (mut first, mut others) = (set & self.active, set & !self.active);
        for _ in self.active.count_ones()..self.places {
            if others != 0 {
                let next = 1 << gto::oldest(others, newest);
                first |= next;
                others &= !next;
            }
        }
        if first != 0 { lrr::choose(first, self.last) } else { gto::oldest(set, newest) }
    }

    /// The warp issued: it is active. Where all places are taken, it takes that of the one that issued longest ago.
    pub fn issued(&mut self, bit: u32) {
        if self.active >> bit & 1 == 0 {
            if self.active.count_ones() >= self.places
                && let Some(out) = Bits(self.active).min_by_key(|&b| self.issued[b as usize])
            {
                self.active &= !(1 << out);
            }
            self.active |= 1 << bit;
        }
        self.last = bit;
        self.issues += 1;
        self.issued[bit as usize % 64] = self.issues;
    }

    pub fn remap(&mut self, old: &[u8]) {
        remap_set(&mut self.active, old);
        remap(&mut self.issued, old);
        self.last = remap_bit(self.last, old).unwrap_or(64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_warps_take_turns_until_they_wait() {
        let mut t = TwoLevel::new(2);
        let all = 0b1111;
        let mut order = Vec::new();
        let issue = |t: &mut TwoLevel, order: &mut Vec<u32>, set: u64| {
            let b = t.choose(set, 3);
            t.issued(b);
            order.push(b);
        };
        // 0 and 1 are the oldest: both places are theirs, and they take turns.
        for _ in 0..4 {
            issue(&mut t, &mut order, all);
        }
        // 1 waits: the place is that of the oldest of the others.
        t.leave(1);
        for _ in 0..3 {
            issue(&mut t, &mut order, all & !2);
        }
        // 1 can issue again, but there is no place.
        issue(&mut t, &mut order, all);
        assert_eq!(order, [0, 1, 0, 1, 2, 0, 2, 0]);
        assert_eq!(t.active, 0b101);
        // None of the active can issue: 2 issued longer ago than 0, so its place goes to 3.
        issue(&mut t, &mut order, 0b1000);
        assert_eq!(t.active, 0b1001);
    }
}
