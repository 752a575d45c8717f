//! Tags of a slice: which lines it holds, which of their sectors, and since when.

use super::search;
use super::words::{HOST_WORDS, Words};
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use simt::prefetch::prefetch_at;

/// Sectors whose every byte is known.
pub const VALID: u32 = 0;
/// Sectors with bytes that DRAM has not seen, as a shift in a line's state.
pub const DIRTY: u32 = 4;
/// Sectors with some bytes written and the others unknown, as a shift.
pub const PARTIAL: u32 = 8;
/// A copy of a line whose home is the other half.
pub const REPLICA: u16 = 1 << 12;
/// The other half has, or had, a copy.
pub const COPIED: u16 = 1 << 13;
/// Brought by a copy from the host and not touched since.
pub const HOST: u16 = 1 << 14;

/// What a slice knows of a line besides its tag: when the last of its sectors that were asked for is there and, in the lowest bits,
/// its state. Small: there are half a million, and each is far away in the host's memory.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Way(u64);

/// Bits of the state. No cycle has as many as are left.
const STATE: u32 = u16::BITS;

const _: () = assert!(crate::sm::LAST_CYCLE < 1 << (u64::BITS - STATE - 1));

impl Way {
    #[inline(always)]
    fn new(flags: u16) -> Way {
        Way(flags.into())
    }

    /// When the last of its sectors that were asked for is there.
    #[inline(always)]
    pub fn ready(&self) -> Cycle {
        Cycle(self.0 >> STATE)
    }

    /// It is not there before this cycle.
    #[inline(always)]
    pub fn wait_for(&mut self, at: Cycle) {
        let state = self.0 & u64::from(u16::MAX);
        self.0 = self.0.max(at.0 << STATE | state);
    }

    #[inline(always)]
    pub fn has(&self, flag: u16) -> bool {
        self.0 & u64::from(flag) != 0
    }

    #[inline(always)]
    pub fn put(&mut self, flags: u16) {
        self.0 |= u64::from(flags);
    }

    #[inline(always)]
    pub fn take(&mut self, flags: u16) {
        self.0 &= !u64::from(flags);
    }

    #[inline(always)]
    pub fn valid(&self) -> u8 {
        (self.0 >> VALID) as u8 & 15
    }

    #[inline(always)]
    pub fn dirty(&self) -> u8 {
        (self.0 >> DIRTY) as u8 & 15
    }

    #[inline(always)]
    pub fn partial(&self) -> u8 {
        (self.0 >> PARTIAL) as u8 & 15
    }

    #[inline(always)]
    pub fn set(&mut self, what: u32, sectors: u8) {
        self.put(u16::from(sectors & 15) << what);
    }

    #[inline(always)]
    pub fn clear(&mut self, what: u32, sectors: u8) {
        self.take(u16::from(sectors & 15) << what);
    }
}

/// A line that gave way.
#[derive(Clone, Copy, Debug)]
pub struct Evicted {
    /// Its number, of which 32 bits are kept.
    pub line: u32,
    pub way: Way,
}

/// Lines of a slice. A tag is the line's number and one, in 32 bits: enough for 512 GB of addresses, and 0 for none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tags {
    ways: usize,
    copy_ways: usize,
    /// Set by set: the tags of its ways, two a word; their places in the order of giving way, four a word; how often lines of the
    /// set were used; what is known of each way. All of a set lies together, so that the host's caches can be asked for it
    /// before anybody looks.
    sets: Words,
    /// Words of a set, which begins with a line of the host's caches.
    stride: usize,
    used: bool,
}

/// Set in the order of lines that are at home: they give way after copies. The rest is when a line was last used, a
/// count and not a time; 0 is for ways that hold nothing.
const AT_HOME: u16 = 1 << 15;

#[inline(always)]
fn tag(line: u32) -> u32 {
    line.wrapping_add(1)
}

/// A way of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    set: u32,
    way: u32,
}

/// One set.
struct Set<'t> {
    tags: &'t mut [u64],
    orders: &'t mut [u64],
    uses: &'t mut u64,
    ways: &'t mut [u64],
}

/// One of the numbers that lie in words, so many bits each.
#[inline(always)]
fn part(words: &[u64], bits: usize, n: usize) -> u64 {
    let each = 64 / bits;
    words[n / each] >> (bits * (n % each)) & ((1 << bits) - 1)
}

#[inline(always)]
fn put_part(words: &mut [u64], bits: usize, n: usize, value: u64) {
    let each = 64 / bits;
    let (word, shift) = (&mut words[n / each], bits * (n % each));
    *word = *word & !(((1 << bits) - 1) << shift) | value << shift;
}

impl Set<'_> {
    #[inline(always)]
    fn order(&self, way: usize) -> u16 {
        part(self.orders, 16, way) as u16
    }

    #[inline(always)]
    fn put_order(&mut self, way: usize, order: u16) {
        put_part(self.orders, 16, way, order.into());
    }

    /// A line is used now.
    #[inline(always)]
    fn tick(&mut self) -> u16 {
        if *self.uses + 1 == u64::from(AT_HOME) {
            self.count_anew();
        }
        *self.uses += 1;
        *self.uses as u16
    }

    /// The order of use, in the least numbers.
    #[cold]
    fn count_anew(&mut self) {
        let mut ways: Vec<usize> = (0..self.ways.len()).filter(|&way| self.order(way) != 0).collect();
        ways.sort_unstable_by_key(|&way| self.order(way) & !AT_HOME);
        for (n, &way) in (1..).zip(&ways) {
            self.put_order(way, self.order(way) & AT_HOME | n);
        }
        *self.uses = ways.len() as u64;
    }
}

impl Tags {
    pub fn new(sets: u32, ways: u32, copy_ways: u32) -> Tags {
        let (number, ways) = (sets.max(1) as usize, ways.max(1) as usize);
        let stride = (ways.div_ceil(2) + ways.div_ceil(4) + 1 + ways).next_multiple_of(HOST_WORDS);
        let sets = Words::zeros(number * stride);
        let mut tags = Tags { ways, copy_ways: (copy_ways as usize).min(ways), sets, stride, used: true };
        tags.clear();
        tags
    }

    #[inline(always)]
    fn first(&self, set: u32) -> usize {
        set as usize * self.stride
    }

    #[inline(always)]
    fn set(&mut self, set: u32) -> Set<'_> {
        let (first, ways) = (self.first(set), self.ways);
        let (tags, rest) = self.sets.list_mut()[first..first + self.stride].split_at_mut(ways.div_ceil(2));
        let (orders, rest) = rest.split_at_mut(ways.div_ceil(4));
        let (uses, rest) = rest.split_at_mut(1);
        Set { tags, orders, uses: &mut uses[0], ways: &mut rest[..ways] }
    }

    /// A line of this set will be looked up soon.
    #[inline(always)]
    pub fn expect(&self, set: u32) {
        let start = self.sets.list().as_ptr().wrapping_add(self.first(set));
        let each = |lines: usize| (0..lines).for_each(|n| prefetch_at(start.wrapping_add(n * HOST_WORDS)));
        // That of 20 ways without a loop.
        match self.stride / HOST_WORDS {
            5 => each(5),
            lines => each(lines),
        }
    }

    /// The way that gives way first.
    #[inline(always)]
    fn oldest(&self, set: u32) -> usize {
        let first = self.first(set) + self.ways.div_ceil(2);
        search::least(&self.sets.list()[first..first + self.ways.div_ceil(4)])
    }

    /// Where the line is, if it is there.
    #[inline(always)]
    pub fn find(&self, set: u32, line: u32) -> Option<Slot> {
        let first = self.first(set);
        let way = search::position(&self.sets.list()[first..first + self.ways.div_ceil(2)], tag(line));
        // The last word may have a half more.
        way.filter(|&way| way < self.ways).map(|way| Slot { set, way: way as u32 })
    }

    /// As [`find`](Tags::find), and the line counts as used.
    #[inline(always)]
    pub fn touch(&mut self, set: u32, line: u32) -> Option<Slot> {
        let slot = self.find(set, line)?;
        let (mut set, way) = (self.set(set), slot.way as usize);
        let now = set.tick();
        set.put_order(way, set.order(way) & AT_HOME | now);
        Some(slot)
    }

    #[inline(always)]
    fn place(&self, slot: Slot) -> usize {
        self.first(slot.set) + self.ways.div_ceil(2) + self.ways.div_ceil(4) + 1 + slot.way as usize
    }

    #[inline(always)]
    pub fn way(&self, slot: Slot) -> Way {
        Way(self.sets.list()[self.place(slot)])
    }

    /// Changes what is known of a line.
    #[inline(always)]
    pub fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Way)) {
        let place = self.place(slot);
        let word = &mut self.sets.list_mut()[place];
        let mut way = Way(*word);
        change(&mut way);
        *word = way.0;
    }

    /// Makes room for a line that is not there; it has no sectors yet. Copies of far lines give way first, then what
    /// was not used for longest; a copy from the host takes no more than its ways.
    pub fn allocate(&mut self, set: u32, line: u32, flags: u16) -> (Slot, Option<Evicted>) {
        self.used = true;
        let mut way = self.oldest(set);
        if flags & HOST != 0 {
            way = self.oldest_of_host(set).unwrap_or(way);
        }
        let slot = Slot { set, way: way as u32 };
        let home = if flags & REPLICA == 0 { AT_HOME } else { 0 };
        let mut set = self.set(set);
        let old = part(set.tags, 32, way) as u32;
        put_part(set.tags, 32, way, tag(line).into());
        let now = set.tick();
        set.put_order(way, home | now);
        let old_way = Way(std::mem::replace(&mut set.ways[way], Way::new(flags).0));
        let evicted = (old != 0).then(|| Evicted { line: old.wrapping_sub(1), way: old_way });
        (slot, evicted)
    }

    /// Of the ways that copies from the host take, where they have all that they may take, the one that gives way first.
    fn oldest_of_host(&mut self, set: u32) -> Option<usize> {
        let most = self.copy_ways;
        let set = self.set(set);
        let host = |&way: &usize| Way(set.ways[way]).has(HOST);
        let is_full = (0..set.ways.len()).filter(host).count() >= most;
        (0..set.ways.len()).filter(|way| is_full && host(way)).min_by_key(|&way| set.order(way))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.used) {
            let (ways, stride) = (self.ways, self.stride);
            self.sets.list_mut().fill(0);
            // Orders behind the last one never give way.
            for set in self.sets.list_mut().chunks_exact_mut(stride) {
                let orders = &mut set[ways.div_ceil(2)..];
                (ways..ways.next_multiple_of(4)).for_each(|n| put_part(orders, 16, n, u16::MAX.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn copies_of_far_lines_give_way_first() {
        let mut tags = Tags::new(2, 4, 2);
        for line in 0..4 {
            let (_, evicted) = tags.allocate(1, line, if line == 2 { REPLICA } else { 0 });
            assert!(evicted.is_none());
        }
        tags.touch(1, 0);
        let gone = |(_, e): (Slot, Option<Evicted>)| e.map(|e| e.line);
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

    proptest! {
        #[test]
        fn lines_give_way_as_in_a_list(
            ways in 1u32..24,
            uses in prop::collection::vec((0u32..40, prop::bool::ANY), 1..400),
            before in prop::sample::select(vec![0, u64::from(AT_HOME) - 90, u64::from(AT_HOME) - 3]),
        ) {
            let mut tags = Tags::new(3, ways, ways);
            *tags.set(1).uses = before;
            // Lines in the order of giving way: copies, then those at home.
            let mut list: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
            for (line, is_copy) in uses {
                let at = (0..2).find(|&k| list[k].contains(&line));
                prop_assert_eq!(tags.touch(1, line).is_some(), at.is_some());
                if let Some(k) = at {
                    list[k].retain(|&l| l != line);
                    list[k].push(line);
                    continue;
                }
                let is_full = list[0].len() + list[1].len() == ways as usize;
                let gone = is_full.then(|| if list[0].is_empty() { list[1].remove(0) } else { list[0].remove(0) });
                let (slot, evicted) = tags.allocate(1, line, if is_copy { REPLICA } else { 0 });
                prop_assert_eq!(evicted.map(|e| e.line), gone);
                prop_assert_eq!(tags.find(1, line), Some(slot));
                list[usize::from(!is_copy)].push(line);
            }
        }
    }
}
