//! Where a line lives: pair of slices, home half, set, DRAM channel.

use crate::units::LINE;

/// Where a line lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Which pair of slices, one in each half.
    pub pair: u32,
    /// The half whose slice owns the line.
    pub home: u32,
    pub set: u32,
    /// Which of the pair's DRAM channels, and the line's byte there.
    pub channel: u32,
    pub position: u64,
}

/// How addresses are spread. Neighbouring lines go to different pairs, each pair once in a group of lines; groups are
/// turned against each other by a hash, so that strides do not meet one pair again and again.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pairs: u64,
    halves: u32,
    /// Lines with one home half, as a shift.
    home_shift: u32,
    set_shift: u32,
    /// DRAM channels of a pair that serve one half.
    channels_per_half: u32,
}

/// Spreads a number's bits over all of the result (the finishing step of splitmix64).
#[inline(always)]
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n ^ (n >> 27)
}

impl Map {
    pub fn new(l2: &super::Spec, dram: &crate::dram::Spec) -> Map {
        let halves = l2.halves.clamp(1, 2);
        let pairs = (l2.slices / halves).max(1);
        Map {
            pairs: u64::from(pairs),
            halves,
            home_shift: (u64::from(l2.home_bytes) / LINE).max(1).ilog2(),
            set_shift: l2.sets.max(1).ilog2(),
            channels_per_half: (dram.channels / (pairs * halves)).max(1),
        }
    }

    pub fn pairs(&self) -> u32 {
        self.pairs as u32
    }

    pub fn halves(&self) -> u32 {
        self.halves
    }

    /// DRAM channels of a pair.
    pub fn channels(&self) -> u32 {
        self.channels_per_half * self.halves
    }

    /// Quotient and remainder by the number of pairs; in 32 bits where that is enough, which is faster.
    #[inline(always)]
    fn split(&self, line: u64) -> (u64, u64) {
        match u32::try_from(line) {
            Ok(line) => {
                let pairs = self.pairs as u32;
                (u64::from(line / pairs), u64::from(line % pairs))
            }
            Err(_) => (line / self.pairs, line % self.pairs),
        }
    }

    /// The pair of line number `line`.
    #[inline(always)]
    pub fn pair(&self, line: u64) -> u32 {
        let (group, place) = self.split(line);
        let turn = ((mix(group) >> 32) * self.pairs) >> 32;
        let pair = place + turn;
        (if pair >= self.pairs { pair - self.pairs } else { pair }) as u32
    }

    /// Where line number `line` lives.
    #[inline]
    pub fn place(&self, line: u64) -> Place {
        let (group, _) = self.split(line);
        let home = if self.halves == 1 {
            0
        } else {
            // Of two neighbouring blocks one has its home here and one there.
            let block = line >> self.home_shift;
            (block ^ (mix(block >> 1) >> 40)) as u32 & 1
        };
        let sets = (1u64 << self.set_shift) - 1;
        let set = group.wrapping_add(mix(group >> self.set_shift) >> 33) & sets;
        let channels = u64::from(self.channels_per_half);
        // A channel serves one half, so about one in `halves` of a pair's lines.
        let share = group / u64::from(self.halves);
        Place {
            pair: self.pair(line),
            home,
            set: set as u32,
            channel: home * self.channels_per_half + (share % channels) as u32,
            position: share / channels * LINE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::testing;

    fn map() -> Map {
        let config = testing::h200();
        Map::new(&config.l2, &config.dram)
    }

    /// Lines from a pattern fill slices about evenly: the fullest has at most `most` times its share.
    fn evenly(lines: impl Iterator<Item = u64>, most: f64) {
        let map = map();
        let mut slices = vec![0u32; (map.pairs() * map.halves()) as usize];
        let mut n = 0u32;
        for line in lines {
            let place = map.place(line);
            assert_eq!(place.pair, map.pair(line));
            slices[(place.pair * map.halves() + place.home) as usize] += 1;
            n += 1;
        }
        let share = f64::from(n) / slices.len() as f64;
        let fullest = slices.iter().max().map_or(0.0, |&n| f64::from(n));
        assert!(fullest <= share * most, "{fullest} where {share} is fair");
    }

    #[test]
    fn streams_and_strides_are_spread() {
        evenly(0..96_000, 1.1);
        for stride in [2, 16, 48, 64, 96, 256, 1024, 3072, 65536] {
            evenly((0..96_000).map(|n| n * stride), 1.25);
        }
    }

    #[test]
    fn sets_are_used_evenly() {
        let map = map();
        let mut sets = std::collections::BTreeMap::new();
        // What the whole cache holds, from one array.
        for line in 0..491_520u64 {
            let place = map.place(line);
            *sets.entry((place.pair, place.home, place.set)).or_insert(0u32) += 1;
        }
        assert_eq!(sets.len(), 96 * 256);
        assert!(sets.values().all(|&n| (5..=35).contains(&n)));
    }
}
