//! Coalescing: from the addresses of lanes to lines, sectors, and passes through the banks.

use super::l1::Tags;
use crate::units::{LINE, SECTOR, count};
use simt::resident::{Access, Where};
use std::ops::Range;

/// Lines that an access can have: four for each lane, in local memory.
const MOST: usize = 128;

/// Lists are gone through in multiples of so many lines: the compiler makes vectors of them.
const CHUNK: usize = 8;

/// One line of a warp's access, as the cache looks it up.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// What the cache knows the line by: its number and, for its table, a mark.
    pub number: u32,
    pub mark: u32,
    /// The slot that it has there at first sight.
    pub slot: u32,
    /// Sectors touched.
    pub sectors: u8,
}

/// The sectors that some of these words are in.
#[inline(always)]
fn sectors_of(words: u32) -> u8 {
    // Each sector's lowest bit, then the four of them gathered.
    (some_of_sectors(words).wrapping_mul(0x0102_0408) >> 24) as u8 & 15
}

/// A byte for each sector: one where some of its words are touched. There are eight of them in a sector.
#[inline(always)]
fn some_of_sectors(words: u32) -> u32 {
    let mut m = words | words >> 4;
    m |= m >> 2;
    m |= m >> 1;
    m & 0x0101_0101
}

/// The lines of a warp's access, in the order of the first lane that touches each.
pub trait Lines {
    fn len(&self) -> usize;

    fn piece(&self, n: usize) -> Piece;

    /// Address of a line's first byte.
    fn line(&self, n: usize) -> u64;

    /// Sectors of a line of which every byte is touched.
    fn whole(&self, n: usize) -> u8;

    /// How many sectors of all lines are touched.
    fn touched(&self) -> u32;

    /// Passes through the data banks.
    ///
    /// When all lines are found they go through the banks at once, else those that are looked up in one cycle. A bank that
    /// several lines of a group need takes as many passes.
    fn passes(&mut self, all_found: bool) -> Passes;
}

/// The only line of an access.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    line: u64,
    words: u32,
    /// Words of which every byte is touched.
    full: u32,
    mark: u32,
}

impl Single {
    #[inline(always)]
    fn new(line: u64, words: u32, full: u32) -> Single {
        Single { line, words, full, mark: Tags::mark(number(line)) }
    }
}

impl Lines for Single {
    #[inline(always)]
    fn len(&self) -> usize {
        1
    }

    #[inline(always)]
    fn piece(&self, _: usize) -> Piece {
        Piece { number: number(self.line), mark: self.mark, slot: u32::MAX, sectors: sectors_of(self.words) }
    }

    #[inline(always)]
    fn line(&self, _: usize) -> u64 {
        self.line
    }

    #[inline(always)]
    fn whole(&self, _: usize) -> u8 {
        !sectors_of(!self.full) & 15
    }

    #[inline(always)]
    fn touched(&self) -> u32 {
        count(sectors_of(self.words))
    }

    #[inline(always)]
    fn passes(&mut self, _: bool) -> Passes {
        Passes { groups: 1, passes: 1 }
    }
}

/// The one line that the lanes of `mask` touch in an access to global memory, where that is simple to see.
#[inline(always)]
pub fn only_line(access: &Access, mask: u32) -> Option<Single> {
    let size = u64::from(access.size);
    match access.place {
        Where::Same(address) => {
            let words = words_at(address, size);
            Some(Single::new(address & !(LINE - 1), words, if size >= 4 { words } else { 0 }))
        }
        Where::Consecutive(base) if size >= 4 && is_run(mask) => {
            let start = base.wrapping_add(u64::from(mask.trailing_zeros()) * size);
            let (from, count) = (start % LINE / 4, u64::from(mask.count_ones()) * size / 4);
            // Between one and 32 words: no shift is by 32.
            (from + count <= LINE / 4).then(|| {
                let words = (u32::MAX >> (32 - count)) << from;
                Single::new(start & !(LINE - 1), words, words)
            })
        }
        _ => None,
    }
}

/// Sectors of a line that are on their way, by which requests.
#[derive(Clone, Copy, Default)]
pub struct Coming {
    pub chain: u32,
    pub sectors: u8,
}

/// Sectors of a line that have to be asked for.
#[derive(Clone, Copy, Default)]
pub struct Missing {
    /// Requests of the line that are on their way.
    pub chain: u32,
    /// The line's slot, if it has one.
    pub slot: u32,
    /// Which of the access's lines it is.
    pub n: u8,
    pub sectors: u8,
}

/// Any lines: a list for each thing that is known of them: what is done to all of one is done to several at once.
pub struct Pieces {
    len: usize,
    /// Where they begin, and the numbers by which the cache knows them.
    lines: [u64; MOST],
    numbers: [u32; MOST],
    /// Words that lanes touch, a bit each: the banks, too. Behind the last line is a chunk of none.
    words: [u32; MOST + CHUNK],
    /// Once they have been looked up: sectors touched, what the cache's table knows lines by, and their slots at first sight.
    sectors: [u32; MOST],
    marks: [u16; MOST],
    slots: [u16; MOST],
    /// Banks that have their tags.
    banks: [u32; MOST],
    /// How many sectors are touched.
    touched: u32,
    /// What a load finds of them, where not all of it is there.
    pub coming: [Coming; 32],
    pub missing: [Missing; 32],
    /// Addresses between which every byte of a touched word is touched.
    complete: Range<u64>,
    /// Cycles in which lines are looked up, and in each the words of the one that each bank of tags looks up.
    rounds: usize,
    groups: [[u32; TAG_BANKS]; MOST],
    /// The lines of the next access are there.
    is_made: bool,
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces {
            len: 0,
            lines: [0; MOST],
            numbers: [0; MOST],
            words: [0; MOST + CHUNK],
            sectors: [0; MOST],
            marks: [0; MOST],
            slots: [0; MOST],
            banks: [0; MOST],
            touched: 0,
            coming: [Coming::default(); 32],
            missing: [Missing::default(); 32],
            complete: 0..0,
            rounds: 1,
            groups: [[0; TAG_BANKS]; MOST],
            is_made: false,
        }
    }
}

/// What the lines of an access need of the data banks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// Sets of lines that go through them together.
    pub groups: u32,
    pub passes: u32,
}

impl Pieces {
    /// The lines of an access are to be found.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.is_made = false;
        self.len = 0;
        self.complete = 0..0;
    }

    /// Those of the next access have been found before it.
    #[inline(always)]
    pub fn keep(&mut self) {
        self.is_made = true;
    }

    /// Whether they have; the access behind that begins anew.
    #[inline(always)]
    pub fn take_kept(&mut self) -> bool {
        std::mem::take(&mut self.is_made)
    }

    /// Cycles of the tag stage, after [`Pieces::look_up`].
    #[inline(always)]
    pub fn rounds(&self) -> u32 {
        self.rounds as u32
    }

    #[inline(always)]
    fn push(&mut self, address: u64, words: u32) {
        debug_assert!(self.len < MOST);
        self.lines[self.len % MOST] = address & !(LINE - 1);
        self.numbers[self.len % MOST] = number(address);
        self.words[self.len % MOST] = words;
        self.len += 1;
    }

    /// Coalesces the lanes of `mask` in an access to global memory; there are no lines yet.
    #[inline]
    pub fn global(&mut self, access: &Access, mask: u32) {
        let size = u64::from(access.size);
        if size >= 4 {
            self.complete = 0..u64::MAX;
        }
        match access.place {
            Where::Same(address) => self.push(address, words_at(address, size)),
            Where::Consecutive(base) if size >= 4 && is_run(mask) => {
                let first = u64::from(mask.trailing_zeros());
                let start = base.wrapping_add(first * size);
                self.run(start, u64::from(mask.count_ones()) * size);
            }
            Where::Consecutive(base) => self.holed(base, mask, size),
            Where::Halves(starts, same) if mask == u32::MAX && are_apart(starts, same, size) => {
                for (start, same) in starts.into_iter().zip(same) {
                    match same {
                        true => self.push(start, words_at(start, size)),
                        false => self.run(start, 16 * size),
                    }
                }
            }
            Where::Tile(..) | Where::Halves(..) => {
                let lanes = std::array::from_fn(|n| access.address(n as u32));
                self.scattered(&lanes, mask, size);
            }
            Where::Lanes => self.scattered(&access.lanes, mask, size),
        }
    }

    /// A run of bytes of whole words.
    #[inline(always)]
    fn run(&mut self, start: u64, bytes: u64) {
        let mut line = start & !(LINE - 1);
        let end = start + bytes;
        let mut from = ((start % LINE) / 4) as u32;
        while line < end {
            let to = ((end - line).min(LINE) / 4) as u32;
            // Between one and 32 words: no shift is by 32.
            self.push(line, (u32::MAX >> (32 - (to - from))) << from);
            line += LINE;
            from = 0;
        }
    }

    /// Lanes next to each other, of which some may be missing, or which touch less than a word.
    fn holed(&mut self, base: u64, mask: u32, size: u64) {
        for lane in lanes(mask) {
            let address = base.wrapping_add(u64::from(lane) * size);
            let words = words_at(address, size);
            match self.len {
                // They ascend.
                1.. if self.numbers[self.len - 1] == number(address) => self.words[self.len - 1] |= words,
                _ => self.push(address, words),
            }
        }
        if size < 4 && is_run(mask) {
            // Bytes or half words fill words together.
            let start = base + u64::from(mask.trailing_zeros()) * size;
            self.complete = start..start + u64::from(mask.count_ones()) * size;
        }
    }

    fn scattered(&mut self, addresses: &[u64; 32], mask: u32, size: u64) {
        const NOWHERE: u8 = u8::MAX;
        // Places of lines by a small hash. Whether a lane's line is new or not makes no difference to what is done: a host's
        // guess of it would be wrong too often.
        let mut places = [NOWHERE; 1 << PLACE_BITS];
        let one = words_at(0, size);
        self.words[..32].fill(0);
        let mut len = 0;
        for lane in lanes(mask) {
            let address = addresses[lane as usize % 32];
            let number = number(address);
            let place = &mut places[place_of(number)];
            let is_new = *place == NOWHERE;
            let mut at = usize::from(*place).min(len) % 32;
            if is_new {
                *place = len as u8;
            }
            if !is_new && self.numbers[at] != number {
                // Another line has the place: this one has none.
                at = self.numbers[..len].iter().position(|&n| n == number).unwrap_or(len) % 32;
                len += usize::from(at == len);
            }
            (self.lines[at], self.numbers[at]) = (address & !(LINE - 1), number);
            self.words[at] |= one << word_of(address);
            len += usize::from(is_new);
        }
        self.len = len;
    }

    /// Coalesces the lanes of `mask` in an access to local memory: word `n` of all lanes of a warp is line `n` from
    /// `base`, so lanes at equal offsets share lines.
    pub fn local(&mut self, access: &Access, mask: u32, base: u64) {
        let rows = u64::from(access.size.div_ceil(4).max(1));
        if access.size >= 4 {
            self.complete = 0..u64::MAX;
        }
        let line = |offset: u64, row: u64| base + (offset / 4 + row) * LINE;
        if let Where::Same(offset) = access.place {
            (0..rows).for_each(|row| self.push(line(offset, row), mask));
            return;
        }
        for lane in lanes(mask) {
            let offset = access.address(lane);
            for row in 0..rows {
                let line = line(offset, row);
                match self.lines[..self.len].iter().position(|&l| l == line) {
                    Some(old) => self.words[old] |= 1 << lane,
                    None => self.push(line, 1 << lane),
                }
            }
        }
    }

    /// The lines will be looked up: the cache asks for what it reads first.
    #[inline(always)]
    pub fn expect(&mut self, cache: &Tags) {
        cache.expect_marks(&self.numbers[..self.len], &mut self.marks[..self.len]);
    }

    /// Finds where lines are in the cache at first sight, which asks for what it reads next; the sectors; and the cycles of the
    /// tag stage. Tags are in `tag_banks` banks, each of which looks up one line in a cycle.
    #[inline(always)]
    pub fn look_up(&mut self, tag_banks: u32, cache: &Tags) {
        cache.expect_slots(&self.marks[..self.len], &mut self.slots[..self.len]);
        self.find_sectors();
        self.find_rounds(tag_banks);
    }

    #[inline(always)]
    fn find_sectors(&mut self) {
        let end = self.len.next_multiple_of(CHUNK);
        self.words[self.len..][..CHUNK].fill(0);
        // How many there are: a byte for each sector of a line. No sum of them is more than the lines.
        let mut touched = 0u32;
        for (sectors, &words) in self.sectors[..end].iter_mut().zip(&self.words[..end]) {
            let some = some_of_sectors(words);
            *sectors = (some | some >> 7 | some >> 14 | some >> 21) & 15;
            touched = touched.wrapping_add(some);
        }
        let pairs = (touched & 0x00ff_00ff) + (touched >> 8 & 0x00ff_00ff);
        self.touched = (pairs & 0xffff) + (pairs >> 16);
    }

    #[inline(always)]
    fn find_rounds(&mut self, tag_banks: u32) {
        let end = self.len.next_multiple_of(CHUNK);
        for (bank, &number) in self.banks[..end].iter_mut().zip(&self.numbers[..end]) {
            *bank = tag_bank(number, tag_banks);
        }
        self.groups[..self.len].fill([0; TAG_BANKS]);
        let mut used = [0; TAG_BANKS];
        for (&bank, &words) in self.banks.iter().zip(&self.words[..self.len]) {
            let bank = bank as usize % TAG_BANKS;
            self.groups[used[bank] % MOST][bank] = words;
            used[bank] += 1;
        }
        self.rounds = used.into_iter().max().unwrap_or_default().max(1);
    }

    /// Passes of all lines together. A count of them has so many bits.
    #[inline(always)]
    fn passes_by<const BITS: usize>(&self) -> Passes {
        let mut counts = [0; BITS];
        self.words[..self.len].iter().for_each(|&words| count_banks(&mut counts, words));
        Passes { groups: 1, passes: most_of(&counts) }
    }

    /// Passes of the lines of each cycle: banks that any of them needs, that two need, and so on, take a pass more each.
    #[inline(always)]
    fn passes_by_round(&self) -> Passes {
        let mut passes = 0;
        for &[a, b, c, d] in &self.groups[..self.rounds] {
            let (any, both) = ([a | b, c | d], [a & b, c & d]);
            let two = both[0] | both[1] | any[0] & any[1];
            let three = both[0] & any[1] | both[1] & any[0];
            let four = both[0] & both[1];
            passes += 1 + u32::from(two != 0) + u32::from(three != 0) + u32::from(four != 0);
        }
        Passes { groups: self.rounds as u32, passes }
    }
}

impl Lines for Pieces {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn piece(&self, n: usize) -> Piece {
        let n = n % MOST;
        Piece {
            number: self.numbers[n],
            mark: self.marks[n].into(),
            slot: self.slots[n].into(),
            sectors: self.sectors[n] as u8,
        }
    }

    #[inline(always)]
    fn line(&self, n: usize) -> u64 {
        self.lines[n % MOST]
    }

    #[inline]
    fn whole(&self, n: usize) -> u8 {
        let (line, words) = (self.line(n), self.words[n % MOST]);
        if self.complete.end == u64::MAX {
            return !sectors_of(!words) & 15;
        }
        let is_full = |w: &u32| {
            let word = line + u64::from(*w) * 4;
            self.complete.start <= word && word + 4 <= self.complete.end
        };
        let full = lanes(words).filter(is_full).fold(0, |full, w| full | 1 << w);
        !sectors_of(!full) & 15
    }

    #[inline(always)]
    fn touched(&self) -> u32 {
        self.touched
    }

    /// After [`Pieces::look_up`].
    #[inline]
    fn passes(&mut self, all_found: bool) -> Passes {
        if self.len == 1 {
            return Passes { groups: 1, passes: 1 };
        }
        if !all_found && self.rounds > 1 {
            return self.passes_by_round();
        }
        // As many bits as a count of all lines can have.
        match self.len {
            0..8 => self.passes_by::<3>(),
            8..64 => self.passes_by::<6>(),
            _ => self.passes_by::<8>(),
        }
    }
}

/// What the cache knows a line by.
#[inline(always)]
fn number(address: u64) -> u32 {
    Tags::number(address)
}

/// Whether halves of a warp touch whole words, and none of the same lines.
#[inline(always)]
fn are_apart(starts: [u64; 2], same: [bool; 2], size: u64) -> bool {
    let end = |h: usize| starts[h] + if same[h] { size } else { 16 * size };
    let follows = |a: usize, b: usize| (end(a) - 1) / LINE < starts[b] / LINE;
    size >= 4 && (follows(0, 1) || follows(1, 0))
}

/// Another line needs some of the banks. All bits of the counts are gone through, whether anything is carried or not: that
/// differs from line to line, and a host's guess of it is mostly wrong.
#[inline(always)]
fn count_banks<const BITS: usize>(planes: &mut [u32; BITS], words: u32) {
    let mut carry = words;
    for plane in planes {
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

/// The most lines that need one bank.
#[inline(always)]
fn most_of<const BITS: usize>(planes: &[u32; BITS]) -> u32 {
    let (mut most, mut among) = (0, u32::MAX);
    for (n, plane) in planes.iter().enumerate().rev() {
        let some = plane & among;
        most |= u32::from(some != 0) << n;
        among = if some != 0 { some } else { among };
    }
    most
}

/// Banks of tags that there can be.
const TAG_BANKS: usize = 4;

/// The bank that has a line's tag: the parity of some of the line number's bits, for each bit of the bank's number.
///
/// On an H200, loads of two neighbouring lines take a second cycle for 585 of 8192 pairs: those where 4, 7, 10 or 13
/// bits of the line number change. These masks have that property, keep strides of powers of two apart, and give the
/// ten cycles that a stride of 160 bytes takes.
#[inline(always)]
fn tag_bank(number: u32, banks: u32) -> u32 {
    // Bits from the fifth on repeat their roles every three.
    let mut y = number >> 4;
    y ^= y >> 18;
    y ^= y >> 9;
    y ^= y >> 3 ^ y >> 6;
    (number ^ number >> 2 ^ y ^ y >> 1) & (banks - 1)
}

/// The word of its line that an address is in.
#[inline(always)]
fn word_of(address: u64) -> u32 {
    (address % LINE / 4) as u32
}

/// Words of its line that a lane touches. Accesses are aligned to their size, so no lane touches two lines.
#[inline(always)]
fn words_at(address: u64, size: u64) -> u32 {
    ((1 << (size / 4).max(1)) - 1) << word_of(address)
}

/// Places that the lines of lanes have, as a power of two: mostly each has one of its own.
const PLACE_BITS: u32 = 8;

/// The place of a line, a hash.
#[inline(always)]
fn place_of(number: u32) -> usize {
    (number.wrapping_mul(0x9E37_79B9) >> (u32::BITS - PLACE_BITS)) as usize
}

/// The lanes of a mask, ascending.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros();
        left &= left - 1;
        Some(lane)
    })
}

/// The mask has no holes.
#[inline(always)]
fn is_run(mask: u32) -> bool {
    let shifted = mask >> mask.trailing_zeros().min(31);
    mask != 0 && shifted & shifted.wrapping_add(1) == 0
}

/// What atomics on global memory ask of a line and count.
#[derive(Clone, Copy, Default, Debug)]
pub struct Modify {
    /// Operations on the line.
    pub operations: u8,
    /// The most of them on one address.
    pub depth: u8,
}

/// Operations of the lanes of `mask` by line, in the order of `pieces`, and the sectors that are looked up: lanes on
/// one address go one after the other, and every pass looks up its sectors again.
pub fn modify(access: &Access, mask: u32, pieces: &Pieces, out: &mut [Modify; 32]) -> u32 {
    if let Where::Same(_) = access.place {
        let n = mask.count_ones() as u8;
        out[0] = Modify { operations: n, depth: n };
        return u32::from(n);
    }
    out[..pieces.len().min(32)].fill(Modify::default());
    // How many lanes before this one are on its address; passes that have looked a sector up already.
    let mut sectors = 0;
    let mut seen: [(u64, u8); 32] = [(0, 0); 32];
    let mut looked: [(u64, u8); 32] = [(0, 0); 32];
    let (mut addresses, mut lookups) = (0, 0);
    for lane in lanes(mask) {
        let address = access.address(lane);
        let pass = match seen[..addresses].iter_mut().find(|s| s.0 == address) {
            Some(s) => {
                s.1 += 1;
                s.1
            }
            None => {
                seen[addresses] = (address, 1);
                addresses += 1;
                1
            }
        };
        let sector = (address / SECTOR, pass);
        if !looked[..lookups].contains(&sector) {
            looked[lookups] = sector;
            lookups += 1;
            sectors += 1;
        }
        let line = address & !(LINE - 1);
        if let Some(i) = (0..pieces.len()).find(|&n| pieces.line(n) == line) {
            out[i].operations += 1;
            out[i].depth = out[i].depth.max(pass);
        }
    }
    sectors
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines and words of scattered lanes, in the order of the first lane that touches each, one lane after the other.
    fn walk(addresses: &[u64; 32], mask: u32, size: u64) -> Vec<(u64, u32)> {
        let mut list: Vec<(u64, u32)> = Vec::new();
        for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
            let address = addresses[lane];
            let words = (0..size.div_ceil(4)).fold(0, |words, n| words | 1 << (address % LINE / 4 + n));
            match list.iter_mut().find(|(line, _)| *line == address / LINE * LINE) {
                Some((_, all)) => *all |= words,
                None => list.push((address / LINE * LINE, words)),
            }
        }
        list
    }

    /// Passes of lines of which so many are looked up at once, by bank of tags; each in the first cycle that is free.
    fn passes(list: &[(u64, u32)], tag_banks: u32) -> (u32, u32) {
        let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
        for &(line, words) in list {
            let bank = tag_bank(number(line), tag_banks);
            match rounds.iter_mut().find(|round| round.iter().all(|&(other, _)| other != bank)) {
                Some(round) => round.push((bank, words)),
                None => rounds.push(vec![(bank, words)]),
            }
        }
        let most = |round: &Vec<(u32, u32)>| {
            let needed = |word: u32| round.iter().filter(|(_, words)| words >> word & 1 != 0).count();
            (0..32).map(needed).max().unwrap_or_default() as u32
        };
        (rounds.len() as u32, rounds.iter().map(most).sum())
    }

    proptest! {
        #[test]
        fn lanes_that_lie_anywhere_find_their_lines(
            places in prop::array::uniform32(0u64..4096),
            apart in prop::sample::select(vec![1u64, 3, 32, 1 << 12, 1 << 20]),
            mask in 1u32..,
            size in prop::sample::select(vec![1u64, 2, 4, 8, 16]),
            few in any::<bool>(),
            tag_banks in prop::sample::select(vec![1u32, 2, 4]),
        ) {
            let addresses = places.map(|n| (1 << 36) + if few { n % 97 } else { n } * apart * size);
            let expected = walk(&addresses, mask, size);
            let mut access = Access { mask, global: mask, size: size as u32, ..Access::default() };
            access.lanes = addresses;
            let mut pieces = Pieces::default();
            let cache = Tags::new(1 << 16, 4);
            // What was there before does not matter.
            for mask in [u32::MAX, mask] {
                pieces.clear();
                pieces.global(&access, mask);
                pieces.expect(&cache);
                pieces.look_up(tag_banks, &cache);
            }
            let found: Vec<_> = (0..pieces.len()).map(|n| (pieces.line(n), pieces.words[n])).collect();
            prop_assert_eq!(&found, &expected);
            let of = |words: u32| (0..4).fold(0, |m, n| m | u8::from(words >> (8 * n) & 255 != 0) << n);
            for (n, &(line, words)) in expected.iter().enumerate() {
                let whole = (0..4).fold(0, |m, n| m | u8::from(words >> (8 * n) & 255 == 255) << n);
                prop_assert_eq!(pieces.piece(n).sectors, of(words));
                prop_assert_eq!(pieces.piece(n).number, number(line));
                prop_assert_eq!(pieces.whole(n), if size < 4 { 0 } else { whole });
            }
            let touched = expected.iter().map(|&(_, words)| of(words).count_ones()).sum::<u32>();
            prop_assert_eq!(pieces.touched(), touched);
            let (rounds, missed) = passes(&expected, tag_banks);
            prop_assert_eq!(pieces.rounds(), rounds);
            prop_assert_eq!(pieces.passes(false).passes, missed);
        }
    }
}
