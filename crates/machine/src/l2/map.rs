//! Where a line lives: pair of slices, home half, set, DRAM channel.

use crate::units::LINE;
use serde::{Deserialize, Serialize};

/// Where a line lives, in its pair of slices. Small: every request carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Place {
    pub set: u32,
    /// Its number among the lines of its DRAM channel.
    own: u32,
    /// Which of the pair's DRAM channels.
    pub channel: u16,
    /// The half whose slice owns the line.
    pub home: u8,
}

impl Place {
    /// Its first byte in its DRAM channel.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        u64::from(self.own) * LINE
    }
}

/// How addresses are spread, as measured on an H200: a page of 4 KB lies in one half, on a few slices of it, two
/// neighbouring lines on each in turn; the pages of a block go to all groups of slices of both halves, each once. A hash
/// turns blocks against each other, so that strides do not meet one slice again and again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Map {
    /// Slices of a page, as a shift, and groups of so many slices in a half.
    spread: u32,
    groups: u64,
    halves: u32,
    /// Lines with one home half, as a shift; those of them on one slice.
    home_shift: u32,
    own_shift: u32,
    set_shift: u32,
    /// The bits of a line's number in its page, of a slice's in its group, of a set's.
    inside: u64,
    slices: u64,
    sets: u64,
    /// DRAM channels of a pair that serve one half.
    channels_per_half: u32,
    /// What divides by pages of a block, and by those channels.
    by_pages: Divider,
    by_channels: Divider,
    /// For each value of the bits up to the last of [`SLICE_BITS`]: the page's slice in the upper half, the other bits, moved
    /// together, in the lower.
    parts: [u8; 1 << LOW_BITS],
}

/// Divides by a number that is known long before: a multiplication, where both are small.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Divider {
    by: u64,
    /// 2^64 over the divisor, rounded up: exact for numbers of 32 bits.
    factor: u64,
}

impl Divider {
    fn new(by: u64) -> Divider {
        let by = by.max(1);
        Divider { by, factor: (u64::MAX / by).wrapping_add(1) }
    }

    /// Quotient and remainder.
    #[inline(always)]
    fn divide(&self, n: u64) -> (u64, u64) {
        let quotient = match u32::try_from(n) {
            // Of 1 the factor does not fit.
            _ if self.by == 1 => n,
            Ok(n) => ((u128::from(n) * u128::from(self.factor)) >> 64) as u64,
            Err(_) => n / self.by,
        };
        (quotient, n - quotient * self.by)
    }
}

/// Bits of a line's number that say which of its page's slices it is on, the first ones first.
const SLICE_BITS: [u32; 3] = [1, 3, 4];
/// Bits of a line's number up to the last of those.
const LOW_BITS: u32 = 5;

/// What [`Map::parts`] holds for so many slices of a page, as a shift.
fn parts(spread: u32) -> [u8; 1 << LOW_BITS] {
    std::array::from_fn(|n| {
        let (mut slice, mut index) = (0, n);
        for (k, &bit) in SLICE_BITS[..spread as usize].iter().enumerate().rev() {
            slice |= (n >> bit & 1) << k;
            // The bit goes out; those above move down.
            index = index & ((1 << bit) - 1) | index >> (bit + 1) << bit;
        }
        (slice << 4 | index & 15) as u8
    })
}

/// Spreads a number's bits over all of the result (the finishing step of splitmix64).
#[inline(always)]
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n ^ (n >> 27)
}

/// A line's place in its page and block.
struct Split {
    /// Number of the block of pages, and of the page in it.
    block: u64,
    page: u64,
    /// Which of the page's slices, and which of the page's lines there.
    slice: u64,
    index: u64,
}

impl Map {
    pub fn new(l2: &super::Spec, dram: &crate::dram::Spec) -> Map {
        let halves = l2.halves.clamp(1, 2);
        let pairs = (l2.slices / halves).max(1);
        let home_shift = (u64::from(l2.home_bytes) / LINE).max(1).ilog2();
        // Pages that are too small have fewer bits to choose by.
        let most = SLICE_BITS.iter().filter(|&&b| b < home_shift).count() as u32;
        let spread = pairs.trailing_zeros().min(most);
        let groups = u64::from(pairs >> spread);
        let channels_per_half = (dram.channels / (pairs * halves)).max(1);
        let set_shift = l2.sets.max(1).ilog2();
        Map {
            spread,
            groups,
            halves,
            home_shift,
            own_shift: home_shift - spread,
            set_shift,
            inside: (1 << home_shift) - 1,
            slices: (1 << spread) - 1,
            sets: (1 << set_shift) - 1,
            channels_per_half,
            by_pages: Divider::new(groups * u64::from(halves)),
            by_channels: Divider::new(channels_per_half.into()),
            parts: parts(spread),
        }
    }

    pub fn pairs(&self) -> u32 {
        (self.groups as u32) << self.spread
    }

    pub fn halves(&self) -> u32 {
        self.halves
    }

    /// DRAM channels of a pair.
    pub fn channels(&self) -> u32 {
        self.channels_per_half * self.halves
    }

    #[inline(always)]
    fn split(&self, line: u64) -> Split {
        let number = line >> self.home_shift;
        let (block, page) = self.by_pages.divide(number);
        let inside = line & self.inside;
        let low = inside & ((1 << LOW_BITS) - 1);
        let (mut slice, mut index) = (0, low);
        if self.spread != 0 {
            // At least one bit goes out of five.
            let part = self.parts[low as usize];
            (slice, index) = (u64::from(part >> 4), u64::from(part & 15));
        }
        index |= inside >> LOW_BITS << (LOW_BITS - self.spread);
        // Pages are turned too: a stride that stays on one slice of a page meets another one of the next.
        slice ^= mix(number) >> 24 & self.slices;
        Split { block, page, slice, index }
    }

    #[inline(always)]
    fn pair_of(&self, s: &Split) -> u32 {
        let turn = ((mix(s.block) >> 32) * self.groups) >> 32;
        // Halves are one or two.
        let group = (s.page >> (self.halves - 1)) + turn;
        let group = if group >= self.groups { group - self.groups } else { group };
        ((group << self.spread) | s.slice) as u32
    }

    /// The pair of line number `line`.
    #[inline(always)]
    pub fn pair(&self, line: u64) -> u32 {
        self.pair_of(&self.split(line))
    }

    /// Where line number `line` lives: its pair, and the place there.
    #[inline(always)]
    pub fn place(&self, line: u64) -> (u32, Place) {
        let s = self.split(line);
        // Of two neighbouring pages one has its home here and one there.
        let home = if self.halves == 1 { 0 } else { (s.page ^ (mix(s.block) >> 20)) as u32 & 1 };
        // The line's number among those of its slice.
        let own = (s.block << self.own_shift) | s.index;
        let set = own.wrapping_add(mix(own >> self.set_shift) >> 33) & self.sets;
        let (own, channel) = self.by_channels.divide(own);
        let channel = (home * self.channels_per_half + channel as u32) as u16;
        (self.pair_of(&s), Place { set: set as u32, own: own as u32, channel, home: home as u8 })
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
            let (pair, place) = map.place(line);
            assert_eq!(pair, map.pair(line));
            slices[(pair * map.halves() + u32::from(place.home)) as usize] += 1;
            n += 1;
        }
        let share = f64::from(n) / slices.len() as f64;
        let fullest = slices.iter().max().map_or(0.0, |&n| f64::from(n));
        assert!(fullest <= share * most, "{fullest} where {share} is fair");
    }

    #[test]
    fn divisions_are_exact() {
        for by in [1, 2, 3, 5, 12, 48, 1000, (1 << 31) + 1] {
            let divider = Divider::new(by);
            for n in [0, 1, by - 1, by, by + 1, 7 * by - 1, 7 * by, u64::from(u32::MAX), 1 << 32, 1 << 45] {
                assert_eq!(divider.divide(n), (n / by, n % by), "{n} / {by}");
            }
        }
    }

    #[test]
    fn bits_of_the_slice_leave_the_others_in_order() {
        for spread in 0..=3 {
            let all = parts(spread);
            for (n, &part) in all.iter().enumerate().filter(|_| spread > 0) {
                let bits = &SLICE_BITS[..spread as usize];
                let slice = bits.iter().enumerate().map(|(k, bit)| (n >> bit & 1) << k).sum::<usize>();
                let others = (0..LOW_BITS).filter(|b| !bits.contains(b));
                let index = others.enumerate().map(|(k, bit)| (n >> bit & 1) << k).sum::<usize>();
                assert_eq!(usize::from(part), slice << 4 | index, "{n} {spread}");
            }
        }
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
            let (pair, place) = map.place(line);
            *sets.entry((pair, place.home, place.set)).or_insert(0u32) += 1;
        }
        assert_eq!(sets.len(), 96 * 256);
        assert!(sets.values().all(|&n| (5..=35).contains(&n)));
    }
}
