//! Tags of a slice: which lines it holds, which of their sectors, and since when.

use crate::units::Cycle;

/// Sectors whose every byte is known.
pub const VALID: u32 = 0;
/// Sectors with bytes that DRAM has not seen, as a shift in a line's state.
pub const DIRTY: u32 = 4;
/// Sectors with some bytes written and the others unknown, as a shift.
pub const PARTIAL: u32 = 8;
/// A copy of a line whose home is the other half.
pub const REPLICA: u32 = 1 << 12;
/// The other half has, or had, a copy.
pub const COPIED: u32 = 1 << 13;
/// Brought by a copy from the host and not touched since.
pub const HOST: u32 = 1 << 14;

/// What a slice knows of a line besides its tag.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// When the last of its sectors that were asked for is there.
    pub ready: Cycle,
    /// When it was last used: a count, not a time.
    stamp: u32,
    pub state: u32,
}

impl Way {
    #[inline(always)]
    pub fn valid(&self) -> u8 {
        (self.state >> VALID) as u8 & 15
    }

    #[inline(always)]
    pub fn dirty(&self) -> u8 {
        (self.state >> DIRTY) as u8 & 15
    }

    #[inline(always)]
    pub fn partial(&self) -> u8 {
        (self.state >> PARTIAL) as u8 & 15
    }

    #[inline(always)]
    pub fn set(&mut self, what: u32, sectors: u8) {
        self.state |= u32::from(sectors) << what;
    }

    #[inline(always)]
    pub fn clear(&mut self, what: u32, sectors: u8) {
        self.state &= !(u32::from(sectors) << what);
    }
}

/// A line that gave way.
#[derive(Clone, Copy, Debug)]
pub struct Evicted {
    /// Its number, of which 32 bits are kept.
    pub line: u64,
    pub way: Way,
}

/// Lines of a slice. A tag is the line's number and one, in 32 bits: enough for 512 GB of addresses, and 0 for none.
#[derive(Clone, Debug)]
pub struct Tags {
    ways: usize,
    copy_ways: usize,
    tags: Vec<u32>,
    lines: Vec<Way>,
    clock: u32,
    used: bool,
}

#[inline(always)]
fn tag(line: u64) -> u32 {
    (line as u32).wrapping_add(1)
}

impl Tags {
    pub fn new(sets: u32, ways: u32, copy_ways: u32) -> Tags {
        let ways = ways.max(1) as usize;
        let lines = sets.max(1) as usize * ways;
        Tags {
            ways,
            copy_ways: (copy_ways as usize).min(ways),
            tags: vec![0; lines],
            lines: vec![Way::default(); lines],
            clock: 0,
            used: false,
        }
    }

    /// Where the line is, if it is there.
    #[inline(always)]
    pub fn find(&self, set: u32, line: u64) -> Option<usize> {
        let first = set as usize * self.ways;
        let wanted = tag(line);
        self.tags[first..first + self.ways].iter().position(|&t| t == wanted).map(|n| first + n)
    }

    /// As [`find`](Tags::find), and the line counts as used.
    #[inline(always)]
    pub fn touch(&mut self, set: u32, line: u64) -> Option<usize> {
        let at = self.find(set, line)?;
        self.lines[at].stamp = self.tick();
        Some(at)
    }

    #[inline(always)]
    pub fn way(&mut self, at: usize) -> &mut Way {
        &mut self.lines[at]
    }

    fn tick(&mut self) -> u32 {
        self.clock = self.clock.wrapping_add(1);
        if self.clock == 0 {
            // Once in four billion uses: who was used when is forgotten.
            self.lines.iter_mut().for_each(|l| l.stamp = 0);
        }
        self.clock
    }

    /// Makes room for a line that is not there; it has no sectors yet. Copies of far lines give way first, then what
    /// was not used for longest; a copy from the host takes no more than its ways.
    pub fn allocate(&mut self, set: u32, line: u64, flags: u32) -> (usize, Option<Evicted>) {
        self.used = true;
        let first = set as usize * self.ways;
        let all = first..first + self.ways;
        let host = |w: &Way| w.state & HOST != 0;
        let crowded =
            flags & HOST != 0 && self.lines[all.clone()].iter().filter(|w| host(w)).count() >= self.copy_ways;
        let mut best = (u64::MAX, first);
        for at in all {
            let way = &self.lines[at];
            if crowded {
                if host(way) {
                    best = best.min((u64::from(way.stamp), at));
                }
                continue;
            }
            if self.tags[at] == 0 {
                best = (0, at);
                break;
            }
            let order = u64::from(way.state & REPLICA == 0) << 32 | u64::from(way.stamp);
            best = best.min((order, at));
        }
        let at = best.1;
        let old = self.tags[at];
        let evicted =
            (old != 0).then(|| Evicted { line: u64::from(old.wrapping_sub(1)), way: self.lines[at] });
        self.tags[at] = tag(line);
        let stamp = self.tick();
        self.lines[at] = Way { ready: Cycle(0), stamp, state: flags };
        (at, evicted)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.used) {
            self.tags.fill(0);
            self.lines.fill(Way::default());
            self.clock = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_far_lines_give_way_first() {
        let mut tags = Tags::new(2, 4, 2);
        for line in 0..4 {
            let (_, evicted) = tags.allocate(1, line, if line == 2 { REPLICA } else { 0 });
            assert!(evicted.is_none());
        }
        tags.touch(1, 0);
        let gone = |(_, e): (usize, Option<Evicted>)| e.map(|e| e.line);
        assert_eq!(gone(tags.allocate(1, 10, 0)), Some(2));
        assert_eq!(gone(tags.allocate(1, 11, 0)), Some(1));
        assert!(tags.find(1, 0).is_some() && tags.find(1, 1).is_none() && tags.find(0, 0).is_none());
    }

    #[test]
    fn copies_from_the_host_keep_to_their_ways() {
        let mut tags = Tags::new(1, 4, 2);
        for line in 0..10 {
            tags.allocate(0, line, HOST);
        }
        assert_eq!((0..10).filter(|&l| tags.find(0, l).is_some()).collect::<Vec<_>>(), [8, 9]);
        tags.clear();
        assert!(tags.find(0, 9).is_none());
    }
}
